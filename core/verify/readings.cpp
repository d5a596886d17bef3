#include "core/verify/readings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/tensors/dtype.h"

namespace fp8lab {
namespace {

float scale_read(ScaleReading reading, float scale) {
    constexpr float kBias = 127;  // of E8M0
    switch (reading) {
        case ScaleReading::inverse:
            return 1 / scale;
        case ScaleReading::squared:
            return scale * scale;
        case ScaleReading::exponent:
            return std::exp2(scale - kBias);
        case ScaleReading::as_is:
        case ScaleReading::transposed:
            break;
    }
    return scale;
}

}  // namespace

Band scale_rows_of(const ScaleGrid& grid, const Band& band) {
    std::size_t low = grid.row_of(band.first), high = low;
    for (std::size_t r = 1; r < band.count; ++r) {
        const std::size_t row = grid.row_of(band.first + r);
        low = std::min(low, row), high = std::max(high, row);
    }
    return {low, high - low + 1};
}

void OriginalMatrix::read(std::size_t first, std::span<float> rows) const {
    std::size_t begin = 0;  // of the part, in rows of the matrix
    for (const RowsOf& part : parts_) {
        const std::size_t cols = part.tensor->matrix().cols, end = begin + part.count;
        if (first < end && !rows.empty()) {
            const std::size_t count = std::min(end - first, rows.size() / cols);
            store_->read_rows(*part.tensor, part.first + first - begin, rows.first(count * cols));
            rows = rows.subspan(count * cols), first += count;
        }
        begin = end;
    }
}

StoredMatrix::StoredMatrix(const TensorStore& store, const StoredTensor& tensor)
    : store_(&store), tensor_(&tensor), codes_(tensor) {
    codes_.scales.reset();
    if (!tensor.scales) return;
    const StoredScales& scales = *tensor.scales;
    scales_ = {.name = scales.name, .dtype = std::string(scales.element), .shape = {scales.count, 1}};
    scales_.file = scales.file, scales_.begin = scales.begin;
    scales_.end = scales.begin + scales.count * bits_of_dtype(scales.element) / 8;
    scales_.element = scales.element;
}

void StoredMatrix::read_codes(std::size_t first, std::span<float> rows) const {
    store_->read_rows(codes_, first, rows);
}

void StoredMatrix::read_values(std::size_t first, std::span<float> rows) const {
    store_->read_rows(*tensor_, first, rows);
}

void StoredMatrix::read_scales(std::size_t first, std::span<float> values) const {
    store_->read_rows(scales_, first, values);
}

Reader::Reader(const StoredMatrix& matrix, const Hypothesis& hypothesis, std::size_t head, float amax)
    : matrix_(&matrix),
      hypothesis_(&hypothesis),
      head_(head),
      codes_(matrix.codes_),
      global_(matrix.global()) {
    if (!hypothesis.element.empty()) codes_.element = hypothesis.element;
    if (global_ && hypothesis.global == GlobalReading::reciprocal) global_->divides = !global_->divides;
    constexpr float kMost = 6 * 448;  // the largest E2M1 times the largest E4M3
    if (global_ && hypothesis.global == GlobalReading::of_amax) global_ = {amax / kMost, false};
}

void Reader::read(std::size_t first, std::span<float> rows) const {
    const RowOrder order = hypothesis_->order;
    if (order == RowOrder::as_is || order == RowOrder::transposed) return read_in_order(first, rows);
    const std::size_t cols = matrix_->shape().cols;
    for (std::size_t r = 0; r * cols < rows.size(); ++r)
        read_in_order(source_row(order, head_, first + r), rows.subspan(r * cols, cols));
}

void Reader::read_in_order(std::size_t first, std::span<float> rows) const {
    matrix_->store_->read_rows(codes_, first, rows);
    const std::size_t cols = matrix_->shape().cols;
    if (hypothesis_->swaps_nibbles)
        for (std::size_t i = 0; i + 1 < rows.size(); i += 2) std::swap(rows[i], rows[i + 1]);
    // The codes of one format may be NaN in another one.
    if (!hypothesis_->element.empty())
        for (float& value : rows) value = std::isnan(value) ? 0 : value;
    const StoredScales* const scales = matrix_->scales();
    if (!scales) return;
    const Band own = scale_rows_of(scales->grid, {first, rows.size() / cols});
    std::vector<float> values(own.count * scales->grid.across());
    read_scale_rows(own.first, own.count, values);
    for (float& value : values) value = scale_read(hypothesis_->scale, value);
    apply_scales(scales->grid, first, rows, values, own.first, global_);
}

void Reader::read_scale_rows(std::size_t first, std::size_t count, std::span<float> values) const {
    const std::size_t across = matrix_->scales()->grid.across();
    if (hypothesis_->scale != ScaleReading::transposed) return matrix_->read_scales(first * across, values);
    const std::size_t down = matrix_->scales()->count / across;
    std::vector<float> column(count);
    for (std::size_t c = 0; c < across; ++c) {
        matrix_->read_scales(c * down + first, column);
        for (std::size_t r = 0; r < count; ++r) values[r * across + c] = column[r];
    }
}

}  // namespace fp8lab
