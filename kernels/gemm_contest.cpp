#include "kernels/gemm_contest.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fp8lab::cuda {
namespace {

// What a graph holds takes about a millisecond, so that the gaps between graphs do not count.
int launches_a_graph(double flop) {
    constexpr double kGraphMs = 1, kFlopPerMs = 5e11, kLaunchMs = 0.003;
    constexpr int kMost = 64;
    return std::clamp(static_cast<int>(kGraphMs / (flop / kFlopPerMs + kLaunchMs)), 1, kMost);
}

struct Candidate {
    std::size_t index;
    Graph graph;
    Event start, end;
    std::vector<float> ms{};
    double median_ms = 0;
};

// A block: the candidate alone for `warm_ms`, until clocks and power are its own, then `timed_ms` that count.
// Blocks follow each other without a pause, in turns, so that a clock that drifts drifts for all.
struct Blocks {
    int rounds;
    double warm_ms, timed_ms;
};

void time_in_blocks(std::vector<Candidate>& candidates, const Blocks& blocks, double graph_ms,
                    cudaStream_t stream) {
    constexpr int kFewest = 2;
    const auto replays = [&](double ms) {
        return std::max(kFewest, static_cast<int>(std::lround(ms / graph_ms)));
    };
    const int warm = replays(blocks.warm_ms), timed = replays(blocks.timed_ms);
    for (Candidate& c : candidates) c.ms.clear();
    for (int round = 0; round < blocks.rounds; ++round) {
        for (Candidate& c : candidates) {
            for (int i = 0; i < warm; ++i) c.graph.launch(stream);
            c.start.record(stream);
            for (int i = 0; i < timed; ++i) c.graph.launch(stream);
            c.end.record(stream);
        }
        for (Candidate& c : candidates) {
            c.end.wait();
            c.ms.push_back(elapsed_ms(c.start, c.end) / static_cast<float>(timed));
        }
    }
    for (Candidate& c : candidates) {
        const auto middle = c.ms.begin() + static_cast<std::ptrdiff_t>(c.ms.size() / 2);
        std::ranges::nth_element(c.ms, middle);
        c.median_ms = static_cast<double>(*middle);
    }
    std::ranges::sort(candidates, {}, &Candidate::median_ms);
}

}  // namespace

std::size_t fastest_of(std::size_t count, double flop, const std::function<void(std::size_t)>& run,
                       cudaStream_t stream) {
    if (count == 1) return 0;
    const int launches = launches_a_graph(flop);
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < count; ++i)
        candidates.push_back({i,
                              Graph(stream,
                                    [&] {
                                        for (int launch = 0; launch < launches; ++launch) run(i);
                                    }),
                              Event(), Event()});
    // One round tells how long a graph takes; a few find the leaders; more decide among them.
    time_in_blocks(candidates, {1, 0, 0}, 1, stream);
    const double graph_ms = candidates.front().median_ms;
    constexpr double kHopeless = 2;
    std::erase_if(candidates, [&](const Candidate& c) { return c.median_ms > kHopeless * graph_ms; });
    // Small products do not heat the card; large ones take seconds as it is.
    constexpr double kHeatsTheCard = 5e9, kLongMs = 4;
    const double block = flop < kHeatsTheCard ? 1 : 10;
    const bool takes_long = graph_ms > kLongMs;
    time_in_blocks(candidates, {3, block / 2, block / 2}, graph_ms, stream);
    constexpr std::size_t kLeaders = 4;
    while (candidates.size() > kLeaders) candidates.pop_back();
    time_in_blocks(candidates, {takes_long ? 5 : 9, block / 2, block}, graph_ms, stream);
    return candidates.front().index;
}

}  // namespace fp8lab::cuda
