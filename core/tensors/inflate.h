// Deflate (RFC 1951) by stb_image, whose reader of PNG has it, and the CRC-32 of ZIP and PNG (ISO 3309).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fp8lab {

// stb reads so many bytes ahead, so that many zeros follow the data.
inline constexpr std::size_t kInflateAhead = 8;

// Raw deflate data, with kInflateAhead bytes behind them, into `out`, never beyond it. Returns the bytes of the whole; 0: the data are damaged, or become more
// than `out` has room for; its beginning then has what was read until there, as far as it goes. Both sides have less
// than 2^31 bytes: more is 0 too.
std::size_t inflate(std::span<const std::byte> packed, std::span<std::byte> out);

std::uint32_t crc32(std::span<const std::byte> bytes);

}  // namespace fp8lab
