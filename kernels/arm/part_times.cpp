#include "kernels/arm/part_times.h"

#include <algorithm>

namespace fp8lab::cuda {

std::vector<std::pair<std::string, double>> PartTimes::read(bool multiplies_in_update) const {
    std::vector<std::pair<std::string, double>> out = {
        {"GEMM", 0},
        {"casts", 0},
        {"attention", 0},
        {"norms and the rest", 0},
        {multiplies_in_update ? "wgrad + optimiser" : "optimiser", 0},
        {"bookkeeping", 0},
        {"network", 0},
        {"FP32 bucket", 0}};
    for (std::size_t i = 1; i < parts_.size(); ++i)
        out[static_cast<std::size_t>(parts_[i])].second +=
            static_cast<double>(elapsed_ms(events_[i - 1], events_[i]));
    std::erase_if(out, [](const auto& part) { return part.second == 0; });  // the model has none
    return out;
}

// A span ends before the next one of its stream begins, and those of the two kinds are on two streams.
void NetworkTimes::add(CudaArm::Part part, bool begins, cudaStream_t stream) {
    if (begins) {
        spans_.emplace_back().part = part;
        spans_.back().from.record_in_graph(stream);
        return;
    }
    const auto open =
        std::find_if(spans_.rbegin(), spans_.rend(), [&](const Span& s) { return s.part == part; });
    open->to.record_in_graph(stream);
}

NetworkTimes::Times NetworkTimes::read() const {
    struct Edge {
        double ms;
        int gemms, travels;
    };
    std::vector<Edge> edges;
    for (const Span& span : spans_) {
        const bool gemm = span.part == CudaArm::Part::gemm;
        for (const auto& [event, way] : {std::pair(&span.from, 1), {&span.to, -1}})
            edges.push_back({static_cast<double>(elapsed_ms(spans_.front().from, *event)), gemm ? way : 0,
                             gemm ? 0 : way});
    }
    std::ranges::sort(edges, {}, &Edge::ms);
    Times out;
    int gemms = 0, travels = 0;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        gemms += edges[i].gemms;
        travels += edges[i].travels;
        const double ms = edges[i + 1].ms - edges[i].ms;
        if (travels > 0) out.travels_ms += ms;
        if (travels > 0 && gemms == 0) out.shown_ms += ms;
    }
    return out;
}

std::optional<NetworkTimes::Times> median(const std::vector<NetworkTimes::Times>& times) {
    if (times.empty()) return std::nullopt;
    const auto of = [&](double NetworkTimes::Times::*what) {
        std::vector<double> ms;
        for (const NetworkTimes::Times& one : times) ms.push_back(one.*what);
        std::ranges::nth_element(ms, ms.begin() + std::ssize(ms) / 2);
        return ms[ms.size() / 2];
    };
    return NetworkTimes::Times{of(&NetworkTimes::Times::travels_ms), of(&NetworkTimes::Times::shown_ms)};
}

}  // namespace fp8lab::cuda
