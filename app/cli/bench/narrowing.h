// The memory's ceiling for a cast from 4 bytes to 1: what it reads and writes, without its arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fp8lab::cli {

// Reads all of `in`, ORs each four neighbouring vectors into one and writes it around the caches, eight pages
// in turn as the cast does (core/formats/codec_simd.cpp). out: as many bytes as `in` has floats, a multiple of
// 8192, and on a boundary of 64 bytes.
void read_4_write_1(std::span<const float> in, std::span<std::uint8_t> out);

}  // namespace fp8lab::cli
