// A model's tensors where they are: one .safetensors, .npy or .npz, or the .safetensors.index.json of a model in several
// files. Opening reads headers and the scales of FP8 tensors, nothing else; values are read row by row on demand. Where
// the file is a pipe or stdin, it is read whole, as far as its header says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/random_file.h"
#include "core/tensors/excluded.h"
#include "core/tensors/file.h"
#include "core/tensors/npz.h"
#include "core/tensors/weight_scales.h"

namespace fp8lab {

struct StoredTensor {
    std::string name;                // as the file has it; of an .npy the file's name without its extension
    std::size_t prefix = 0;          // of a list of files: so many characters of the name are the file's
    std::string dtype;               // as the file spells it: "F8_E4M3", "<f4"
    std::vector<std::size_t> shape;  // () for a scalar
    std::size_t file = 0;            // of TensorStore::files()
    std::size_t begin = 0, end = 0;  // bytes of that file, or of the unpacked member
    PackedMember packed = {};        // of a compressed archive
    bool fortran_order = false;
    bool is_float = false;                            // its values can be read
    bool is_scale = false;                            // it holds the scales of another tensor, or E8M0 codes
    std::shared_ptr<const WeightScales> scales = {};  // FP8: values are codes times these

    std::string_view own_name() const { return std::string_view(name).substr(prefix); }
    MatrixShape matrix() const { return as_matrix(shape); }
    std::uint64_t values() const;  // 0 where a dtype is not known and the shape overflows
};

class TensorStore {
  public:
    // "-" is stdin. Throws input_error with file, tensor and byte: everything that the readers of the formats refuse; an
    // .npy whose dtype cannot be read; an index that
    // names a file outside its folder, or a tensor that its file does not have; two tensors of one name; scales of a
    // wrong shape, or that are NaN, infinite or negative; a pickled checkpoint (.pt .pth .bin .ckpt), which holds code.
    explicit TensorStore(const std::filesystem::path& path);
    explicit TensorStore(RandomFile file);  // as open_tensors() opens it

    // Several files as one list: before each tensor's name stands its file's without the extension, "model-1/w"; of two
    // files of that name the second has "-2". One file is as above. Throws as above; usage_error for none.
    static TensorStore of_files(std::span<const std::filesystem::path> paths);

    const std::filesystem::path& path() const { return path_; }  // of a list the first
    std::size_t listed() const { return listed_; }               // how many paths it was opened with
    std::span<const RandomFile> files() const { return files_; }
    std::uint64_t bytes() const;                                        // of all files
    std::span<const StoredTensor> tensors() const { return tensors_; }  // by name
    const StoredTensor* find(std::string_view name) const;              // null: none

    // Rows first, first + 1, ... of the tensor's matrix as float32, as many as `rows` has room for; FP8 codes times
    // their scales. An array in Fortran order is read whole in every call; a compressed one is unpacked whole, and stays
    // until another one is read. In the calling thread; several may call at a time. Returns how many of the values
    // float32 does not hold; of an array in Fortran order of all its values. Throws usage_error: not a float, or not
    // whole rows of the tensor; input_error as RandomFile::read() and unpack().
    Narrowed read_rows(const StoredTensor& tensor, std::size_t first, std::span<float> rows) const;

  private:
    struct Unpacked;
    TensorStore();
    void open_safetensors(RandomFile file);
    void open_npz(RandomFile file);
    void open_shards(const std::filesystem::path& index);
    void find_scales();
    void read_stored(const StoredTensor& tensor, std::size_t offset, std::span<std::byte> into) const;

    std::filesystem::path path_;
    std::size_t listed_ = 1;
    std::vector<RandomFile> files_;
    std::vector<StoredTensor> tensors_;
    std::shared_ptr<Unpacked> unpacked_;
};

// Throws input_error, with file, byte and dtype: the values of the tensor cannot be read.
void require_float(const TensorStore& store, const StoredTensor& tensor);

// The input of a verb or lab that is a tensor, a picture or a model: a regular file, "-", or, where it may be one, a pipe.
// Throws as RandomFile().
RandomFile open_tensors(const std::filesystem::path& path, Pipes pipes = Pipes::refused);

}  // namespace fp8lab
