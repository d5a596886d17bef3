// How a matrix is divided among its scales, and what our own cast of an original onto that division loses: the measure of
// what is normal.
#pragma once

#include <span>
#include <vector>

#include "core/formats/format.h"
#include "core/tensors/scales/stored_tensor.h"
#include "core/verify/readings.h"

namespace fp8lab {

// How a scale is rounded: not at all (FP32 and what is stored as such), to a power of two (E8M0), or to E4M3, below the scale
// of the tensor where there is one. E8M0 by each rule in use: up, so that no value is above the largest one of the format;
// floor, of OCP's MX 1.0, which clips up to half of the amax's binade; even, floor after the amax is rounded to the format's
// mantissa (torchao's ScaleCalculationMode has all of them).
enum class ScaleKind { exact, power, power_floor, power_even, e4m3, e4m3_under_global };

struct Division {
    ScaleGrid grid;
    const FormatInfo* format = nullptr;  // of the codes
    ScaleKind kind = ScaleKind::exact;
    // Whether the rows of a scale may be more than a band has, or stand apart: then its amax needs the whole matrix.
    bool tall = false;

    // The values of code 1 in blocks of those amaxes: amax / max of the format, rounded as `kind` says. 0: the block is 0.
    std::vector<float> units(std::span<const float> amaxes, float tensor_amax) const;
};

// That of a tensor with scales.
Division division_of(const StoredTensor& tensor);
// That, and where its scales are powers of two one of each rule.
std::vector<Division> divisions_by_rule(const Division& division);
// Of a file in BF16 or wider, which may be FP8 that was decoded: one scale, a scale per row, 128 x 128, 1 x 32.
std::vector<Division> divisions_of_values(MatrixShape shape);

// Bands of some 128 K values that no scale of a division that is not tall reaches across.
std::vector<Band> bands_of(MatrixShape shape, std::span<const Division> divisions);

// The amax of each scale, of the whole matrix; NaN is ignored. In parallel, one result for any number of threads.
std::vector<float> amaxes_of(const OriginalMatrix& original, std::size_t cols, const ScaleGrid& grid,
                             std::span<const Band> bands);

// The amaxes of the scales of a band, those of scale_rows_of().
std::vector<float> band_amaxes(std::span<const float> rows, const ScaleGrid& grid, const Band& band);

// Casts a row: `units` of its row of scales.
void cast_row(const Division& division, std::span<const float> row, std::span<const float> units,
              std::span<float> out);

}  // namespace fp8lab
