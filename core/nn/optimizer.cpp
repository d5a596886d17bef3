#include "core/nn/optimizer.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr std::size_t kUpdateGrain = 32768;  // elements a thread takes at least

// 1 for NaN and infinities, from the bits: or-ed over a loop it vectorises, where a sum of floats would not.
std::uint32_t nonfinite_bit(float x) {
    return (std::bit_cast<std::uint32_t>(x) & 0x7F800000u) == 0x7F800000u;
}
std::uint64_t nonfinite_bit(double x) {
    constexpr std::uint64_t kExponent = 0x7FF0000000000000u;
    return (std::bit_cast<std::uint64_t>(x) & kExponent) == kExponent;
}

// AdamW's constants of one step.
template <class T>
struct AdamW {
    explicit AdamW(const OptimizerStep& how)
        : rate(static_cast<T>(how.lr / (1 - std::pow(how.beta1, how.step + 1)))),
          spread(static_cast<T>(1 / std::sqrt(1 - std::pow(how.beta2, how.step + 1)))),
          eps(static_cast<T>(how.eps)) {}
    T update(T m, T v) const { return rate * m / (std::sqrt(v) * spread + eps); }

    T rate, spread, eps;
};

template <class T>
bool adamw_range(const OptimizerStep& how, std::span<T> w, std::span<const T> g, std::span<T> m,
                 std::span<T> v) {
    const auto b1 = static_cast<T>(how.beta1), b2 = static_cast<T>(how.beta2);
    const auto new1 = static_cast<T>(1 - how.beta1), new2 = static_cast<T>(1 - how.beta2);
    const auto decay = static_cast<T>(how.lr * how.weight_decay);
    const AdamW<T> adamw(how);
    decltype(nonfinite_bit(T{})) nonfinite = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
        m[i] = b1 * m[i] + new1 * g[i];
        v[i] = b2 * v[i] + new2 * g[i] * g[i];
        const T next = w[i] - decay * w[i] - adamw.update(m[i], v[i]);
        w[i] = next;
        nonfinite |= nonfinite_bit(next);
    }
    return nonfinite == 0;
}

template <class T>
bool sgd_range(const OptimizerStep& how, std::span<T> w, std::span<const T> g) {
    const auto rate = static_cast<T>(how.lr), decay = static_cast<T>(how.lr * how.weight_decay);
    decltype(nonfinite_bit(T{})) nonfinite = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
        w[i] -= decay * w[i] + rate * g[i];
        nonfinite |= nonfinite_bit(w[i]);
    }
    return nonfinite == 0;
}

template <class T>
bool update_all(const OptimizerStep& how, std::span<T> w, std::span<const T> g, MomentsOf<T>& moments) {
    const bool adamw = how.kind == OptimizerKind::adamw;
    if (adamw) {
        moments.m.resize(w.size());
        moments.v.resize(w.size());
    }
    std::atomic<bool> finite = true;
    parallel_for(w.size(), kUpdateGrain, [&](std::size_t begin, std::size_t end) {
        const auto part = [&](auto& values) { return std::span(values).subspan(begin, end - begin); };
        const bool ok = adamw ? adamw_range<T>(how, part(w), part(g), part(moments.m), part(moments.v))
                              : sgd_range<T>(how, part(w), part(g));
        if (!ok) finite = false;
    });
    return finite;
}

template <class T>
double limit_all(std::span<const std::span<T>> gradients, double limit) {
    double sum = 0;
    for (const std::span<T> g : gradients)
        for (const T x : g) sum += static_cast<double>(x) * static_cast<double>(x);
    const double norm = std::sqrt(sum), factor = limit / (norm + 1e-6);
    if (!(factor < 1)) return norm;
    for (const std::span<T> g : gradients)
        for (T& x : g) x *= static_cast<T>(factor);
    return norm;
}

}  // namespace

bool update(const OptimizerStep& how, std::span<float> w, std::span<const float> g, Moments& moments) {
    return update_all(how, w, g, moments);
}
bool update(const OptimizerStep& how, std::span<double> w, std::span<const double> g,
            MomentsOf<double>& moments) {
    return update_all(how, w, g, moments);
}

std::int64_t count_updates_above(const OptimizerStep& how, const Moments& moments, double limit) {
    const AdamW<float> adamw(how);
    const auto above = static_cast<float>(limit);
    std::atomic<std::int64_t> count = 0;
    parallel_for(moments.m.size(), kUpdateGrain, [&](std::size_t begin, std::size_t end) {
        std::int64_t here = 0;
        for (std::size_t i = begin; i < end; ++i)
            here += std::fabs(adamw.update(moments.m[i], moments.v[i])) > above;
        count += here;
    });
    return count;
}

double limit_norm(std::span<const std::span<float>> gradients, double limit) {
    return limit_all(gradients, limit);
}
double limit_norm(std::span<const std::span<double>> gradients, double limit) {
    return limit_all(gradients, limit);
}

}  // namespace fp8lab
