// A model's tensors where they are: one .safetensors, .npy or .npz, or the .safetensors.index.json of a model in several
// files. Opening reads headers, global scales and the model's configuration beside the file, nothing else; values and
// their scales are read row by row on demand. Where the file is a pipe or stdin, it is read whole, as far as its header
// says. Codes are read by the conventions of layouts.h: a tensor that does not fit is refused, the others are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/files/random_file.h"
#include "core/tensors/excluded.h"
#include "core/tensors/scales/stored_tensor.h"

namespace fp8lab {

class TensorStore {
  public:
    // "-" is stdin. Throws input_error with file, tensor and byte: everything that the readers of the formats refuse; an
    // .npy whose dtype cannot be read; an index that names a file outside its folder, or a tensor that its file does not
    // have; two tensors of one name; a pickled checkpoint (.pt .pth .bin .ckpt), which holds code. The scales of a single
    // shard are also found in the other files of its model, by the index that stands beside it.
    explicit TensorStore(const std::filesystem::path& path);
    explicit TensorStore(RandomFile file);  // as open_tensors() opens it

    // Several files as one list: before each tensor's name stands its file's without the extension, "model-1/w"; of two
    // files of that name the second has "-2". One file is as above. Throws as above; usage_error for none.
    static TensorStore of_files(std::span<const std::filesystem::path> paths);

    const std::filesystem::path& path() const { return path_; }  // of a list the first
    std::size_t listed() const { return listed_; }               // how many paths it was opened with
    std::span<const RandomFile> files() const { return files_; }
    std::uint64_t bytes() const;  // of all files
    const std::map<std::string, std::string>& metadata(std::size_t file) const { return metadata_[file]; }
    std::span<const StoredTensor> tensors() const { return tensors_; }  // by name
    const StoredTensor* find(std::string_view name) const;              // null: none

    // What is to be said of the file on stderr, a sentence each: what is refused, scales that are not applied,
    // configurations that contradict the tensors. Not printable().
    std::vector<std::string> notes() const;
    // "2 tensors hold codes without a scale: a, b"; empty: none does. Not printable().
    std::string unscaled() const;

    // Rows first, first + 1, ... of the tensor's matrix as float32, as many as `rows` has room for; codes times their
    // scales. An array in Fortran order is read whole in every call; a compressed one is unpacked whole, and stays
    // until another one is read. In the calling thread; several may call at a time. Returns how many of the values
    // float32 does not hold; of an array in Fortran order of all its values. Throws usage_error: not a float, or not
    // whole rows of the tensor; input_error as RandomFile::read() and unpack().
    Narrowed read_rows(const StoredTensor& tensor, std::size_t first, std::span<float> rows) const;
    // Counts what is unusual among the scales of a tensor; all of them are read. Throws as RandomFile::read().
    ScaleHealth scale_health(const StoredTensor& tensor) const;

  private:
    struct Unpacked;
    TensorStore();
    void open_safetensors(RandomFile file);
    void open_npz(RandomFile file);
    void open_shards(const std::filesystem::path& index);
    void find_scales();
    void read_scales(const StoredScales& scales, std::size_t first, std::span<float> values) const;
    std::int64_t scale_rows(const StoredScales& scales, std::size_t first, std::span<float> rows) const;
    void read_stored(const StoredTensor& tensor, std::size_t offset, std::span<std::byte> into) const;

    std::filesystem::path path_;
    std::size_t listed_ = 1;
    std::vector<RandomFile> files_;
    std::vector<std::map<std::string, std::string>> metadata_;  // of each file
    std::vector<StoredTensor> tensors_;
    std::vector<std::string> problems_;  // of files beside it
    std::shared_ptr<Unpacked> unpacked_;
};

// Throws input_error with file and byte: the values of the tensor cannot be read, or, unless `unscaled`, are codes without
// a scale.
void require_values(const TensorStore& store, const StoredTensor& tensor, bool unscaled = false);

// The input of a verb or lab that is a tensor, a picture or a model: a regular file, "-", or, where it may be one, a pipe.
// Throws as RandomFile().
RandomFile open_tensors(const std::filesystem::path& path, Pipes pipes = Pipes::refused);

}  // namespace fp8lab
