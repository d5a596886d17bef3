// A tensor under a format's window: which amax the scale is made for, what the cast does at that scale, and
// what it would do with other margins.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/formats/codec.h"
#include "core/stats/tensor_stats.h"
#include "core/tensors/tensor.h"

namespace fp8lab::window {

inline constexpr int kLowestMargin = -4, kHighestMargin = 16;

// source: "current" makes the scale for this tensor's amax; "percentile" for that percentile of |x|; "ema"
// for a moving average of the amaxes of 16 slices, as an observer has it that sees one micro-batch after the
// other; "manual" takes `scale` as it is, and no margin.
// zero: the scale where that amax is 0. "divide": fp8_max / 0 = Inf; "one": 1, Transformer Engine's current
// scaling; "eps": made for 1e-12, torchao's; "keep": `scale`, as the one of the step before.
struct CastSpec {
    TensorSpec tensor = {.kind = "lognormal", .size = 1, .sigma = 3, .cols = 200000};
    std::string format = "e4m3", source = "current", overflow = "saturate", zero = "one";
    int margin = 0;
    double scale = 1, percentile = 99.9, ema = 0.9;
    int loss_exponent = 0;  // the loss is multiplied by 2 to this
    double probe = 464;     // one number of one's own
    bool operator==(const CastSpec&) const = default;
};

// What one cast did. Inliers are the elements that were not injected as outliers.
struct Cast {
    double scale = 1;
    CastStats stats;
    double inlier_sqnr_db = 0;
    std::int64_t not_finite = 0;  // elements that were finite and are not any more
};
Cast cast_tensor(const Tensor& tensor, const FormatInfo& format, Overflow overflow, float scale);

struct Sweep {
    FormatInfo format;
    std::vector<Cast> casts;  // margins kLowestMargin to kHighestMargin
    const Cast& at(int margin) const { return casts[static_cast<std::size_t>(margin - kLowestMargin)]; }
};

// Three gradients of one backward pass, each 2^-8 of the one after it, under one loss scale, and under a
// scale of their own.
inline constexpr std::array kGradients = {"dy3", "dy2", "dy1"};
inline constexpr int kBinadesApart = 8;
struct LossScaled {
    std::array<Cast, 3> shifted, scaled;  // loss scale alone; loss scale and tensor scale
};

struct Histogram {  // of |x|, half binades
    Data edges, all, underflow, saturated;
    double tallest = 1;
};

struct Outcome {
    CastSpec spec;
    std::shared_ptr<const Tensor> tensor;
    FormatInfo format;
    double amax = 0, smallest = 0;  // of |x| > 0
    double reference = 0;           // the amax that the scale is made for
    Cast cast;
    Range window;            // of |x|: smallest and largest value of the format over the scale
    double normal_from = 0;  // where its normal numbers begin
    double zero_to = 0;      // up to here the cast writes 0: half the smallest value
    Histogram histogram;
    Sweep own, other;         // other: INT8, or E4M3 where the format is INT8
    double base_sqnr_db = 0;  // without the outliers; the same as inlier_sqnr_db where there are none
    LossScaled loss;
    double probe_cast = 0, probe_next = 0;  // what x and x + 1 become
};

// Keeps between calls what the next one has in common with the last: the tensor, the sweeps, the gradients.
// Throws what make_tensor() throws.
class Compute {
  public:
    Outcome operator()(const CastSpec& spec);

  private:
    void draw(const TensorSpec& spec);

    TensorSpec drawn_ = {.kind = "none"}, base_drawn_ = drawn_;
    // base: before the outliers went in; where there are none the two are one.
    std::shared_ptr<const Tensor> tensor_ = std::make_shared<Tensor>(), base_ = tensor_;
    CastSpec swept_ = {.format = ""},
             lost_ = {.format = ""};  // what the sweeps and the gradients were made for
    Sweep own_, other_;
    LossScaled loss_;
};

}  // namespace fp8lab::window
