#include "core/nn/optimizer.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr std::size_t kGrain = 32768;  // elements a thread takes at least

// 1 for NaN and infinities, from the bits: or-ed over a loop it vectorises, where a sum of floats would not.
std::uint32_t nonfinite_bit(float x) {
    return (std::bit_cast<std::uint32_t>(x) & 0x7F800000u) == 0x7F800000u;
}

bool adamw_range(const OptimizerStep& how, std::span<float> w, std::span<const float> g, std::span<float> m,
                 std::span<float> v) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
    constexpr float kEps = 1e-8F;
    const auto b1 = static_cast<float>(kBeta1), b2 = static_cast<float>(kBeta2);
    const auto new1 = static_cast<float>(1 - kBeta1), new2 = static_cast<float>(1 - kBeta2);
    const int t = how.step + 1;
    const auto rate = static_cast<float>(how.lr / (1 - std::pow(kBeta1, t)));
    const auto spread = static_cast<float>(1 / std::sqrt(1 - std::pow(kBeta2, t)));
    const auto decay = static_cast<float>(how.lr * how.weight_decay);
    std::uint32_t nonfinite = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
        m[i] = b1 * m[i] + new1 * g[i];
        v[i] = b2 * v[i] + new2 * g[i] * g[i];
        const float next = w[i] - decay * w[i] - rate * m[i] / (std::sqrt(v[i]) * spread + kEps);
        w[i] = next;
        nonfinite |= nonfinite_bit(next);
    }
    return nonfinite == 0;
}

bool sgd_range(const OptimizerStep& how, std::span<float> w, std::span<const float> g) {
    const auto rate = static_cast<float>(how.lr), decay = static_cast<float>(how.lr * how.weight_decay);
    std::uint32_t nonfinite = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
        w[i] -= decay * w[i] + rate * g[i];
        nonfinite |= nonfinite_bit(w[i]);
    }
    return nonfinite == 0;
}

}  // namespace

bool update(const OptimizerStep& how, std::span<float> w, std::span<const float> g, Moments& moments) {
    const bool adamw = how.kind == OptimizerKind::adamw;
    if (adamw) {
        moments.m.resize(w.size());
        moments.v.resize(w.size());
    }
    std::atomic<bool> finite = true;
    parallel_for(w.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        const auto part = [&](auto& values) { return std::span(values).subspan(begin, end - begin); };
        const bool ok = adamw ? adamw_range(how, part(w), part(g), part(moments.m), part(moments.v))
                              : sgd_range(how, part(w), part(g));
        if (!ok) finite = false;
    });
    return finite;
}

}  // namespace fp8lab
