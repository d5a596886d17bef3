#define STB_IMAGE_IMPLEMENTATION
#include "core/tensors/stb.h"
#undef STB_IMAGE_IMPLEMENTATION  // of files that are compiled together with this one

#include <array>
#include <limits>

#include "core/tensors/inflate.h"

namespace fp8lab {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
    constexpr std::uint32_t kPolynomial = 0xEDB8'8320;  // bits in reverse
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
        std::uint32_t rest = byte;
        for (int bit = 0; bit < 8; ++bit) rest = rest & 1 ? kPolynomial ^ (rest >> 1) : rest >> 1;
        table[byte] = rest;
    }
    return table;
}

}  // namespace

std::size_t inflate(std::span<const std::byte> packed, std::span<std::byte> out) {
    constexpr std::size_t kMost = std::numeric_limits<int>::max();
    if (packed.size() > kMost || out.size() > kMost) return 0;
    const int size = stbi_zlib_decode_noheader_buffer(
        reinterpret_cast<char*>(out.data()), static_cast<int>(out.size()),
        reinterpret_cast<const char*>(packed.data()), static_cast<int>(packed.size()));
    return size > 0 ? static_cast<std::size_t>(size) : 0;
}

std::uint32_t crc32(std::span<const std::byte> bytes) {
    static constexpr auto kTable = crc_table();
    std::uint32_t crc = 0xFFFF'FFFF;
    for (const std::byte byte : bytes)
        crc = kTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFF] ^ (crc >> 8);
    return ~crc;
}

}  // namespace fp8lab
