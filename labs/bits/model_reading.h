// One code read aloud: its fields, its value, the arithmetic that leads to it, and its neighbours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/formats/format.h"

namespace fp8lab::bits {

// value = sign * power * significand, each as it is written and as it comes out. "^" raises what follows up
// to the next plain space. A part that the format does not have (sign and mantissa of E8M0) is empty.
struct Term {
    std::string written, value;
};
struct Formula {
    Term sign, power, significand, result;
};

struct Reading {
    std::uint32_t code = 0;
    CodeClass code_class = CodeClass::zero;
    CodeFields fields{};
    double value = 0;       // exact; NaN and the infinities as such
    double gap = 0;         // to the next larger magnitude of this binade: one ulp; 0 for NaN and Inf
    std::string code_text;  // "0x7E"
    std::string headline;   // "448": exact where that fits in 11 characters, else 4 digits
    bool headline_exact = true;
    std::string exact;  // every digit
    std::string hex;    // "0x1.cp+8"; empty for NaN and Inf
    std::string note;   // "largest finite, next: NaN"
    Formula formula;    // empty for NaN and Inf
};
Reading read_code(const FormatInfo& format, std::uint32_t code);

// The exact value of a code in float64. decode() gives the same in float32; this one also holds for formats
// of the learner's own whose range is beyond float32's.
double exact_value(const FormatInfo& format, std::uint32_t code);
double ulp(const FormatInfo& format, std::uint32_t code);
std::string code_text(const FormatInfo& format, std::uint32_t code);
std::string value_text(double value,
                       int digits = 4);  // as the window shows it: U+2212, words for NaN and Inf
std::string power_text(int exponent);    // "2^-6" with U+2212

// Where the line ends: the last finite codes, and what the codes after them mean.
struct EndCode {
    std::uint32_t code;
    std::string code_text, value_text;
    bool finite;
};
struct LineEnd {
    std::vector<EndCode> codes;      // at most 8, ascending
    double phantom = 0;              // the value that would come next if the line went on: 480 in E4M3
    std::vector<std::string> notes;  // "480 would be next.", "OCP made it NaN."
};
LineEnd line_end(const FormatInfo& format);

// The tables of the panel: label, value, remark.
struct Fact {
    std::string label, value, remark;
};
std::vector<Fact> facts(const FormatInfo& format);

// What the same code means in the other formats of this width.
std::vector<Fact> elsewhere(const FormatInfo& format, std::uint32_t code);

}  // namespace fp8lab::bits
