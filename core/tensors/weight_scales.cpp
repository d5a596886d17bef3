#include "core/tensors/weight_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

constexpr std::size_t kBlock = 128;

std::size_t blocks_of(std::size_t extent) { return (extent + kBlock - 1) / kBlock; }

std::string extents(std::span<const std::size_t> shape) {
    return some_names(shape, [](std::size_t extent) { return std::to_string(extent); });
}

}  // namespace

std::string WeightScales::words() const {
    if (height == 0) return "one scale";
    return height == 1 ? "one scale per row" : fmt::format("one scale per {} x {}", height, width);
}

std::vector<std::string> scale_names(std::string_view tensor) {
    return {std::string(tensor) + "_scale_inv", std::string(tensor) + "_scale"};
}

WeightScales weight_scales(std::string name, std::span<const std::size_t> tensor,
                           std::span<const std::size_t> shape, std::vector<float> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(values[i]) || values[i] < 0)
            throw input_error("",
                              fmt::format("tensor '{}': element {} is {}; a scale is finite and not negative",
                                          quote_from(name), i, values[i]));
    WeightScales scales{.name = std::move(name), .values = std::move(values)};
    if (scales.values.size() == 1) return scales;
    const std::vector<std::size_t> has(shape.begin(), shape.end());
    const bool matrix = tensor.size() == 2;
    if (matrix && (has == std::vector{tensor[0], std::size_t{1}} || has == std::vector{tensor[0]})) {
        scales.height = 1, scales.width = tensor[1];
    } else if (matrix && has == std::vector{blocks_of(tensor[0]), blocks_of(tensor[1])}) {
        scales.height = kBlock, scales.width = kBlock, scales.across = has[1];
    } else {
        throw input_error("",
                          fmt::format("tensor '{}': shape ({}) does not fit codes of shape ({}); one value, "
                                      "one per row or one per 128 x 128 is read",
                                      quote_from(scales.name), extents(shape), extents(tensor)));
    }
    return scales;
}

void apply_scales(const WeightScales& scales, std::size_t first, std::size_t cols, std::span<float> rows) {
    if (scales.height == 0) {
        for (float& value : rows) value *= scales.values[0];
        return;
    }
    for (std::size_t i = 0; i < rows.size();) {
        const std::size_t r = first + i / cols, c = i % cols;
        const std::size_t run = std::min(scales.width - c % scales.width, cols - c);
        const float scale = scales.values[r / scales.height * scales.across + c / scales.width];
        for (float& value : rows.subspan(i, run)) value *= scale;
        i += run;
    }
}

}  // namespace fp8lab
