#include "labs/gpus/model_time.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace fp8lab::gpus {
namespace {

constexpr double kPerMs = 1e6;        // GB/s as bytes per ms
constexpr double kLarge = 8'000'000;  // bytes: from here on the fit is held against the times
constexpr std::array kLayers = {4096, 16384, 4096};

// The inverse of the standard normal distribution function, to 1e-12: bisection of erfc.
double normal_quantile(double p) {
    double low = -10, high = 10;
    for (int i = 0; i < 100; ++i) {
        const double middle = (low + high) / 2;
        (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
    }
    return (low + high) / 2;
}

double travels(double bytes, int gpus) { return bytes * (gpus - 1) / gpus; }

}  // namespace

Fit fit_of(const RecordedComm& comm, std::string_view op) {
    std::vector<std::pair<double, double>> points;
    for (const RecordedOp& one : comm.ops)
        if (one.op == op) points.emplace_back(travels(one.bytes, comm.gpus) / kPerMs, one.median_ms);
    if (points.size() < 2) return {};
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
    const auto count = static_cast<double>(points.size());
    for (const auto& [x, y] : points) mean_x += x / count, mean_y += y / count;
    for (const auto& [x, y] : points) xx += (x - mean_x) * (x - mean_x), xy += (x - mean_x) * (y - mean_y);
    if (!(xx > 0) || !(xy > 0)) return {};
    Fit out{.alpha_ms = mean_y - xy / xx * mean_x, .beta_gbs = xx / xy};
    for (const auto& [x, y] : points)
        if (x * kPerMs * comm.gpus / (comm.gpus - 1) >= kLarge)
            out.worst_pct = std::max(out.worst_pct, 100 * std::fabs(out.alpha_ms + x / out.beta_gbs - y) / y);
    return out;
}

Links links_of(const Recorded& recorded, std::string_view gpu) {
    Links out;
    for (const RecordedComm& comm : recorded.comm)
        for (const int place : {0, 1})
            if (comm.gpu == gpu && comm.gpus == (place == 0 ? 2 : 4)) {
                out.gather[place] = fit_of(comm, "all_gather");
                out.reduce_scatter[place] = fit_of(comm, "reduce_scatter");
            }
    return out;
}

double collective_ms(const Fit& fit, const Network& network, int gpus, double bytes) {
    if (gpus < 2) return 0;
    const int on_node = network.nvlink_only ? gpus : std::min(gpus, kNode), nodes = gpus / on_node;
    double out = fit.alpha_ms + travels(bytes, on_node) / kPerMs / fit.beta_gbs;
    if (nodes > 1)
        out += network.alpha_ms * (std::bit_width(static_cast<unsigned>(nodes - 1))) +
               travels(bytes / on_node, nodes) / kPerMs / network.beta_gbs;
    return out;
}

double blom(int gpus) { return gpus < 2 ? 0 : normal_quantile(1 - 0.625 / (gpus + 0.25)); }

Parts parts_of(const Recording& recording, std::string_view recipe) {
    const RecordedStep* step = recording.step(kLayers, kRecordedRows);
    const RecordedArm* arm = step ? step->find(recipe) : nullptr;
    if (!arm) return {};
    return {arm->part_ms("GEMM"), arm->part_ms("casts"), arm->part_ms("optimiser"),
            arm->part_ms("bookkeeping")};
}

StepTimes step_of(const Parts& parts, const Links& links, const StepSpec& spec) {
    const double share = static_cast<double>(spec.rows) / kRecordedRows;
    const double gemm = parts.gemm * share, casts = parts.casts * share;
    StepTimes out;
    out.forward = 0.4 * (gemm + casts), out.backward = 0.6 * (gemm + casts);
    out.optimiser = parts.optimiser, out.bookkeeping = parts.bookkeeping;
    if (spec.gpus < 2) return out;
    const auto hidden = [&](double time, double under) {
        return time + std::max(0.0, time - (spec.overlap ? under : 0.0));
    };
    out.gradients = collective_ms(links.of(links.reduce_scatter, spec.gpus), spec.network, spec.gpus,
                                  kLayer * spec.sum_bytes);
    out.gradients_shown = hidden(out.gradients, gemm / 5);
    if (spec.sharded) {
        out.optimiser /= spec.gpus;
        out.weights = collective_ms(links.of(links.gather, spec.gpus), spec.network, spec.gpus,
                                    kLayer * spec.gather_bytes);
        out.weights_shown = hidden(out.weights, out.forward / 2);
    } else {
        out.gradients *= 2;
        out.gradients_shown *= 2;
    }
    out.jitter = spec.jitter_pct / 100 * (out.forward + out.backward) * blom(spec.gpus);
    return out;
}

double efficiency_pct(const Parts& parts, const Links& links, const StepSpec& spec) {
    StepSpec one = spec;
    one.gpus = 1;
    return 100 * step_of(parts, links, one).total() / step_of(parts, links, spec).total();
}

}  // namespace fp8lab::gpus
