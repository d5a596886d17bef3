// TensorStore's reading of values.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/base/error.h"
#include "core/tensors/dtype.h"
#include "core/tensors/npy.h"
#include "core/tensors/tensor_store.h"
#include "core/threads/ask.h"

namespace fp8lab {

// The last member that was unpacked: rows are read in order, many times of one tensor.
struct TensorStore::Unpacked {
    std::mutex mutex;
    std::size_t file = 0;
    std::uint64_t begin = 0;
    std::shared_ptr<const std::vector<std::byte>> bytes;
};

TensorStore::TensorStore() : unpacked_(std::make_shared<Unpacked>()) {}

void TensorStore::read_stored(const StoredTensor& tensor, std::size_t offset,
                              std::span<std::byte> into) const {
    const RandomFile& file = files_[tensor.file];
    if (tensor.packed.size == 0) return file.read(tensor.begin + offset, into);
    std::shared_ptr<const std::vector<std::byte>> bytes;
    {
        const std::lock_guard lock{unpacked_->mutex};
        if (!unpacked_->bytes || unpacked_->file != tensor.file || unpacked_->begin != tensor.packed.begin) {
            unpacked_->bytes.reset();
            unpacked_->bytes = std::make_shared<const std::vector<std::byte>>(unpack(file, tensor.packed));
            unpacked_->file = tensor.file;
            unpacked_->begin = tensor.packed.begin;
        }
        bytes = unpacked_->bytes;
    }
    std::memcpy(into.data(), bytes->data() + tensor.begin + offset, into.size());
}

Narrowed TensorStore::read_rows(const StoredTensor& tensor, std::size_t first, std::span<float> rows) const {
    const std::string_view element = tensor.element;
    const MatrixShape shape = tensor.matrix();
    if (element.empty()) throw usage_error(tensor.name, "dtype " + tensor.dtype + " is not a float");
    if (rows.empty()) return {};
    if (shape.cols == 0 || rows.size() % shape.cols != 0 || first > shape.rows ||
        rows.size() / shape.cols > shape.rows - first)
        throw usage_error(tensor.name, "only whole rows of the tensor are read");
    const std::size_t bits = bits_of_dtype(element);
    Narrowed narrowed;
    if (tensor.fortran_order) {
        std::vector<std::byte> stored(tensor.end - tensor.begin);
        std::vector<float> values(elements_in(element, stored.size()));
        read_stored(tensor, 0, stored);
        if (tensor.big_endian) swap_bytes(stored, bits / 8);
        ask_between();
        narrowed = decode_stored(element, stored, values);
        ask_between();
        values = to_c_order(values, tensor.shape);
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first * shape.cols), rows.size(),
                    rows.begin());
    } else {
        constexpr std::size_t kPiece = std::size_t{1} << 16;  // values: what is decoded is still in a cache
        std::vector<std::byte> stored;
        for (std::size_t at = 0; at < rows.size(); at += kPiece) {
            ask_between();
            const std::span<float> piece = rows.subspan(at, std::min(kPiece, rows.size() - at));
            stored.resize(piece.size() * bits / 8);
            read_stored(tensor, (first * shape.cols + at) * bits / 8, stored);
            if (tensor.big_endian) swap_bytes(stored, bits / 8);
            narrowed += decode_stored(element, stored, piece);
        }
    }
    if (tensor.scales) narrowed.beyond = scale_rows(*tensor.scales, first, rows);
    return narrowed;
}

std::int64_t TensorStore::scale_rows(const StoredScales& scales, std::size_t first,
                                     std::span<float> rows) const {
    const ScaleGrid& grid = scales.grid;
    const std::size_t count = rows.size() / grid.cols();
    std::size_t low = grid.row_of(first), high = low;
    for (std::size_t r = 1; r < count; ++r) {
        const std::size_t row = grid.row_of(first + r);
        low = std::min(low, row), high = std::max(high, row);
    }
    std::vector<float> values((high - low + 1) * grid.across());
    read_scales(scales, low * grid.across(), values);
    return apply_scales(grid, first, rows, values, low, scales.global);
}

void TensorStore::read_scales(const StoredScales& scales, std::size_t first, std::span<float> values) const {
    const std::size_t width = bits_of_dtype(scales.element) / 8;
    std::vector<std::byte> stored(values.size() * width);
    files_[scales.file].read(scales.begin + first * width, stored);
    decode_stored(scales.element, stored, values);
}

ScaleHealth TensorStore::scale_health(const StoredTensor& tensor) const {
    constexpr std::size_t kPiece = std::size_t{1} << 18;
    ScaleHealth out;
    if (!tensor.scales) return out;
    std::vector<float> values;
    for (std::size_t at = 0; at < tensor.scales->count; at += kPiece) {
        ask_between();
        values.resize(std::min(kPiece, tensor.scales->count - at));
        read_scales(*tensor.scales, at, values);
        out.add(values);
    }
    if (const auto& global = tensor.scales->global) out.add({&global->value, 1});
    return out;
}

}  // namespace fp8lab
