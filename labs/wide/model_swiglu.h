// SwiGLU's product h = silu(g) u in E4M3, 24 steps of 256 tokens x 512 channels with fresh g, u ~ N(0, 1). Channel 0
// is aligned: u0 = k (rho g0 + sqrt(1 - rho^2) n), and its g is k g0; the weight norm k grows by a factor at step 8.
// arXiv 2409.12517 saw the alignment after 200 billion tokens; here it is set.
//
// The scale is Transformer Engine's delayed one in the unfused order (core/scaling/delayed.h), history and margin as
// set, and the first scale that of step 0's own amax; or that of each step's own amax (fix "current").
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab::wide {

inline constexpr int kSteps = 24, kGrowthStep = 8;
inline constexpr std::size_t kTokens = 256, kChannels = 512;

struct SwigluSpec {
    double rho = 1, k = 4, jump = 2;
    int margin = 0;
    std::string fix = "none";  // "none", "current", "smooth", "clamp10", "gelu"
    int history = 16, seed = 2;
    bool operator==(const SwigluSpec&) const = default;
};

struct SwigluStep {
    double k = 0, amax = 0, top = 0;                                // top: 448 / scale, what E4M3 holds
    int saturated = 0;                                              // elements with |h scale| > 464
    double zero_pct = 0;                                            // of all elements
    double channel_db = 0;                                          // SQNR of channel 0
    double lost_l1_pct = std::numeric_limits<double>::quiet_NaN();  // 1 - sum |q| / sum |h| of channel 0
    double over() const { return amax / top; }
};

// The amax of h at a weight norm: the median of the 24 batches.
struct NormPoint {
    double k = 0, swiglu = 0, gelu = 0, clamp10 = 0;
};

// The other 511 channels with the scale of the step's own amax, batch of step 0.
struct InlierRow {
    double k = 0, amax = 0, e4m3_db = 0, int8_db = 0, zero_pct = 0;
};

struct Repair {
    std::string_view label;
    int saturated_steps = 0;
};

struct Swiglu {
    SwigluSpec spec;
    std::vector<SwigluStep> steps;
    std::vector<NormPoint> norms;    // k = 1 to 16, by powers of the root of 2
    std::vector<InlierRow> inliers;  // k = 1, 2, 4, 8, 16
    std::vector<Repair>
        repairs;  // margin 1, margin 2, clamp 10, Smooth-SwiGLU, current scaling, GELU margin 0, 1
    std::vector<float> channel;  // h of channel 0 in step 0, with k and rho
    double amax_ratio = 0;       // median amax at 2 k / at k, with the fix's activation
    int saturated_steps() const;
    std::string saturated_at() const;  // "1, 8, 12, 13", "none"
};

// The numbers that do not depend on k, rho and the scale; computed once per seed and activation.
class SwigluDraws {
  public:
    struct Batch {
        std::vector<float> g, n;                  // of channel 0
        float swiglu = 0, gelu = 0, clamp10 = 0;  // amax of |h| of the other channels
        std::vector<float> inliers;               // their |h| with the fix
    };
    // Those of the seed and fix; the ones before are dropped.
    const std::vector<Batch>& of(int seed, std::string_view fix);
    const std::vector<float>& plain() const { return plain_; }  // |h| of the others in step 0 without a fix

  private:
    int seed_ = 0;
    std::string fix_;
    std::vector<Batch> batches_;
    std::vector<float> plain_;
};

Swiglu swiglu_of(const SwigluSpec& spec, SwigluDraws& draws);

// One element of h. clamp10: silu(g) at most 10, u within +-10.
float swiglu_h(float g, float u);
float clamped_h(float g, float u);
float gelu_h(float g);  // the tanh form

}  // namespace fp8lab::wide
