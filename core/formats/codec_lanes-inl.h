// Internal to codec_simd.cpp: the codec for one vector of values. Included once for every vector target.
#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/rng.h"
#include "core/formats/codec_row.h"

#if defined(FP8LAB_CODEC_LANES) == defined(HWY_TARGET_TOGGLE)  // Highway's include guard per target
#ifdef FP8LAB_CODEC_LANES
#undef FP8LAB_CODEC_LANES
#else
#define FP8LAB_CODEC_LANES
#endif

#include <hwy/highway.h>

#include "core/base/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fp8lab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Patterns and codes are non-negative: as signed integers they compare at no extra cost.
using Ints = hn::ScalableTag<std::int32_t>;
using Bits = hn::ScalableTag<std::uint32_t>;
using Floats = hn::ScalableTag<float>;
using IntVec = hn::Vec<Ints>;
using FloatVec = hn::Vec<Floats>;

constexpr std::size_t kLanes = hn::MaxLanes(Ints());
constexpr std::size_t kChunk = 4096;  // elements between two fills of the random numbers

HWY_INLINE IntVec constant(std::uint32_t value) { return hn::Set(Ints(), static_cast<std::int32_t>(value)); }
HWY_INLINE IntVec shift_right(IntVec v, int count) {
    return hn::BitCast(Ints(), hn::ShiftRightSame(hn::BitCast(Bits(), v), count));
}

// Adding the float whose ulp is the smallest step rounds a subnormal to nearest even in the adder.
HWY_INLINE IntVec round_nearest(const CodecRow& row, IntVec pattern) {
    const IntVec rebiased = hn::Sub(pattern, constant(row.rebias));
    const IntVec odd = hn::And(shift_right(rebiased, row.discard), constant(1));
    const IntVec just_below_half = constant((1U << (row.discard - 1)) - 1);
    const IntVec normal = shift_right(hn::Add(hn::Add(rebiased, just_below_half), odd), row.discard);
    const FloatVec sum = hn::Add(hn::BitCast(Floats(), pattern), hn::Set(Floats(), row.subnormal_offset));
    const IntVec subnormal = hn::Sub(hn::BitCast(Ints(), sum), constant(row.subnormal_base));
    const IntVec smallest_normal = constant(static_cast<std::uint32_t>(row.min_exponent) << 23);
    return hn::IfThenElse(hn::Lt(pattern, smallest_normal), subnormal, normal);
}

// max(a - b, 0) of float32 exponents, which lie in the upper 16 bits: one saturating subtraction.
HWY_INLINE IntVec positive_difference(IntVec a, IntVec b) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Max(hn::Sub(a, b), hn::Zero(Ints()));
#else
    const hn::Repartition<std::uint16_t, Ints> d16;
    return hn::BitCast(Ints(), hn::SaturatedSub(hn::BitCast(d16, a), hn::BitCast(d16, b)));
#endif
}

// The same in fewer steps where |x| may be clamped first and the exponents leave room: adding to |x| the
// float whose ulp is the format's step at |x| rounds normal values too. The sum's significand then lacks one
// binade of codes for each binade that |x| is above the smallest normal value.
HWY_INLINE IntVec round_nearest_narrow(const CodecRow& row, IntVec pattern) {
    const IntVec clamped = hn::Min(pattern, constant(row.clamp));
    const IntVec exponent = hn::And(clamped, constant(0x7F800000));
    const IntVec smallest_normal = constant(static_cast<std::uint32_t>(row.min_exponent) << 23);
    const IntVec binades = positive_difference(exponent, smallest_normal);
    const IntVec base = hn::Add(binades, constant(row.subnormal_base));
    const FloatVec sum = hn::Add(hn::BitCast(Floats(), clamped), hn::BitCast(Floats(), base));
    return hn::Add(hn::Sub(hn::BitCast(Ints(), sum), base), shift_right(binades, row.discard));
}

// Rounding toward zero and stochastic rounding: the bits that are shifted out of the significand decide.
template <Kernel K>
HWY_INLINE IntVec round_by_shift(const CodecRow& row, IntVec pattern, const std::uint32_t* random,
                                 std::size_t index) {
    const IntVec exponent = shift_right(pattern, 23);
    const auto is_subnormal = hn::Lt(exponent, constant(static_cast<std::uint32_t>(row.min_exponent)));
    const IntVec implicit = hn::IfThenElseZero(hn::Gt(exponent, hn::Zero(Ints())), constant(0x00800000));
    const IntVec significand =
        hn::IfThenElse(is_subnormal, hn::Or(hn::And(pattern, constant(0x007FFFFF)), implicit),
                       hn::Sub(pattern, constant(row.rebias)));
    const IntVec subnormal_shift = hn::Sub(
        constant(static_cast<std::uint32_t>(row.discard + row.min_exponent)), hn::Max(exponent, constant(1)));
    const IntVec shift =
        hn::IfThenElse(is_subnormal, subnormal_shift, constant(static_cast<std::uint32_t>(row.discard)));
    const auto value = hn::BitCast(Bits(), significand);
    const auto at_most_31 = [](IntVec v) HWY_ATTR { return hn::BitCast(Bits(), hn::Min(v, constant(31))); };
    const IntVec whole = hn::BitCast(Ints(), hn::Shr(value, at_most_31(shift)));
    if constexpr (K == Kernel::toward_zero) return whole;

    // The 32 bits below the point: fraction + random carries with probability fraction / 2^32. A lane that
    // takes the other branch shifts by 0, for counts outside 0-31 have no meaning.
    const IntVec excess = hn::Sub(shift, constant(32));
    const auto at_least_0 = [](IntVec v) HWY_ATTR { return hn::Max(v, hn::Zero(Ints())); };
    const auto left = hn::Shl(value, at_most_31(at_least_0(hn::Neg(excess))));
    const auto right = hn::Shr(value, at_most_31(at_least_0(excess)));
    const auto fraction =
        hn::IfThenElse(hn::MaskFromVec(hn::BitCast(Bits(), hn::BroadcastSignBit(excess))), left, right);
    const auto carries = hn::Gt(fraction, hn::Not(hn::LoadU(Bits(), random + index)));
    return hn::Sub(whole, hn::BitCast(Ints(), hn::VecFromMask(Bits(), carries)));
}

HWY_INLINE IntVec round_up_to_power_of_two(IntVec pattern) {
    const auto is_denormal = hn::Lt(pattern, constant(0x00800000));
    return shift_right(
        hn::Add(pattern, hn::IfThenElse(is_denormal, constant(0x003FFFFF), constant(0x007FFFFF))), 23);
}

HWY_INLINE IntVec join_other_sign(const CodecRow& row, IntVec magnitude, IntVec sign, IntVec all) {
    switch (row.sign_rule) {
        case SignRule::no_negative_zero:
            return hn::Or(magnitude, hn::IfThenZeroElse(hn::Eq(magnitude, hn::Zero(Ints())), sign));
        case SignRule::twos_complement: {
            const IntVec negative = hn::BroadcastSignBit(all);
            return hn::And(hn::Sub(hn::Xor(magnitude, negative), negative),
                           constant((2U << row.magnitude_bits) - 1));
        }
        case SignRule::sign_magnitude:
        case SignRule::none:
            break;
    }
    return magnitude;
}

// Codes, right-aligned, of one vector of values that are multiplied by the scale already. Stochastic rounding
// takes the random numbers from `index` on; elsewhere `random` is null. kSignMagnitude: the row's rule, known
// to the compiler.
template <Kernel K, bool kSignMagnitude>
HWY_INLINE IntVec encode_lanes(const CodecRow& row, FloatVec value, const std::uint32_t* random,
                               std::size_t index) {
    const IntVec all = hn::BitCast(Ints(), value);
    const IntVec pattern = hn::And(all, constant(0x7FFFFFFF));
    const IntVec infinity = constant(0x7F800000);
    IntVec magnitude;
    if constexpr (K == Kernel::nearest_narrow) magnitude = round_nearest_narrow(row, pattern);
    if constexpr (K == Kernel::nearest) magnitude = round_nearest(row, pattern);
    if constexpr (K == Kernel::up) magnitude = round_up_to_power_of_two(pattern);
    if constexpr (K == Kernel::toward_zero || K == Kernel::stochastic) {
        magnitude = round_by_shift<K>(row, pattern, random, index);
    }
    if constexpr (K != Kernel::nearest_narrow) magnitude = hn::Min(magnitude, constant(row.finite_limit));
    // Elsewhere Inf, rounded as a number, is beyond the range and the limit is the same.
    if constexpr (K == Kernel::toward_zero) {
        magnitude = hn::IfThenElse(hn::Eq(pattern, infinity), constant(row.infinite_limit), magnitude);
    }
    const IntVec sign =
        hn::And(shift_right(all, 31 - row.magnitude_bits), constant(1U << row.magnitude_bits));
    const IntVec code = kSignMagnitude ? hn::Or(magnitude, sign) : join_other_sign(row, magnitude, sign, all);
    return hn::IfThenElse(hn::Gt(pattern, infinity), constant(row.nan_code), code);
}

template <bool kSignMagnitude>
HWY_INLINE FloatVec decode_lanes(const CodecRow& row, IntVec code) {
    if (!kSignMagnitude && row.sign_rule == SignRule::twos_complement) {
        return hn::ConvertTo(Floats(), hn::ShiftRight<24>(hn::ShiftLeft<24>(code)));
    }
    const IntVec magnitude = hn::And(code, constant((1U << row.magnitude_bits) - 1));
    const FloatVec subnormal =
        hn::Sub(hn::BitCast(Floats(), hn::Add(magnitude, constant(row.subnormal_base))),
                hn::Set(Floats(), row.subnormal_offset));
    const IntVec normal = hn::Add(hn::ShiftLeftSame(magnitude, row.discard), constant(row.rebias));
    const IntVec smallest_normal = constant(1U << (23 - row.discard));
    IntVec value = hn::IfThenElse(hn::Lt(magnitude, smallest_normal), hn::BitCast(Ints(), subnormal), normal);
    value = hn::IfThenElse(hn::Eq(magnitude, constant(row.infinity)), constant(0x7F800000), value);
    auto is_nan = hn::Gt(magnitude, constant(row.largest_not_nan));
    if (!kSignMagnitude && row.sign_rule == SignRule::no_negative_zero) {
        is_nan = hn::Eq(hn::And(code, constant((2U << row.magnitude_bits) - 1)),
                        constant(1U << row.magnitude_bits));
    }
    if (kSignMagnitude || row.sign_rule != SignRule::none) {
        const IntVec sign = hn::ShiftLeftSame(code, 31 - row.magnitude_bits);
        value = hn::Or(value, hn::And(sign, constant(0x80000000)));
    }
    return hn::BitCast(Floats(), hn::IfThenElse(is_nan, constant(0x7FC00000), value));
}

// Room for a chunk, a start in the middle of a Philox block, and the last vector's excess.
using RandomBuffer = std::array<std::uint32_t, kChunk + 4 + kPhiloxExcess>;

// random_bits(seed, stream, first + i) for i < count. Returns where number `first` stands.
const std::uint32_t* fill_random(const CastOptions& options, std::uint64_t first, std::size_t count,
                                 RandomBuffer& buffer) {
    const std::uint64_t first_block = first / 4, end_block = (first + count + 3) / 4;
    philox_numbers(options.seed, options.stream, first_block, end_block - first_block, buffer.data());
    return buffer.data() + first % 4;
}

}  // namespace fp8lab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
