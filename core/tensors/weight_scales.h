// FP8 weights as models are published: codes in one tensor, scales in another, NAME_scale_inv (blocks of 128x128, as
// DeepSeek-V3's) or NAME_scale (one, or one per row, as compressed-tensors writes). Both multiply: value = code x scale.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab {

struct WeightScales {
    std::string name;                   // of the tensor that holds them
    std::size_t height = 0, width = 0;  // elements that share one: (0, 0) all
    std::size_t across = 1;             // scales of one row of blocks
    std::vector<float> values = {};
    std::string words() const;  // "128 x 128", "one per row", "one scale"
};

// "w_scale_inv", "w_scale" of "w".
std::vector<std::string> scale_names(std::string_view tensor);

// Which elements share a scale, from the two shapes: one element; (rows, 1); (rows / 128, cols / 128), rounded up.
// Throws Error{input} with an empty place: another shape, or a value that is NaN, infinite or negative, with its index.
WeightScales weight_scales(std::string name, std::span<const std::size_t> tensor,
                           std::span<const std::size_t> shape, std::vector<float> values);

// Multiplies rows first, first + 1, ... of a matrix of `cols` columns.
void apply_scales(const WeightScales& scales, std::size_t first, std::size_t cols, std::span<float> rows);

}  // namespace fp8lab
