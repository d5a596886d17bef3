// Numbers as text, for all screens and files.
#pragma once

#include <cstdint>
#include <string>

namespace fp8lab {

// At most `digits` significant digits, no trailing zeros, "1.28e-3" style exponents below 1e-3 and from 1e6;
// NaN, +Inf and -Inf as words; U+2212 for minus when `pretty` (the window), ASCII otherwise (files).
std::string format_number(double value, int digits = 4, bool pretty = false);

// A number as the window shows it: format_number() with the true minus sign.
inline std::string screen_number(double value, int digits = 4) { return format_number(value, digits, true); }

// The shortest decimal that reads back to the same value: CSV, JSON, command lines. "nan", "inf", "-inf".
std::string shortest(double value);
std::string shortest(float value);

// Every digit: the exact decimal expansion of a binary floating-point number ("0.001953125").
std::string exact_decimal(double value);

// A number in the five forms that the copy menu offers.
struct NumberTexts {
    std::string rounded;  // "0.05882": format_number()
    std::string exact;    // "0.058823529411764705": shortest()
    std::string hex;      // "0x1.e1e1e1e1e1e1ep-5": hex_float()
    std::string c;      // "0.058823529411764705", "448.0", "NAN", "-INFINITY": a double in C (math.h) and C++
    std::string numpy;  // "np.float64(0.058823529411764705)", "np.float64('nan')"
};
NumberTexts number_texts(double value);

std::string hex_float(double value);              // "0x1.cp+8"
std::string group_thousands(std::int64_t value);  // "65 536", with U+2009 thin spaces
std::string format_bytes(std::uint64_t bytes);    // "96 MB"
std::string power_of_two(int exponent);           // "2^-6": plain text; the canvas raises what follows ^

}  // namespace fp8lab
