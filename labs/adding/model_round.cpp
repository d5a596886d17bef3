#include "labs/adding/model_round.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/formats/codec.h"

namespace fp8lab::adding {

namespace {

struct MethodName {
    Method method;
    std::string_view id, label;
};
constexpr std::array kNames = {MethodName{Method::nearest, "nearest", "Nearest"},
                               MethodName{Method::stochastic, "stochastic", "Stochastic"},
                               MethodName{Method::integer, "integer", "Notebook’s noise"},
                               MethodName{Method::constant, "constant", "Constant noise"}};

const MethodName& name_of(Method method) {
    return *std::find_if(kNames.begin(), kNames.end(),
                         [&](const MethodName& name) { return name.method == method; });
}

float nearest(const FormatInfo& format, float x) { return decode(format, encode(format, x)); }

// There are few outcomes: a search from the first is faster than any tree.
class Counts {
  public:
    void add(float value) {
        const auto face = std::ranges::find(faces_, value, &std::pair<float, int>::first);
        if (face == faces_.end())
            faces_.emplace_back(value, 1);
        else
            ++face->second;
    }
    std::map<double, int> map() const { return {faces_.begin(), faces_.end()}; }

  private:
    std::vector<std::pair<float, int>> faces_;
};

}  // namespace

std::string_view id_of(Method method) { return name_of(method).id; }
std::string_view label_of(Method method) { return name_of(method).label; }

Method parse_method(std::string_view id) {
    for (const MethodName& name : kNames)
        if (name.id == id) return name.method;
    throw unknown_name("rounding", "rounding", id, kNames, [](const MethodName& name) { return name.id; });
}

Neighbours neighbours(const FormatInfo& format, double x) {
    const auto value = static_cast<float>(x);
    const float inner = decode(format, encode(format, value, Rounding::toward_zero));
    if (inner == value) return {x, x};
    // All random bits set: away from zero whatever the distance.
    const float outer = decode(format, encode(format, value, Rounding::stochastic, Overflow::saturate, ~0U));
    return {static_cast<double>(std::min(inner, outer)), static_cast<double>(std::max(inner, outer))};
}

Rounder::Rounder(const FormatInfo& format, Method method, std::uint64_t seed, std::uint64_t stream)
    : format_(&format),
      method_(method),
      rng_(seed, stream),
      limit_(static_cast<float>(max_finite(format))),
      noise_(static_cast<float>(unit_roundoff(format))) {}

float Rounder::round(float x) {
    const auto noise = [&] { return static_cast<float>(rng_.uniform() - 0.5); };
    switch (method_) {
        case Method::nearest:
            break;
        case Method::stochastic:
            return decode(*format_,
                          encode(*format_, x, Rounding::stochastic, Overflow::saturate, rng_.bits()));
        case Method::integer:
            return std::clamp(std::nearbyint(x + noise()), -limit_, limit_);
        case Method::constant:
            return nearest(*format_, x + 2 * noise_ * noise());
    }
    return nearest(*format_, x);
}

float Rounder::stored(float result) const {
    return method_ == Method::integer ? nearest(*format_, result) : result;
}

std::vector<double> running_sum(const FormatInfo& format, Method method, float start, float addend, int terms,
                                std::uint64_t seed, std::uint64_t stream) {
    Rounder rounder(format, method, seed, stream);
    float sum = start;
    std::vector<double> out = {static_cast<double>(sum)};
    out.reserve(static_cast<std::size_t>(terms) + 1);
    for (int i = 0; i < terms; ++i) {
        const float next = rounder.stored(rounder.round(sum + addend));
        if (next == sum && method == Method::nearest) {  // and so for ever
            out.resize(static_cast<std::size_t>(terms) + 1, static_cast<double>(sum));
            break;
        }
        sum = next;
        out.push_back(static_cast<double>(sum));
    }
    return out;
}

double stall_of(const FormatInfo& format, float start, float addend) {
    float sum = start;
    for (int i = 0; i < 1 << 26; ++i) {
        const float next = nearest(format, sum + addend);
        if (next == sum) return static_cast<double>(sum);
        sum = next;
    }
    return std::numeric_limits<double>::infinity();
}

double RoundedDraws::standard_error() const { return deviation / std::sqrt(draws); }

RoundedDraws draw_rounded(const FormatInfo& format, Method method, double x, int draws, std::uint64_t seed) {
    RoundedDraws out;
    out.method = method;
    out.draws = draws;
    Rounder rounder(format, method, seed);
    Counts returned, stored;
    int off_grid = 0;
    double bias = 0, squares = 0;  // Welford's running mean and sum of squared distances from it
    for (int i = 0; i < draws; ++i) {
        const float result = rounder.round(static_cast<float>(x)), kept = rounder.stored(result);
        off_grid += result != kept;
        returned.add(result);
        stored.add(kept);
        const double error = static_cast<double>(kept) - x, distance = error - bias;
        bias += distance / (i + 1);
        squares += distance * (error - bias);
    }
    out.returned = returned.map();
    out.stored = stored.map();
    out.mean = x + bias;
    out.deviation = std::sqrt(squares / draws);
    out.off_grid_pct = 100.0 * off_grid / draws;
    return out;
}

TensorCast cast_tensor(const FormatInfo& format, Method method, std::span<const float> tensor,
                       std::uint64_t seed) {
    const float largest = amax(tensor);
    if (!(largest > 0) || !std::isfinite(largest)) return {};
    const float scale = static_cast<float>(max_finite(format)) / largest;
    Rounder rounder(format, method, seed);
    double signal = 0, noise = 0, off_grid = 0;
    for (const float x : tensor) {
        const float returned = rounder.round(x * scale), stored = rounder.stored(returned);
        off_grid += returned != stored;
        const double exact = static_cast<double>(x), error = exact - static_cast<double>(stored / scale);
        signal += exact * exact;
        noise += error * error;
    }
    return {10 * std::log10(signal / noise), 100 * off_grid / static_cast<double>(tensor.size())};
}

}  // namespace fp8lab::adding
