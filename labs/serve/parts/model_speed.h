// The part "speed" of L17: how many tokens a GPU serves, over the number of sequences, as `fp8lab bench infer` has measured it. All
// times are from recordings; nothing is estimated.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/backend/recording.h"
#include "core/figure/figure.h"
#include "core/formats/format.h"

namespace fp8lab::serve {

inline constexpr std::array kSpeedWeights = {ServedWeights::bf16, ServedWeights::weight_only,
                                             ServedWeights::e4m3_row};
inline constexpr int kMostSequences = 256;  // powers of two are recorded up to it

struct SpeedSpec {
    std::string card = "h200";  // a recording
    ServedCache cache = ServedCache::bf16;
    ServedWeights weights = ServedWeights::e4m3_row;  // the chosen one
    int batch = 1;
};

// What a recording has of one cache.
struct Speeds {
    SpeedSpec spec;
    std::shared_ptr<const Shipped> of;            // keeps the recording
    const Recording* recording = nullptr;         // null: there is none of this name
    std::vector<const RecordedInfer*> runs = {};  // of this cache, by batch

    const RecordedInfer* at(ServedWeights weights, int batch) const;  // null: was not measured
    const RecordedInfer* last(ServedWeights weights) const;           // of the largest batch
    const RecordedInfer* chosen() const { return at(spec.weights, spec.batch); }
    // The tokens/s over those with weights in BF16; NaN where one of both was not measured.
    double gain(ServedWeights weights, int batch) const;
};
Speeds speeds_of(const SpeedSpec& spec);

// Percent of what has to be read that is the cache.
double cache_share_pct(const RecordedInfer& run);
Style speed_style(ServedWeights weights);
std::string speed_title(const Speeds& speeds);
Figure speed_figure(const Speeds& speeds);  // "tokens_per_s"

}  // namespace fp8lab::serve
