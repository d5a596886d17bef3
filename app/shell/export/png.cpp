#include "app/shell/export/png.h"

#include <stb_image_write.h>

#include <algorithm>

#include "core/base/error.h"

namespace fp8lab {
namespace {

// CRC-32 of ISO 3309, as PNG has it (annex D), bit by bit: texts are short.
std::uint32_t crc(std::string_view bytes) {
    std::uint32_t c = 0xFFFFFFFFU;
    for (const char byte : bytes) {
        c ^= static_cast<unsigned char>(byte);
        for (int bit = 0; bit < 8; ++bit) c = (c & 1U) != 0 ? 0xEDB88320U ^ (c >> 1) : c >> 1;
    }
    return ~c;
}

std::string big_endian(std::uint32_t value) {
    std::string out;
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>((value >> shift) & 0xFFU);
    return out;
}

std::string text_chunk(std::string keyword, const std::string& text) {
    keyword.resize(std::min<std::size_t>(keyword.size(), 79));
    const bool ascii = std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    // iTXt: not compressed, no language, no translated keyword.
    const std::string body =
        ascii ? "tEXt" + keyword + '\0' + text : "iTXt" + keyword + std::string(5, '\0') + text;
    return big_endian(static_cast<std::uint32_t>(body.size() - 4)) + body + big_endian(crc(body));
}

}  // namespace

std::vector<std::byte> encode_png(int width, int height, std::span<const std::uint8_t> rgb,
                                  const PngTexts& texts) {
    constexpr std::ptrdiff_t kHead = 8 + 25;  // signature and IHDR; texts come next
    std::vector<std::byte> png;
    const auto append = [](void* sink, void* data, int bytes) {
        auto& out = *static_cast<std::vector<std::byte>*>(sink);
        const auto* from = static_cast<const std::byte*>(data);
        out.insert(out.end(), from, from + bytes);
    };
    if (stbi_write_png_to_func(append, &png, width, height, 3, rgb.data(), width * 3) == 0)
        throw Error{ErrorKind::failed, "png", "the picture could not be encoded"};
    std::string chunks;
    for (const auto& [keyword, text] : texts)
        if (!keyword.empty()) chunks += text_chunk(keyword, text);
    const auto bytes = std::as_bytes(std::span(chunks));
    png.insert(png.begin() + kHead, bytes.begin(), bytes.end());
    return png;
}

}  // namespace fp8lab
