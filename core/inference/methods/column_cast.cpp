#include "core/inference/methods/column_cast.h"

#include <algorithm>

#include "core/scaling/block_scales.h"
#include "core/scaling/delayed.h"

namespace fp8lab {

ColumnCast::ColumnCast(const LowFormat& format, const Matrix<float>& w)
    : format_(format), tensor_amax_(amax(w.values)) {
    if (format.groups)
        width_ = std::min(format.groups->group, w.cols);
    else
        width_ = std::min(block_grid(format.weights, w.rows, w.cols, Along::cols).width, w.cols);
}

void ColumnCast::start(const Matrix<float>& columns) {
    const CastPlan& plan = format_.weights;
    scale_.assign(columns.rows, 1), scale_inv_.assign(columns.rows, 1);
    if (format_.groups) {
        for (std::size_t r = 0; r < columns.rows; ++r) {
            scale_[r] = group_scale(*format_.groups, amax(columns.row(r)));
            scale_inv_[r] = 1 / scale_[r];
        }
    } else if (plan.granularity == Granularity::tensor) {
        if (!plan.scaled) return;
        const float scale = scale_from_amax(tensor_amax_, static_cast<float>(max_finite(*plan.format)),
                                            plan.margin, 1, plan.pow2);
        scale_.assign(columns.rows, scale), scale_inv_.assign(columns.rows, 1 / scale);
    } else {
        const BlockGrid grid = block_grid(plan, columns.rows, columns.cols, Along::cols);
        const BlockScales scales =
            block_scales(plan, columns.values, columns.cols, grid,
                         {.rows = columns.rows, .cols = columns.cols, .tensor_amax = tensor_amax_});
        for (std::size_t r = 0; r < columns.rows; ++r) {
            scale_[r] = scales.scale[r / grid.height];
            scale_inv_[r] = scales.scale_inv[r / grid.height];
        }
    }
}

void ColumnCast::cast(std::span<float> column) const {
    for (std::size_t r = 0; r < column.size(); ++r) column[r] *= scale_[r];
    if (format_.groups)
        for (float& v : column) v = nearest_level(*format_.groups, v);
    else if (format_.weights.format->name != "fp32")
        quantize(*format_.weights.format, column, column,
                 {.rounding = format_.weights.rounding, .overflow = format_.weights.overflow});
    for (std::size_t r = 0; r < column.size(); ++r) column[r] *= scale_inv_[r];
}

}  // namespace fp8lab
