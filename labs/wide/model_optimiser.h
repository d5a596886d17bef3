// Adam's second moment v kept in 8, 16 or 32 bits: v <- F(beta2 v + (1 - beta2) g^2), FP32 inside, F the storage. Without
// bias correction, and without m. A format whose values are g(v) apart below v moves v down by rounding to nearest
// only if (1 - beta2) v > g / 2; a tie goes to the even code. Stochastic rounding keeps the mean of many elements.
//
// Gradient "forget": g = 0 for `steps` steps, v falls by beta2 per step. "noise": g ~ N(0, 1) for 5,000 steps, the
// true mean of v is 1. The reference is the same average in float64 with the same gradients.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab::wide {

inline constexpr int kElements = 4096;     // means of them where elements differ
inline constexpr int kNoiseSteps = 5'000;  // of "noise"
inline constexpr int kScaleBlock = 128;    // elements of one scale of v

struct OptimiserSpec {
    double beta2 = 0.999;
    std::string format = "bf16", rounding = "nearest";
    std::string scale =
        "one";  // "one", "block128": 448 / amax of the block in FP32, "block128_pow2": rounded down
    std::string signal = "forget";
    double v0 = 1;
    int steps = 300, seed = 2;
    bool operator==(const OptimiserSpec&) const = default;

    int length() const { return signal == "noise" ? kNoiseSteps : steps; }
    double bits() const;                         // of one v, its share of the scales included
    double bytes() const { return bits() / 4; }  // of m and v
};

// v over the steps, the mean of its elements, at every step from 0.
struct Average {
    std::vector<double> v;
    bool stuck = false;  // the last step changed no element
    double last = 0;     // element 0 after the last step
    float scale = 1;     // that it is stored with
};

// One storage over one half-life from v = every value in [1, 2): the mean of v / exact.
struct CliffPoint {
    double step = 0;   // 1 - beta2
    double ratio = 1;  // 1: as it should be; 2: nothing was forgotten
};
struct Cliff {
    std::string_view format;
    std::vector<CliffPoint> points;
};

struct Optimiser {
    OptimiserSpec spec;
    std::vector<double> exact;
    Average nearest, stochastic;
    // v after the last step in BF16, E4M3 and E5M2 with scale 1, to nearest and stochastic; of "forget" only.
    struct End {
        std::string_view format;
        double nearest = 0, stochastic = 0;
    };
    std::vector<End> ends;
    double below = 0, at = 0,
           above = 0;  // the stored value nearest to v after the last step, and its neighbours

    const Average& chosen() const { return spec.rounding == "stochastic" ? stochastic : nearest; }
    double v_end() const { return chosen().v.back(); }
    double error_pct() const;     // |v - exact| of exact
    double step_pct() const;      // 100 (1 - beta2): what a step without a gradient takes, of v
    double half_gap_pct() const;  // half the gap below v, of v
};

Optimiser optimiser_of(const OptimiserSpec& spec);
// BF16, E4M3 and E5M2; 29 steps from 1e-4 to 0.3. Computed once.
const std::vector<Cliff>& cliffs();

}  // namespace fp8lab::wide
