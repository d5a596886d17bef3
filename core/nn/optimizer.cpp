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
    const auto b1 = static_cast<float>(how.beta1), b2 = static_cast<float>(how.beta2),
               eps = static_cast<float>(how.eps);
    const auto new1 = static_cast<float>(1 - how.beta1), new2 = static_cast<float>(1 - how.beta2);
    const int t = how.step + 1;
    const auto rate = static_cast<float>(how.lr / (1 - std::pow(how.beta1, t)));
    const auto spread = static_cast<float>(1 / std::sqrt(1 - std::pow(how.beta2, t)));
    const auto decay = static_cast<float>(how.lr * how.weight_decay);
    std::uint32_t nonfinite = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
        m[i] = b1 * m[i] + new1 * g[i];
        v[i] = b2 * v[i] + new2 * g[i] * g[i];
        const float next = w[i] - decay * w[i] - rate * m[i] / (std::sqrt(v[i]) * spread + eps);
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

double limit_norm(std::span<const std::span<float>> gradients, double limit) {
    double sum = 0;
    for (const std::span<float> g : gradients)
        for (const float x : g) sum += static_cast<double>(x) * static_cast<double>(x);
    const double norm = std::sqrt(sum), factor = limit / (norm + 1e-6);
    if (!(factor < 1)) return norm;
    for (const std::span<float> g : gradients)
        for (float& x : g) x *= static_cast<float>(factor);
    return norm;
}

}  // namespace fp8lab
