// The dtypes of safetensors, and the numbers that their bits are. Codes of 4 and 6 bits lie one behind the other, the
// first in the lowest bits: two FP4 codes in a byte, the low half first; four FP6 codes in three bytes.
// Names: https://github.com/huggingface/safetensors, bindings/python/py_src/safetensors/torch.py.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/tensors/excluded.h"

namespace fp8lab {

// Bits of one element of a dtype as safetensors spells it; 0: not known.
std::size_t bits_of_dtype(std::string_view dtype);
// How many elements so many bytes hold; 0: the dtype is not known.
std::size_t elements_in(std::string_view dtype, std::size_t bytes);
// Whether its elements are floating-point numbers, which decode_stored() reads: F64 F32 F16 BF16, F8_E4M3 F8_E5M2 and
// their FNUZ variants, F8_E8M0, F6_E2M3 F6_E3M2, F4.
bool is_float_dtype(std::string_view dtype);
// The same text with no owner, of a float; else empty.
std::string_view float_dtype(std::string_view dtype);
// Whether they are codes, which are values only together with a scale: floats of 8 bits or fewer, but not E8M0.
bool is_code_dtype(std::string_view dtype);
// The format whose codes its elements are (find_format()): "e4m3" of F8_E4M3, "int8" of I8; empty: none of ours.
std::string_view format_of_dtype(std::string_view dtype);
// "F64 F32 ...", for messages.
std::string float_dtypes();

// Consecutive elements as float32 (F64 rounded to nearest even), in the calling thread; also of I8, whose codes are the
// integers -128 to 127. `stored` has values.size() of them, from the first bit of a byte on, at any alignment. Returns
// how many F64 values float32 does not hold. Throws usage_error for another dtype or size.
Narrowed decode_stored(std::string_view dtype, std::span<const std::byte> stored, std::span<float> values);

}  // namespace fp8lab
