// Safetensors files: 8 bytes little-endian header length, a JSON header, raw tensors. Read strictly: every
// byte of the buffer belongs to exactly one tensor. Format: https://github.com/huggingface/safetensors,
// "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/random_file.h"
#include "core/tensors/dtype.h"

namespace fp8lab {

struct SafeTensorInfo {
    std::string dtype;                 // as the file spells it, "F8_E4M3"
    std::vector<std::size_t> shape;    // () for a scalar
    std::uint64_t begin = 0, end = 0;  // bytes of the file
};

struct SafeTensorsIndex {
    std::map<std::string, SafeTensorInfo> tensors;
    std::map<std::string, std::string> metadata;
};

// Reads only the header, of up to 100,000,000 bytes (the format's own limit). Throws input_error with `where` and the
// byte offset: truncated file, malformed header, offsets that overlap, leave gaps or contradict the shape.
SafeTensorsIndex index_safetensors(std::span<const std::byte> bytes, const std::string& where);
SafeTensorsIndex index_safetensors(const RandomFile& file);
// How many bytes the file has that begins with these, as its header says; more than there are where it takes so many to
// say (SizeByHead). Throws as index_safetensors().
std::uint64_t safetensors_size(std::span<const std::byte> head, const std::string& where);

// Throws input_error, with the byte, for a dtype that is not read.
void require_float(const SafeTensorInfo& info, const std::string& where);
// The elements of one tensor of that index in C order, codes without their scales; throws input_error for a dtype that
// is no float (dtype.h), and Error{failed} where there is not the memory.
std::vector<float> read_safetensor(std::span<const std::byte> bytes, const SafeTensorInfo& info,
                                   const std::string& where);
std::vector<float> read_safetensor(const RandomFile& file, const SafeTensorInfo& info);

struct SafeTensor {
    std::vector<std::size_t> shape;
    std::vector<float> values;
};

struct SafeTensors {
    std::map<std::string, SafeTensor> tensors;
    std::map<std::string, std::string> metadata;
};

// A whole file.
SafeTensors parse_safetensors(std::span<const std::byte> bytes, const std::string& where);

// Every tensor as F32, in the order of their names, piece by piece: each tensor is one.
void write_safetensors(const SafeTensors& file, const std::function<void(std::span<const std::byte>)>& write);
std::vector<std::byte> to_safetensors(const SafeTensors& file);

}  // namespace fp8lab
