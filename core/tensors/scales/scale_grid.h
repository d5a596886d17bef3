// Which elements of a tensor share a scale. It follows from the two shapes: in each dimension a scale is for all
// elements, for one, or for a block of 16, 32 or 128 (the last one may be partial), or of what the model's configuration
// says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fp8lab {

struct ScaleGrid {
    std::vector<std::size_t> shape = {};    // of the codes
    std::vector<std::size_t> extents = {};  // per dimension, elements that share a scale
    std::vector<std::size_t> counts = {};   // per dimension, scales
    std::vector<std::size_t> ends =
        {};  // of fused matrices: the row after the last one of each, instead of extents[0]

    std::size_t cols() const { return shape.empty() ? 1 : shape.back(); }
    std::size_t across() const { return counts.empty() ? 1 : counts.back(); }  // scales of a row of elements
    // Which row of scales, of across() each, a row of the tensor's matrix (file.h) has.
    std::size_t row_of(std::size_t row) const;
    std::string words()
        const;  // "one scale", "one scale per row", "one scale per 128 x 128", "one scale per part"
    bool operator==(const ScaleGrid&) const = default;
};

// All grids that differ in a scale of some element. Empty: the shapes do not fit. `blocks`: further sizes of a block.
// A scale shape of fewer dimensions is for the first ones: (N), (E, N); one of (R, 1, C, 1) is (R, C), as ModelOpt
// writes it.
std::vector<ScaleGrid> scale_grids(std::span<const std::size_t> codes, std::span<const std::size_t> scales,
                                   std::span<const std::size_t> blocks = {});
// One scale for each of several matrices that lie one behind the other. `rows`: of each; they are all rows of the codes.
ScaleGrid fused_grid(std::span<const std::size_t> codes, std::span<const std::size_t> rows);

// The factor of a whole tensor, and whether it divides.
struct GlobalScale {
    float value = 1;
    bool divides = false;
};

// Multiplies rows first, first + 1, ... of the matrix by their scales and then by the global one: (code x scale) x
// global, or / global. `scales`: the rows of scales from `first_row` on. Returns how many finite codes under finite
// scales became infinite.
std::int64_t apply_scales(const ScaleGrid& grid, std::size_t first, std::span<float> rows,
                          std::span<const float> scales, std::size_t first_row,
                          const std::optional<GlobalScale>& global);

// What is unusual among the scales of a tensor, as they are stored. Values are computed all the same.
struct ScaleHealth {
    std::int64_t scales = 0;  // how many there are, the global one included; 0: none
    std::int64_t nan = 0, inf = 0, zero = 0, subnormal = 0, negative = 0;  // subnormal: of float32
    void add(std::span<const float> values);
    ScaleHealth& operator+=(const ScaleHealth& other);
    bool operator==(const ScaleHealth&) const = default;
    bool is_usual() const { return nan + inf + zero + subnormal + negative == 0; }
    std::string words() const;  // "2 NaN, 1 zero"; empty: nothing is unusual
};

}  // namespace fp8lab
