#include "labs/wide/model_swiglu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/rng.h"
#include "core/formats/codec.h"
#include "core/scaling/delayed.h"
#include "core/threads/parallel.h"

namespace fp8lab::wide {
namespace {

constexpr float kE4m3Max = 448, kSaturates = 464, kBecomesZero = 0x1p-10F;
constexpr std::uint64_t kFirstBatch = 100;  // stream of step 0

struct Channel {
    std::vector<float> h;
    float amax = 0;
};

enum class Act { swiglu, gelu, clamp10 };
Act act_of(std::string_view fix) {
    return fix == "gelu" ? Act::gelu : fix == "clamp10" ? Act::clamp10 : Act::swiglu;
}

float element(Act act, float g, float u) {
    return act == Act::gelu ? gelu_h(g) : act == Act::clamp10 ? clamped_h(g, u) : swiglu_h(g, u);
}

Channel aligned(const SwigluDraws::Batch& batch, Act act, double rho, double k) {
    Channel out;
    const auto along = static_cast<float>(rho), across = static_cast<float>(std::sqrt(1 - rho * rho)),
               norm = static_cast<float>(k);
    for (std::size_t i = 0; i < batch.g.size(); ++i) {
        const float g = norm * batch.g[i], u = norm * (along * batch.g[i] + across * batch.n[i]);
        out.h.push_back(element(act, g, u));
        out.amax = std::max(out.amax, std::fabs(out.h.back()));
    }
    return out;
}

float others_amax(const SwigluDraws::Batch& batch, Act act) {
    return act == Act::gelu ? batch.gelu : act == Act::clamp10 ? batch.clamp10 : batch.swiglu;
}

double amax_at(const SwigluDraws::Batch& batch, Act act, double rho, double k) {
    return static_cast<double>(std::max(aligned(batch, act, rho, k).amax, others_amax(batch, act)));
}

double median_amax(const std::vector<SwigluDraws::Batch>& batches, Act act, double rho, double k) {
    std::vector<double> all;
    for (const auto& batch : batches) all.push_back(amax_at(batch, act, rho, k));
    std::ranges::sort(all);
    return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
}

// The scales of a series of amaxes, one step after the other.
std::vector<float> scales_of(const std::vector<float>& amaxes, const SwigluSpec& spec) {
    std::vector<float> out;
    DelayedScale delayed(spec.history, AmaxAlgo::max, spec.margin, 1, kE4m3Max);
    delayed.restore(scale_from_amax(amaxes.front(), kE4m3Max, spec.margin, 1), 0, delayed.history());
    for (const float amax : amaxes) {
        const bool current = spec.fix == "current";
        out.push_back(current ? scale_from_amax(amax, kE4m3Max, spec.margin, 1) : delayed.scale());
        delayed.update(amax);
    }
    return out;
}

double norm_at(const SwigluSpec& spec, int step) { return spec.k * (step >= kGrowthStep ? spec.jump : 1); }

std::vector<float> amaxes_of(const SwigluSpec& spec, const std::vector<SwigluDraws::Batch>& batches) {
    std::vector<float> out;
    const Act act = act_of(spec.fix);
    for (int step = 0; step < kSteps; ++step)
        out.push_back(spec.fix == "smooth"
                          ? 1.0F  // every channel has been divided by its own amax
                          : static_cast<float>(amax_at(batches[static_cast<std::size_t>(step)], act, spec.rho,
                                                       norm_at(spec, step))));
    return out;
}

int count_saturated(SwigluSpec spec, std::string_view fix, int margin,
                    const std::vector<SwigluDraws::Batch>& batches) {
    spec.fix = fix, spec.margin = margin;
    const std::vector<float> amaxes = amaxes_of(spec, batches), scales = scales_of(amaxes, spec);
    int count = 0;
    for (std::size_t i = 0; i < amaxes.size(); ++i) count += amaxes[i] * scales[i] > kSaturates;
    return count;
}

SwigluStep step_of(const SwigluSpec& spec, const SwigluDraws::Batch& batch, int step, float amax,
                   float scale) {
    SwigluStep out{.k = norm_at(spec, step),
                   .amax = static_cast<double>(amax),
                   .top = static_cast<double>(kE4m3Max) / static_cast<double>(scale)};
    Channel channel = aligned(batch, act_of(spec.fix), spec.rho, out.k);
    if (spec.fix == "smooth" && channel.amax > 0)
        for (float& h : channel.h) h /= channel.amax;
    std::vector<float> q(channel.h.size());
    quantize(find_format("e4m3"), channel.h, q, {.scale = scale});
    double signal = 0, noise = 0, before = 0, after = 0;
    int zeros = 0;
    const auto count = [&](float size) {
        out.saturated += size * scale > kSaturates;
        zeros += size > 0 && size * scale <= kBecomesZero;
    };
    for (std::size_t i = 0; i < q.size(); ++i) {
        const auto h = static_cast<double>(channel.h[i]), back = static_cast<double>(q[i]);
        signal += h * h, noise += (h - back) * (h - back);
        before += std::fabs(h), after += std::fabs(back);
        count(std::fabs(channel.h[i]));
    }
    for (const float size : batch.inliers) count(size);
    out.zero_pct = 100.0 * zeros / static_cast<double>(kTokens * kChannels);
    out.channel_db = 10 * std::log10(signal / noise);
    out.lost_l1_pct = 100 * (1 - after / before);
    return out;
}

InlierRow inlier_row(const std::vector<float>& inliers, const SwigluDraws::Batch& batch, double rho,
                     double k) {
    InlierRow out{.k = k, .amax = amax_at(batch, Act::swiglu, rho, k)};
    const float scale = scale_from_amax(static_cast<float>(out.amax), kE4m3Max, 0, 1);
    std::vector<float> q(inliers.size());
    quantize(find_format("e4m3"), inliers, q, {.scale = scale});
    const double step = out.amax / 127;  // INT8, symmetric: 127 is the amax
    double signal = 0, noise = 0, noise_int8 = 0, zeros = 0;
    for (std::size_t i = 0; i < q.size(); ++i) {
        const auto h = static_cast<double>(inliers[i]), back = static_cast<double>(q[i]);
        const double int8 = std::nearbyint(h / step) * step;
        signal += h * h, noise += (h - back) * (h - back), noise_int8 += (h - int8) * (h - int8);
        zeros += h != 0 && back == 0;
    }
    out.e4m3_db = 10 * std::log10(signal / noise), out.int8_db = 10 * std::log10(signal / noise_int8);
    out.zero_pct = 100 * zeros / static_cast<double>(q.size());
    return out;
}

void draw_batch(int seed, std::size_t step, std::string_view fix, SwigluDraws::Batch& batch,
                std::vector<float>* plain) {
    std::vector<float> g(kTokens * kChannels), u(kTokens * kChannels);
    Rng rng(static_cast<std::uint64_t>(seed), kFirstBatch + step);
    rng.fill_normal(g), rng.fill_normal(u);
    const Act act = act_of(fix);
    std::vector<float> channel_amax(kChannels);
    batch.inliers.reserve(kTokens * (kChannels - 1));
    for (std::size_t t = 0; t < kTokens; ++t) {
        const std::size_t row = t * kChannels;
        batch.g.push_back(g[row]), batch.n.push_back(u[row]);
        for (std::size_t c = 1; c < kChannels; ++c) {
            const float product = std::fabs(swiglu_h(g[row + c], u[row + c]));
            const float gelu = std::fabs(gelu_h(g[row + c])),
                        clamped = std::fabs(clamped_h(g[row + c], u[row + c]));
            batch.swiglu = std::max(batch.swiglu, product);
            batch.gelu = std::max(batch.gelu, gelu);
            batch.clamp10 = std::max(batch.clamp10, clamped);
            batch.inliers.push_back(act == Act::gelu ? gelu : act == Act::clamp10 ? clamped : product);
            channel_amax[c] = std::max(channel_amax[c], product);
            if (plain) plain->push_back(product);
        }
    }
    if (fix != "smooth") return;
    for (std::size_t i = 0; i < batch.inliers.size(); ++i)
        batch.inliers[i] /= channel_amax[i % (kChannels - 1) + 1];
}

}  // namespace

float swiglu_h(float g, float u) { return g / (1 + std::exp(-g)) * u; }
float clamped_h(float g, float u) {
    return std::min(g / (1 + std::exp(-g)), 10.0F) * std::clamp(u, -10.0F, 10.0F);
}
float gelu_h(float g) { return 0.5F * g * (1 + std::tanh(0.7978845608F * (g + 0.044715F * g * g * g))); }

int Swiglu::saturated_steps() const {
    return static_cast<int>(
        std::ranges::count_if(steps, [](const SwigluStep& s) { return s.saturated > 0; }));
}

std::string Swiglu::saturated_at() const {
    std::string out;
    for (std::size_t i = 0; i < steps.size(); ++i)
        if (steps[i].saturated > 0) out += fmt::format("{}{}", out.empty() ? "" : ", ", i);
    return out.empty() ? "none" : out;
}

const std::vector<SwigluDraws::Batch>& SwigluDraws::of(int seed, std::string_view fix) {
    // Only these change h; delayed and current scaling cast the same numbers.
    const std::string kind = fix == "none" || fix == "current" ? "" : std::string(fix);
    if (!batches_.empty() && seed == seed_ && kind == fix_) return batches_;
    seed_ = seed, fix_ = kind;
    batches_.assign(kSteps, {});
    plain_.clear();
    parallel_for(batches_.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            draw_batch(seed, i, kind, batches_[i], i == 0 ? &plain_ : nullptr);
    });
    return batches_;
}

Swiglu swiglu_of(const SwigluSpec& spec, SwigluDraws& draws) {
    Swiglu out;
    out.spec = spec;
    const std::vector<SwigluDraws::Batch>& batches = draws.of(spec.seed, spec.fix);
    const std::vector<float> amaxes = amaxes_of(spec, batches), scales = scales_of(amaxes, spec);
    out.steps.resize(kSteps);
    parallel_for(out.steps.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            out.steps[i] = step_of(spec, batches[i], static_cast<int>(i), amaxes[i], scales[i]);
    });
    for (int half = 0; half <= 8; ++half) {
        const double k = std::exp2(half / 2.0);
        out.norms.push_back({.k = k,
                             .swiglu = median_amax(batches, Act::swiglu, spec.rho, k),
                             .gelu = median_amax(batches, Act::gelu, spec.rho, k),
                             .clamp10 = median_amax(batches, Act::clamp10, spec.rho, k)});
    }
    for (const double k : {1.0, 2.0, 4.0, 8.0, 16.0})
        out.inliers.push_back(inlier_row(draws.plain(), batches.front(), spec.rho, k));
    for (const auto& [label, fix, margin] :
         {std::tuple<std::string_view, std::string_view, int>{"margin 1", "none", 1},
          {"margin 2", "none", 2},
          {"clamp 10", "clamp10", 0},
          {"Smooth-SwiGLU", "smooth", 0},
          {"current scaling", "current", 0},
          {"GELU", "gelu", 0},
          {"GELU, margin 1", "gelu", 1}})
        out.repairs.push_back({label, count_saturated(spec, fix, margin, batches)});
    out.channel = aligned(batches.front(), act_of(spec.fix), spec.rho, spec.k).h;
    const Act act = act_of(spec.fix);
    out.amax_ratio =
        median_amax(batches, act, spec.rho, 2 * spec.k) / median_amax(batches, act, spec.rho, spec.k);
    return out;
}

}  // namespace fp8lab::wide
