#include "kernels/gemm/autotune.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/environment.h"
#include "kernels/device/graph.h"

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
// Blocks alternate without a pause, so that a drift of the clock affects all candidates.
struct Blocks {
    int rounds;
    double warm_ms, timed_ms;
    int fewest;  // replays
};

void time_in_blocks(std::vector<Candidate>& candidates, const Blocks& blocks, double graph_ms,
                    cudaStream_t stream) {
    const auto replays = [&](double ms) {
        return std::max(blocks.fewest, static_cast<int>(std::lround(ms / graph_ms)));
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

// They are sorted.
void keep_leaders(std::vector<Candidate>& candidates, std::size_t most, double within) {
    const double limit = within * candidates.front().median_ms;
    while (candidates.size() > most || candidates.back().median_ms > limit) candidates.pop_back();
}

}  // namespace

bool quick_tuning() {
    const char* tuning = environment("FP8LAB_TUNING");
    return tuning && std::string_view(tuning) == "quick";
}

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
    const bool quick = quick_tuning();
    const int fewest = quick ? 1 : 2;
    // One round tells how long a graph takes, and who is hopeless.
    const double hopeless = quick ? 1.2 : 2;
    time_in_blocks(candidates, {1, 0, 0, fewest}, 1, stream);
    const double graph_ms = candidates.front().median_ms;
    keep_leaders(candidates, candidates.size(), hopeless);
    // The fewer are left, the longer they are timed. Small products do not heat the card; large ones take
    // seconds as it is.
    struct Stage {
        int rounds;
        std::size_t most;
        double within;  // times the fastest
    };
    constexpr std::array<Stage, 3> kThorough = {{{3, 6, 1.025}, {9, 3, 1.015}, {15, 1, 1}}};
    constexpr std::array<Stage, 2> kQuick = {{{2, 4, 1.05}, {5, 1, 1}}};
    const std::span<const Stage> stages = quick ? std::span<const Stage>(kQuick) : kThorough;
    constexpr double kHeatsTheCard = 5e9, kLongMs = 4;
    constexpr int kMostOfLong = 5;
    const double block = flop < kHeatsTheCard ? 1 : quick ? 4 : 10;
    for (const Stage& stage : stages) {
        if (candidates.size() == 1) break;
        const int rounds = graph_ms > kLongMs ? std::min(stage.rounds, kMostOfLong) : stage.rounds;
        time_in_blocks(candidates, {rounds, block / 2, block, fewest}, graph_ms, stream);
        keep_leaders(candidates, stage.most, stage.within);
    }
    return candidates.front().index;
}

}  // namespace fp8lab::cuda
