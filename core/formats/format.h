// Number formats as data. A new format is a new row of kFormats (format.cpp); codec, tests, command line, the menus of
// the labs and plots follow from it.
//
// The rows: numerics.md 1.1. Sources: OCP 8-bit Floating Point Specification 1.0 (E4M3, E5M2), OCP Microscaling
// Formats 1.0 (FP6, FP4, E8M0), ml_dtypes (FNUZ, IEEE-style E4M3, E3M4), IEEE 754 (FP16), PTX ISA cvt (TF32).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/choice.h"
#include "core/base/role.h"

namespace fp8lab {

enum class Kind { floating, integer };

// The meaning of the codes at the end of the range.
enum class Specials {
    ieee,    // top exponent: mantissa 0 is Inf, the rest NaN (E5M2, FP16, E4M3 IEEE, E3M4)
    fn,      // only the all-ones code (per sign) is NaN; no Inf (OCP E4M3)
    fnuz,    // the -0 code is the only NaN; no Inf, no -0 (AMD MI300)
    finite,  // every code is a number (E2M1, E2M3, E3M2, INT8)
    scale,   // unsigned powers of two, all ones is NaN; no zero (E8M0)
};

// Value of a floating code: (-1)^s 2^(e - bias) (1 + m / 2^M) for e > 0, (-1)^s 2^(1 - bias) m / 2^M for e = 0.
// Codes are the low `width_bits(format)` bits of a uint32: sign, exponent, mantissa from the top. Codes of 17 to 32 bits are
// kept in the top bits instead: TF32's code is the float32 pattern whose low 13 bits are 0, as the hardware keeps it.
// INT8 is the row without exponent bits (step 2^(1 - bias - M) = 1) and in two's complement.
struct FormatInfo {
    std::string_view name;   // "e4m3", as on the command line
    std::string_view label;  // "E4M3", as in the window
    Kind kind = Kind::floating;
    bool is_signed = true;
    int exponent_bits = 0, mantissa_bits = 0, bias = 0;
    Specials specials = Specials::ieee;
    Role role = Role::truth;  // what it is drawn as, everywhere
    bool trains = false;  // frameworks train in it without block scales: FP32, FP16, BF16 and OCP's two FP8
    bool mx = false;      // an element format of OCP Microscaling 1.0
};

// All rows, in the order of the table, which is that of `list formats`.
std::span<const FormatInfo> formats();

// Finds a format by its name, in any case. Throws usage_error listing the valid names.
const FormatInfo& find_format(std::string_view name, std::string_view where = "format");

// A format with its own parameters: E 1-8, M 0-10, a bias from -64 to 127 that keeps every value a float32, a special-value
// policy (not scale). Throws usage_error when a number is out of range. The name must outlive the result.
FormatInfo custom_format(int exponent_bits, int mantissa_bits, int bias, Specials specials,
                         std::string_view name = "custom");

// Properties that menus filter by.
bool is_fp8(const FormatInfo& format);  // 8-bit floating point with a sign: E4M3, E5M2 and their relatives
bool is_element(const FormatInfo& format);  // has a sign and at most 8 bits: what a tensor is quantised to
// The first row of the table with these exponent and mantissa bits; for E4M3 FNUZ it is E4M3. A custom format may
// have none: then it is the format itself.
const FormatInfo& family(const FormatInfo& format);

// A menu of formats: the rows with a property. Those of at most 8 bits come first, in the table's order; wider ones
// follow by width, of the same width the one with more exponent bits first. `first` goes before all, as {"none", "none"}.
std::vector<Choice> format_choices(bool (*property)(const FormatInfo&), std::vector<Choice> first = {});

// Derived facts. All exact: every value of every format up to 32 bits is a double.
int width_bits(const FormatInfo& format);          // 8 for E4M3; 19 for TF32
int storage_bytes(const FormatInfo& format);       // 1, 2 or 4: what `cast` writes for one code
double max_finite(const FormatInfo& format);       // 448
std::uint32_t max_code(const FormatInfo& format);  // 0x7E
double min_normal(const FormatInfo& format);       // 2^-6
double min_subnormal(const FormatInfo& format);    // 2^-9 (E8M0: its smallest value 2^-127; INT8: 1)
bool has_infinity(const FormatInfo& format);
bool has_nan(const FormatInfo& format);
// 0x7F in E4M3, 0x80 in FNUZ; fp6/fp4: the largest; int8: 0.
std::uint32_t canonical_nan(const FormatInfo& format);
// Half an ulp of 1: 2^-(M+1).
double unit_roundoff(const FormatInfo& format);
// Where rounding to nearest overflows (numerics.md 1.3): the midpoint of the largest value and the phantom next one.
// inclusive: the threshold itself overflows. E4M3 464, not inclusive (the tie goes down to the even code of 448);
// E5M2 61440, inclusive. E8M0, which rounds up, overflows above 2^127.
struct OverflowThreshold {
    double value;
    bool inclusive;
    // Whether |x * scale| overflows; NaN does not.
    bool is_passed_by(double size) const { return inclusive ? size >= value : size > value; }
    float largest_below() const;  // the largest float32 that does not pass it
};
OverflowThreshold overflow_threshold(const FormatInfo& format);

enum class CodeClass { zero, subnormal, normal, infinity, nan };
std::string_view to_string(CodeClass);
CodeClass classify(const FormatInfo& format, std::uint32_t code);

struct CodeCounts {
    std::int64_t total, finite, distinct, infinities, nans, subnormals;
};
CodeCounts count_codes(const FormatInfo& format);

// Bit fields of a code, for display and for `codes`. Bits outside the code are ignored, here and below.
struct CodeFields {
    std::uint32_t sign, exponent, mantissa;
};
CodeFields split(const FormatInfo& format, std::uint32_t code);

// The exact value of a code; a quiet NaN for every NaN code.
double value_of(const FormatInfo& format, std::uint32_t code);

// Every non-negative finite value with its code, ascending; formats up to 16 bits. Throws usage_error above.
struct CodeValue {
    std::uint32_t code;
    double value;
};
std::vector<CodeValue> positive_values(const FormatInfo& format);

}  // namespace fp8lab
