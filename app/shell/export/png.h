// PNG files, with words inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fp8lab {

using PngTexts = std::vector<std::pair<std::string, std::string>>;

// rgb: (height, width, 3). texts: (keyword, UTF-8) as tEXt chunks where they are ASCII, else iTXt (PNG
// specification, 11.3.3). Throws Error{failed}.
std::vector<std::byte> encode_png(int width, int height, std::span<const std::uint8_t> rgb,
                                  const PngTexts& texts = {});

}  // namespace fp8lab
