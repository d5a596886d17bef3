// Pictures as tensors: grey values 0 (black) to 1 (white), row-major from the top. A reader sees at a glance what
// a shared scale does: a bright pixel takes the shades of the dark ones in its block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/tensors/tensor.h"

namespace fp8lab {

inline constexpr std::size_t kPictureSide = 128;  // pixels, of the longer side

// A picture of a town at dusk, (128, 128): a sky that becomes lighter downwards, a moon with its glow, stars of one
// pixel, hills, lit windows. Always the same.
Tensor draw_picture();

inline constexpr std::uint64_t kLargestPicture = std::uint64_t{1} << 29;  // bytes of a file

bool is_png(std::span<const std::byte> bytes);
// Grey (BT.601: 0.299 R + 0.587 G + 0.114 B over 255) of an 8-bit or 16-bit PNG, transparency ignored. Larger ones
// are reduced to kPictureSide pixels on the longer side: each pixel is the mean of those that it covers. Throws
// input_error: not a whole PNG, or more than 2^26 pixels.
Tensor read_picture(std::span<const std::byte> bytes, const std::string& file);

}  // namespace fp8lab
