// Safetensors files: 8 bytes little-endian header length, a JSON header, raw tensors. Read strictly: every
// byte of the buffer belongs to exactly one tensor. Format: https://github.com/huggingface/safetensors,
// "Format".
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace fp8lab {

struct SafeTensor {
    std::vector<std::size_t> shape;  // () for a scalar
    std::vector<float> values;       // C order; F64 rounded to nearest even
};

struct SafeTensors {
    std::map<std::string, SafeTensor> tensors;
    std::map<std::string, std::string> metadata;
};

// dtypes F32, F64, F16 and BF16. Throws input_error naming `where` and the byte offset or the tensor:
// truncated file, header that is not what the format asks for, another dtype, offsets that overlap, leave
// gaps or contradict the shape.
SafeTensors parse_safetensors(std::span<const std::byte> bytes, const std::string& where);

// Every tensor as F32, in the order of their names.
std::vector<std::byte> to_safetensors(const SafeTensors& file);

}  // namespace fp8lab
