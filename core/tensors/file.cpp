#include "core/tensors/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/base/units.h"
#include "core/files/memory.h"
#include "core/json/read_json.h"
#include "core/tensors/picture.h"
#include "core/tensors/tensor_store.h"

namespace fp8lab {

namespace {

struct Source {
    std::string file;
    std::optional<std::string> tensor;  // a file may have one whose name is empty: FILE:
};

// What may be read. A path that cannot be looked at is no file; opening it says why.
bool is_file(const std::string& path) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    return path == "-" || (std::filesystem::exists(status) && !std::filesystem::is_directory(status));
}

Source split(std::string_view text) {
    for (std::size_t at = text.find(':'); at != text.npos; at = text.find(':', at + 1))
        if (std::string file(text.substr(0, at)); is_file(file))
            return {std::move(file), std::string(text.substr(at + 1))};
    std::string whole(text);
    if (is_file(whole)) return {std::move(whole), {}};
    // Neither is there: most likely the colon was meant to divide.
    const std::size_t colon = text.rfind(':');
    return {std::string(text.substr(0, colon)), {}};
}

// With what no cast is judged on.
Tensor counted(Tensor tensor, const Narrowed& narrowed) {
    Excluded& out = tensor.excluded;
    for (const float value : tensor.values)
        if (!std::isfinite(value)) ++(std::isnan(value) ? out.nan : out.inf);
    out.inf -= narrowed.beyond;
    out.beyond = narrowed.beyond, out.below = narrowed.below;
    return tensor;
}

void refuse_name(const Source& source, std::string_view what) {
    if (source.tensor)
        throw usage_error(source.file,
                          fmt::format("{} and no name for it: leave out ':{}'", what, *source.tensor));
}

// A picture is reduced while it is read: the whole file is needed.
Tensor from_png(const RandomFile& file, const Source& source) {
    refuse_name(source, "a PNG has one picture");
    if (file.size() > kLargestPicture)
        throw input_error(file.where(),
                          fmt::format("is {}; such a file has at most {}", format_bytes(file.size()),
                                      format_bytes(kLargestPicture)));
    return read_picture(file.read_some(0, file.size()), source.file);
}

Tensor from_store(const TensorStore& store, const StoredTensor& tensor, bool unscaled) {
    const std::string where = store.files()[tensor.file].where();
    require_values(store, tensor, unscaled);
    const MatrixShape shape = tensor.matrix();
    // The values and what they are cast to; in Fortran order the stored ones and another copy besides.
    const double copies = tensor.fortran_order ? 4 : 2;
    require_memory(where, copies * sizeof(float) * static_cast<double>(tensor.values()));
    Tensor out{shape.rows, shape.cols, std::vector<float>(tensor.values()), tensor.name, {}};
    const Narrowed narrowed = store.read_rows(tensor, 0, out.values);
    if (out.values.empty())
        throw input_error(where, "tensor '" + quote_from(tensor.name) + "' has no elements");
    out.scales = tensor.scale_words(), out.note = tensor.note;
    out.scale_health = store.scale_health(tensor);
    return counted(std::move(out), narrowed);
}

Tensor from_store(const TensorStore& store, const Source& source, bool unscaled) {
    const auto tensors = store.tensors();
    if (tensors.empty()) throw input_error(source.file, "byte 8: the file has no tensor");
    if (source.file.ends_with(".npy")) refuse_name(source, "an .npy has one tensor");
    const StoredTensor* const tensor = source.tensor         ? store.find(*source.tensor)
                                       : tensors.size() == 1 ? &tensors[0]
                                                             : nullptr;
    if (tensor) return from_store(store, *tensor, unscaled);
    const std::string names = some_names(
        tensors,
        [](const StoredTensor& each) {
            return each.name.empty() ? std::string("''") : quote_from(each.name);
        },
        " ");
    throw usage_error(source.file, source.tensor ? fmt::format("unknown tensor '{}'; valid: {}",
                                                               quote_from(*source.tensor), names)
                                                 : fmt::format("has {} tensors; name one, as FILE:TENSOR: {}",
                                                               with_commas(tensors.size()), names));
}

}  // namespace

MatrixShape as_matrix(std::span<const std::size_t> shape) {
    MatrixShape out;
    if (shape.empty()) return out;
    out.cols = shape.back();
    for (const std::size_t extent : shape.first(shape.size() - 1)) out.rows *= extent;
    return out;
}

Tensor read_tensor(std::string_view file_and_tensor, Pipes pipes, bool unscaled_codes) {
    const Source source = split(file_and_tensor);
    RandomFile file = open_tensors(source.file, pipes);
    if (is_png(file.read_some(0, 8))) return from_png(file, source);
    return from_store(TensorStore(std::move(file)), source, unscaled_codes);
}

}  // namespace fp8lab
