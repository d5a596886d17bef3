// Scenes as one line of text: base64 (RFC 4648, section 4).
#include <array>
#include <cstdint>

#include "core/base/error.h"
#include "core/lesson/scene.h"

namespace fp8lab {
namespace {

constexpr std::string_view kMark = "f8scene:";
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kSpace = " \t\r\n";

std::string to_base64(std::string_view bytes) {
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; ++k)
            group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
        for (std::size_t k = 0; k < 4; ++k)
            out += i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 63];
    }
    return out;
}

// White space, which mail programs put in, does not count.
std::string from_base64(std::string_view text) {
    std::string out;
    std::uint32_t bits = 0;
    int have = 0;
    std::size_t digits = 0, padding = 0;
    for (const char c : text) {
        if (kSpace.find(c) != std::string_view::npos) continue;
        ++digits;
        if (c == '=') {
            ++padding;
            continue;
        }
        const auto digit = kDigits.find(c);
        if (digit == std::string_view::npos || padding > 0)
            throw input_error("pasted scene", "character " + std::to_string(digits) + " is not base64");
        bits = bits << 6 | static_cast<std::uint32_t>(digit);
        have += 6;
        if (have >= 8) out += static_cast<char>(bits >> (have -= 8) & 0xFF);
    }
    if (digits % 4 != 0 || padding > 2)
        throw input_error("pasted scene", "is cut off: " + std::to_string(digits) + " characters of base64");
    return out;
}

std::string_view trimmed(std::string_view text) {
    const auto from = text.find_first_not_of(kSpace);
    return from == std::string_view::npos ? "" : text.substr(from);
}

}  // namespace

std::string scene_line(const Scene& scene) { return std::string(kMark) + to_base64(scene_text(scene)); }

bool is_scene_line(std::string_view text) { return trimmed(text).starts_with(kMark); }

Scene scene_from_line(std::string_view text) {
    if (!is_scene_line(text)) throw input_error("pasted scene", "does not begin with f8scene:");
    return parse_scene(from_base64(trimmed(text).substr(kMark.size())), "pasted scene");
}

}  // namespace fp8lab
