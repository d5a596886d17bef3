// Chooses a format for each layer: the divergence of every mix, the best one under a budget, and a search for
// networks with too many layers to try every mix.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/inference/lowering.h"
#include "core/inference/score.h"

namespace fp8lab {

inline constexpr std::size_t kMostLayersOfAllMixes = 5;

// One mix: a format per layer for weights and, where asked for, its input.
struct MixPoint {
    double bits = 0;  // per weight, scales included
    double divergence = 0;
};
struct AllMixes {
    std::vector<const LowFormat*> formats;
    std::size_t layers = 0;
    bool activations = true;
    std::vector<MixPoint>
        points;  // formats.size()^layers; the first layer's format is the highest digit of the index

    Mix mix(std::size_t index) const;
    std::optional<std::size_t> find(const Mix& mix) const;  // none: a format that is not among them
};
// Computed as a tree whose branches share the layers before them, so that every input is cast once per format.
// `activations` false: the inputs of all layers stay in BF16. `told` hears how many mixes are done, from one thread at a
// time. `scales`: as of run_lowered(). Throws usage_error above kMostLayersOfAllMixes layers.
using MixesTold = std::function<void(std::size_t done, std::size_t of)>;
AllMixes all_mixes(const TrainedMlp& network, const Matrix<float>& x, const Reference& reference,
                   std::span<const LowFormat* const> formats, bool activations, const MixesTold& told = {},
                   const StaticScales& scales = {});

// The mixes that no other mix beats in both bits and divergence, from few bits to many.
std::vector<std::size_t> frontier_of(std::span<const MixPoint> points);
// The smallest divergence with at most that many bits; none: every mix has more.
std::optional<std::size_t> best_within(std::span<const MixPoint> points, double bits);

// The mixes whose bits differ from `bits` by at most `reach`, and the place of a divergence among them (1: the best).
struct Neighbours {
    std::size_t count = 0, best = 0, worst = 0;  // indices of points
    double median = 0;                           // divergence
    std::size_t rank = 0;
};
Neighbours neighbours_of(std::span<const MixPoint> points, double bits, double divergence,
                         double reach = 0.1);

// A greedy search. At the start all layers are in `formats.front()`. In each step one layer takes the next format of the
// list, the layer whose added divergence per saved bit is the least, until all have the last one. `formats` is ordered
// from wide to narrow. The best mix of a budget can be one that this search does not find.
struct GreedyStep {
    Mix mix;
    MixPoint point;
};
// `divergence`: of a mix. `told` hears how many steps are done.
std::vector<GreedyStep> greedy_path(std::span<const LayerSize> layers,
                                    const std::function<double(const Mix&)>& divergence,
                                    std::span<const LowFormat* const> formats, bool activations,
                                    const MixesTold& told = {});
// What L11 and `infer` take for a mix: bf16 int8 e4m3 mxfp8 mxfp6-e2m3 nvfp4 mxfp4 e2m1 where every mix is tried,
// mxfp8 mxfp6-e2m3 nvfp4 mxfp4 for the greedy path.
std::vector<const LowFormat*> mix_formats();
std::vector<const LowFormat*> greedy_formats();

// The divergence with one layer in `format` and all others in FP32, layer by layer. `scales`: as of run_lowered().
std::vector<double> sensitivities(const TrainedMlp& network, const Matrix<float>& x,
                                  const Reference& reference, const LowFormat& format, bool activations,
                                  const StaticScales& scales = {});

}  // namespace fp8lab
