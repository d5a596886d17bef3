// Python for one number format: a function that rounds to its values, one that gives their codes, and the values of
// all codes. PyTorch's own types do the cast where it has them and the values were clamped before, so that versions
// whose cast gives NaN above the largest value agree with those that saturate.
#pragma once

#include <string>

#include "core/scaling/quantizer.h"

namespace fp8lab::python {

// "e4m3", "e4m3_nonsaturate", "e2m1_stochastic": the function that element_function() defines.
std::string element_name(const CastPlan& plan);
// "def e4m3(y): ...", of float32. For fp32 there is none: the operand stays as it is.
std::string element_function(const CastPlan& plan);

// "def e4m3_codes(q): ...": the codes of values of the format, in hex, byte by byte.
std::string codes_function(const FormatInfo& format);
// A Python expression: the values of the codes, in their order. Empty for formats of more than 16 bits.
std::string values_expression(const FormatInfo& format);
// The CRC-32 of these values as little-endian float32, with 1e9 in place of NaN.
std::uint32_t values_crc(const FormatInfo& format);

// The number as Python reads it: "448", "2**-6".
std::string number(double value);

}  // namespace fp8lab::python
