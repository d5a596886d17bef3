#include "core/tensors/file.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/files/mapped_file.h"
#include "core/tensors/npy.h"
#include "core/tensors/picture.h"
#include "core/tensors/safetensors.h"
#include "core/tensors/tensor_store.h"

namespace fp8lab {

namespace {

struct Source {
    std::string file;
    std::optional<std::string> tensor;  // a file may have one whose name is empty: FILE:
};

bool is_file(const std::string& path) {
    std::error_code ignored;  // a path that cannot be looked at is no file; opening it says why
    return path == "-" || std::filesystem::is_regular_file(path, ignored);
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

bool is_npy(std::span<const std::byte> bytes, const std::string& file) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return file.ends_with(".npy") || text.starts_with("\x93NUMPY");
}

Tensor from_npy(std::span<const std::byte> bytes, const Source& source) {
    if (source.tensor)
        throw usage_error(source.file,
                          "an .npy has one tensor and no name for it: leave out ':" + *source.tensor + "'");
    NpyArray array = parse_npy(bytes, source.file);
    const MatrixShape shape = as_matrix(array.shape);
    return {shape.rows,
            shape.cols,
            std::move(array.values),
            std::filesystem::path(source.file).stem().string(),
            {}};
}

Tensor from_png(std::span<const std::byte> bytes, const Source& source) {
    if (source.tensor)
        throw usage_error(source.file,
                          "a PNG has one picture and no name for it: leave out ':" + *source.tensor + "'");
    return read_picture(bytes, source.file);
}

// A file that has other files, or an archive, or codes with scales beside them: read through its store.
Tensor from_store(const TensorStore& store, const StoredTensor& tensor) {
    if (!tensor.is_float)
        throw input_error(store.files()[tensor.file].path().string(),
                          fmt::format("byte {}: dtype {} of tensor '{}' is not a float", tensor.begin,
                                      tensor.dtype, tensor.name));
    const MatrixShape shape = tensor.matrix();
    Tensor out{shape.rows, shape.cols, std::vector<float>(tensor.values()), tensor.name, {}};
    store.read_rows(tensor, 0, out.values);
    return out;
}

Tensor from_store(const Source& source) {
    const TensorStore store(source.file);
    const auto tensors = store.tensors();
    const auto name_of = [](const StoredTensor& tensor) { return tensor.name; };
    if (!source.tensor && tensors.size() == 1) return from_store(store, tensors[0]);
    if (!source.tensor)
        throw usage_error(source.file,
                          fmt::format("has {} tensors; name one, as FILE:TENSOR", tensors.size()));
    const StoredTensor* const tensor = store.find(*source.tensor);
    if (!tensor) throw unknown_name(source.file, "tensor", *source.tensor, tensors, name_of);
    return from_store(store, *tensor);
}

bool is_store(const std::string& file) { return file.ends_with(".json") || file.ends_with(".npz"); }

Tensor from_safetensors(std::span<const std::byte> bytes, const Source& source) {
    const SafeTensorsIndex index = index_safetensors(bytes, source.file);
    if (index.tensors.empty()) throw input_error(source.file, "byte 8: the file has no tensor");
    auto found = source.tensor ? index.tensors.find(*source.tensor) : index.tensors.end();
    if (!source.tensor && index.tensors.size() == 1) found = index.tensors.begin();
    if (found == index.tensors.end()) {
        const auto name_of = [](const auto& entry) { return entry.first.empty() ? "''" : entry.first; };
        if (source.tensor) throw unknown_name(source.file, "tensor", *source.tensor, index.tensors, name_of);
        std::string names;
        for (const auto& entry : index.tensors) names += " " + std::string(name_of(entry));
        throw usage_error(source.file, fmt::format("has {} tensors; name one, as FILE:TENSOR:{}",
                                                   index.tensors.size(), names));
    }
    const auto& [name, info] = *found;
    if (info.dtype.starts_with("F8_") && source.file != "-") {  // its scales may stand beside it
        const TensorStore store(source.file);
        return from_store(store, *store.find(name));
    }
    const MatrixShape shape = as_matrix(info.shape);
    return {shape.rows, shape.cols, read_safetensor(bytes, info, source.file), name, {}};
}

}  // namespace

MatrixShape as_matrix(std::span<const std::size_t> shape) {
    MatrixShape out;
    if (shape.empty()) return out;
    out.cols = shape.back();
    for (const std::size_t extent : shape.first(shape.size() - 1)) out.rows *= extent;
    return out;
}

Tensor read_tensor(std::string_view file_and_tensor) {
    const Source source = split(file_and_tensor);
    if (is_store(source.file)) {
        Tensor tensor = from_store(source);
        if (tensor.values.empty())
            throw input_error(source.file, "tensor '" + tensor.name + "' has no elements");
        return tensor;
    }
    const MappedFile file(source.file);
    Tensor tensor = is_png(file.bytes())                ? from_png(file.bytes(), source)
                    : is_npy(file.bytes(), source.file) ? from_npy(file.bytes(), source)
                                                        : from_safetensors(file.bytes(), source);
    if (tensor.values.empty()) throw input_error(source.file, "tensor '" + tensor.name + "' has no elements");
    return tensor;
}

}  // namespace fp8lab
