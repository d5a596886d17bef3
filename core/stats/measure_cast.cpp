// Compiled once per vector target by foreach_target.h; the best one is chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/stats/measure_cast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/stats/tensor_stats.h"

HWY_BEFORE_NAMESPACE();
namespace fp8lab::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Elements that are handled together: 16 float64 sums side by side whatever the width of a vector, so that
// every machine adds in the same order.
constexpr std::size_t kGroup = 16;

// A group's worth of float64 sums, in registers.
class GroupSums {
  public:
    GroupSums() {
        for (auto& sum : sums_) sum = hn::Zero(kTag);
    }
    // The square of a float is exact in float64: it makes no difference whether MulAdd fuses.
    template <class Vector>
    HWY_INLINE void add_squares(std::size_t part, Vector values) {
        const auto wide = hn::PromoteTo(kTag, values);
        sums_[part] = hn::MulAdd(wide, wide, sums_[part]);
    }
    template <class Vector>
    HWY_INLINE void add_sizes(std::size_t part, Vector values) {
        sums_[part] = hn::Add(sums_[part], hn::PromoteTo(kTag, hn::Abs(values)));
    }
    double total() const {
        HWY_ALIGN std::array<double, kGroup> lanes;
        for (std::size_t part = 0; part < kParts; ++part)
            hn::Store(sums_[part], kTag, lanes.data() + part * kLanes);
        double sum = 0;
        for (const double lane : lanes) sum += lane;
        return sum;
    }

    using Tag = hn::CappedTag<double, kGroup>;
    static constexpr Tag kTag{};
    static constexpr std::size_t kLanes = hn::MaxLanes(Tag{}), kParts = kGroup / kLanes;

  private:
    hn::Vec<Tag> sums_[kParts];
};

class Measure {
  public:
    explicit Measure(float limit) : limit_(limit), amax_(hn::Zero(kTag)) {}

    // kGroup elements.
    HWY_INLINE void add(const float* x, const float* q, const float* scales) {
        std::size_t underflow = 0;
        const auto zero = hn::Zero(kTag), largest = hn::Set(kTag, std::numeric_limits<float>::max());
        for (std::size_t i = 0; i < kGroup; i += hn::MaxLanes(kTag)) {
            const auto v = hn::LoadU(kTag, x + i), scale = hn::LoadU(kTag, scales + i);
            const auto size = hn::Abs(v);
            const auto finite = hn::Le(size, largest);  // false for NaN
            const auto lost = hn::And(hn::And(finite, hn::Ne(v, zero)), hn::Eq(hn::LoadU(kTag, q + i), zero));
            amax_ = hn::IfThenElse(hn::Gt(size, amax_), size, amax_);
            nonfinite_ += kLanes - hn::CountTrue(kTag, finite);
            underflow += hn::CountTrue(kTag, lost);
            overflow_ += hn::CountTrue(kTag, hn::Gt(hn::Mul(size, scale), hn::Set(kTag, limit_)));
        }
        underflow_ += underflow;
        add_sums(x, q);
        if (underflow > 0) add_lost(x, q);  // most tensors lose nothing
    }

    CastStats result(std::size_t n) const {
        CastStats stats;
        stats.n = static_cast<std::int64_t>(n);
        stats.amax = hn::GetLane(hn::MaxOfLanes(kTag, amax_));
        stats.underflow = static_cast<std::int64_t>(underflow_);
        stats.overflow = static_cast<std::int64_t>(overflow_);
        stats.nonfinite = static_cast<std::int64_t>(nonfinite_);
        stats.signal = signal_.total();
        stats.noise = noise_.total();
        stats.mass = {size_.total(), lost_size_.total(), lost_square_.total()};
        return stats;
    }

  private:
    HWY_INLINE void add_sums(const float* x, const float* q) {
        const hn::Rebind<float, GroupSums::Tag> half;
        const auto largest = hn::Set(half, std::numeric_limits<float>::max());
        for (std::size_t part = 0; part < GroupSums::kParts; ++part) {
            const auto v = hn::LoadU(half, x + part * GroupSums::kLanes);
            const auto error = hn::Sub(v, hn::LoadU(half, q + part * GroupSums::kLanes));
            const auto finite = hn::Le(hn::Abs(v), largest);
            const auto kept = hn::IfThenElseZero(finite, v);
            signal_.add_squares(part, kept);
            noise_.add_squares(part, hn::IfThenElseZero(finite, error));
            size_.add_sizes(part, kept);
        }
    }

    HWY_INLINE void add_lost(const float* x, const float* q) {
        const hn::Rebind<float, GroupSums::Tag> half;
        const auto zero = hn::Zero(half), largest = hn::Set(half, std::numeric_limits<float>::max());
        for (std::size_t part = 0; part < GroupSums::kParts; ++part) {
            const auto v = hn::LoadU(half, x + part * GroupSums::kLanes);
            const auto is_lost = hn::And(hn::Le(hn::Abs(v), largest),
                                         hn::Eq(hn::LoadU(half, q + part * GroupSums::kLanes), zero));
            const auto lost = hn::IfThenElseZero(is_lost, v);
            lost_size_.add_sizes(part, lost);
            lost_square_.add_squares(part, lost);
        }
    }

    using Tag = hn::CappedTag<float, kGroup>;
    static constexpr Tag kTag{};
    static constexpr std::size_t kLanes = hn::MaxLanes(Tag{});
    float limit_;
    hn::Vec<Tag> amax_;
    std::size_t underflow_ = 0, overflow_ = 0, nonfinite_ = 0;
    GroupSums signal_, noise_, size_, lost_size_, lost_square_;
};

// `limit`: the largest float that does not overflow. `stride`: 0 for one scale (repeated kGroup times),
// else 1.
CastStats measure(const float* x, const float* q, const float* scales, std::size_t stride, std::size_t n,
                  float limit) {
    Measure sums(limit);
    const std::size_t whole = n - n % kGroup;
    for (std::size_t i = 0; i < whole; i += kGroup) sums.add(x + i, q + i, scales + stride * i);
    if (whole < n) {  // the rest, filled up with zeros: they change no count and no sum
        std::array<float, kGroup> last_x{}, last_q{}, last_scales{};
        std::copy(x + whole, x + n, last_x.begin());
        std::copy(q + whole, q + n, last_q.begin());
        std::copy_n(scales + stride * whole, n - whole, last_scales.begin());
        sums.add(last_x.data(), last_q.data(), last_scales.data());
    }
    return sums.result(n);
}

}  // namespace fp8lab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fp8lab {

HWY_EXPORT(measure);

CastStats measure_cast(std::span<const float> x, std::span<const float> q, std::span<const float> scales,
                       OverflowThreshold threshold) {
    const float limit = threshold.largest_below();
    const bool one_scale = scales.size() == 1;
    std::array<float, HWY_NAMESPACE::kGroup> repeated{};
    if (one_scale) repeated.fill(scales[0]);
    return HWY_DYNAMIC_DISPATCH(measure)(x.data(), q.data(), one_scale ? repeated.data() : scales.data(),
                                         one_scale ? 0 : 1, x.size(), limit);
}

}  // namespace fp8lab
#endif
