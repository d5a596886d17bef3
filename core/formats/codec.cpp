#include "core/formats/codec.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/error.h"
#include "core/base/named.h"
#include "core/formats/codec_row.h"

namespace fp8lab {
namespace {

constexpr std::uint32_t kFloatMagnitude = 0x7FFFFFFF, kFloatInfinity = 0x7F800000;
constexpr std::uint32_t kFloatMantissa = 0x007FFFFF, kFloatImplicitOne = 0x00800000;

// Never reached by a magnitude: "this format has no such code".
constexpr std::uint32_t kNoMagnitude = 0x7FFFFFFF;

constexpr std::array kRoundings = {Named{Rounding::nearest, "nearest"},
                                   Named{Rounding::toward_zero, "toward-zero"},
                                   Named{Rounding::stochastic, "stochastic"}, Named{Rounding::up, "up"}};
constexpr std::array kOverflows = {Named{Overflow::saturate, "saturate"},
                                   Named{Overflow::nonsaturate, "nonsaturate"}};

SignRule sign_rule(const FormatInfo& format) {
    if (format.kind == Kind::integer) return SignRule::twos_complement;
    if (!format.is_signed) return SignRule::none;
    return format.specials == Specials::fnuz ? SignRule::no_negative_zero : SignRule::sign_magnitude;
}

void check_rounding(const FormatInfo& format, Rounding rounding) {
    const auto valid = roundings(format);
    if (std::find(valid.begin(), valid.end(), rounding) != valid.end()) return;
    throw unknown_name("rounding", std::string(format.name) + " rounding", to_string(rounding), valid,
                       [](Rounding r) { return to_string(r); });
}

// The magnitude of E8M0 when rounding up is the exponent field, one more if there is a mantissa. Its code 0
// stands for 2^-127, half of float32's smallest normal value, so there the mantissa counts from that half on.
std::uint32_t round_up_to_power_of_two(std::uint32_t pattern) {
    const std::uint32_t just_below_next = pattern < kFloatImplicitOne ? kFloatMantissa / 2 : kFloatMantissa;
    return (pattern + just_below_next) >> 23;
}

// |x| in steps of the format, as 32.32 fixed point; then one integer decision. Below min_exponent the step
// stays the same while the significand loses its implicit one: the subnormal range. The carry of a rounding
// that reaches the next binade runs into the exponent field by itself.
std::uint32_t round_magnitude(const CodecRow& row, std::uint32_t pattern, std::uint32_t random_bits) {
    if (row.rounding == Rounding::up) return round_up_to_power_of_two(pattern);
    const int exponent = static_cast<int>(pattern >> 23);
    std::uint32_t significand = pattern - row.rebias;
    int shift = row.discard;
    if (exponent < row.min_exponent) {
        significand = (pattern & kFloatMantissa) | (exponent != 0 ? kFloatImplicitOne : 0);
        shift = std::min(row.discard + row.min_exponent - std::max(exponent, 1), 63);
    }
    const std::uint64_t steps = (std::uint64_t{significand} << 32) >> shift;
    const auto whole = static_cast<std::uint32_t>(steps >> 32), fraction = static_cast<std::uint32_t>(steps);
    constexpr std::uint32_t kHalf = 0x80000000;
    switch (row.rounding) {
        case Rounding::nearest:
            return whole + (fraction > kHalf || (fraction == kHalf && whole % 2 == 1) ? 1 : 0);
        case Rounding::stochastic:
            return whole + (fraction > ~random_bits ? 1 : 0);  // fraction + random carries
        case Rounding::toward_zero:
        case Rounding::up:
            break;
    }
    return whole;
}

std::uint32_t join_sign(const CodecRow& row, std::uint32_t magnitude, bool negative) {
    if (!negative) return magnitude;
    const std::uint32_t sign_bit = 1U << row.magnitude_bits;
    switch (row.sign_rule) {
        case SignRule::sign_magnitude:
            return sign_bit | magnitude;
        case SignRule::no_negative_zero:
            return magnitude == 0 ? 0 : sign_bit | magnitude;
        case SignRule::twos_complement:
            return (2 * sign_bit - magnitude) & (2 * sign_bit - 1);
        case SignRule::none:
            break;
    }
    return magnitude;
}

// The float32 pattern of a magnitude, as if every one were a number.
std::uint32_t pattern_of(const CodecRow& row, std::uint32_t magnitude) {
    const std::uint32_t first_normal = 1U << (23 - row.discard);
    if (magnitude >= first_normal) return (magnitude << row.discard) + row.rebias;
    const auto sum = std::bit_cast<float>(row.subnormal_base + magnitude);
    return std::bit_cast<std::uint32_t>(sum - row.subnormal_offset);
}

Kernel kernel_for(const CodecRow& row) {
    // A format that discards nothing (FP32) has nothing to round, and the other kernels have no bits to work
    // on.
    if (row.discard == 0) return Kernel::toward_zero;
    switch (row.rounding) {
        case Rounding::toward_zero:
            return Kernel::toward_zero;
        case Rounding::stochastic:
            return Kernel::stochastic;
        case Rounding::up:
            return Kernel::up;
        case Rounding::nearest:
            break;
    }
    // The narrow kernel adds up to 2^discard times the clamp, which has to be a float32, and takes the parity
    // of the significand for that of the code: wrong without mantissa bits.
    const int largest_exponent = static_cast<int>(row.clamp >> 23);
    const bool narrow = largest_exponent + row.discard < 255 && row.discard < 23;
    return narrow ? Kernel::nearest_narrow : Kernel::nearest;
}

}  // namespace

Rounding parse_rounding(std::string_view text, std::string_view where) {
    return parse_named(kRoundings, "rounding", text, where);
}
Overflow parse_overflow(std::string_view text, std::string_view where) {
    return parse_named(kOverflows, "overflow", text, where);
}
std::string_view to_string(Rounding rounding) { return name_in(kRoundings, rounding); }
std::string_view to_string(Overflow overflow) { return name_in(kOverflows, overflow); }

Overflow default_overflow(const FormatInfo& format) {
    return width_bits(format) <= 8 ? Overflow::saturate : Overflow::nonsaturate;
}
Rounding default_rounding(const FormatInfo& format) { return roundings(format).front(); }

std::span<const Rounding> roundings(const FormatInfo& format) {
    static constexpr std::array kScale = {Rounding::up, Rounding::toward_zero};
    static constexpr std::array kOther = {Rounding::nearest, Rounding::toward_zero, Rounding::stochastic};
    if (format.specials == Specials::scale) return kScale;
    return kOther;
}

CodecRow make_row(const FormatInfo& format, Rounding rounding, Overflow overflow) {
    check_rounding(format, rounding);
    const bool scale = format.specials == Specials::scale;
    CodecRow row;
    row.rounding = rounding;
    row.sign_rule = sign_rule(format);
    row.magnitude_bits = format.exponent_bits + format.mantissa_bits;
    row.align = width_bits(format) > 16 ? 32 - width_bits(format) : 0;
    row.discard = 23 - format.mantissa_bits;
    // E8M0's field is float32's own: nothing to rebias, no smallest normal value.
    row.min_exponent = scale ? 0 : 128 - format.bias;
    row.rebias = scale ? 0 : static_cast<std::uint32_t>(127 - format.bias) << 23;
    row.nan_code = canonical_nan(format) >> row.align;

    // The code after the largest finite one is what overflow becomes: Inf in ieee formats, NaN in fn, fnuz
    // (where it is the sign bit alone) and scale. Rounding toward zero never overflows a finite value (IEEE
    // 754, 7.4).
    const std::uint32_t largest = max_code(format) >> row.align;
    const bool beyond = overflow == Overflow::nonsaturate && has_nan(format);
    row.infinite_limit = beyond ? largest + 1 : largest;
    row.finite_limit = rounding == Rounding::toward_zero ? largest : row.infinite_limit;

    // The base is the float whose ulp is the smallest step, 2^(1 - bias - M + 23). E8M0's code 0 is 2^-126 -
    // 2^-127.
    row.subnormal_base =
        scale ? kFloatImplicitOne : static_cast<std::uint32_t>(row.min_exponent + row.discard) << 23;
    row.subnormal_offset = scale ? 0x1p-127F : std::bit_cast<float>(row.subnormal_base);
    row.clamp = pattern_of(row, row.finite_limit);
    row.kernel = kernel_for(row);
    row.infinity = has_infinity(format) ? largest + 1 : kNoMagnitude;
    row.largest_not_nan = has_infinity(format) ? largest + 1 : largest;
    return row;
}

std::uint32_t encode_one(const CodecRow& row, float value, std::uint32_t random_bits) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t pattern = all & kFloatMagnitude;
    if (pattern > kFloatInfinity) return row.nan_code << row.align;
    const std::uint32_t magnitude =
        pattern == kFloatInfinity ? row.infinite_limit
                                  : std::min(round_magnitude(row, pattern, random_bits), row.finite_limit);
    return join_sign(row, magnitude, all != pattern) << row.align;
}

std::uint32_t encode(const FormatInfo& format, float value, Rounding rounding, Overflow overflow,
                     std::uint32_t random_bits) {
    return encode_one(make_row(format, rounding, overflow), value, random_bits);
}

float decode(const FormatInfo& format, std::uint32_t code) {
    return static_cast<float>(value_of(format, code));
}

void count_rounded_up(std::span<const std::uint32_t> fraction, std::span<const std::uint32_t> random,
                      std::span<std::uint32_t> counts) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const std::uint32_t sum = fraction[i] + random[i];
        counts[i] += sum < random[i] ? 1 : 0;
    }
}

}  // namespace fp8lab
