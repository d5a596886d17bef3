// Writes a model again in another published layout (targets.h), file by file. Reads every layout of TensorStore.
// Matrices of linear layers are cast by cast_to_layout() (core/scaling), to nearest. Other floats become BF16, integers
// are copied. Scales of activations and of the KV cache are left out.
//
// - q, k and v, and gate and up, share one NVFP4 global scale, also across files: vLLM fuses them, and takes the largest
//   divisor where they differ.
// - The same input gives the same bytes, on any number of threads. Converting the result to the same layout again changes
//   no value. It may change MX block scales, and their codes with them (code_layouts.h).
// - Memory: some tens of megabytes, whatever the size of the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/convert/targets.h"
#include "core/tensors/tensor_store.h"

namespace fp8lab {

struct ConvertSpec {
    std::string to;                 // a name of convert_targets()
    std::vector<std::string> keep;  // what has one of these in its name stays in BF16
};

// A tensor of the output. Offsets are bytes of its file.
struct WrittenTensor {
    std::string name;
    std::string_view dtype;
    std::vector<std::size_t> shape;
    std::uint64_t begin = 0, bytes = 0;
};

struct ConvertedTensor {
    const StoredTensor* from = nullptr;
    std::string name;             // of the weight
    std::string_view stays = {};  // why it stays in BF16: "head", "router"; empty: it is cast
    bool copied = false;          // its bytes are, in their dtype
    std::string group = {};       // those of one group share a global scale; empty: alone
    std::size_t file = 0;         // of Conversion::files()
    WrittenTensor codes = {}, scales = {}, global = {};  // without a name: there is none
};

struct ConvertedFile {
    std::string name;       // in the folder
    std::string head = {};  // of the .safetensors
    std::uint64_t size = 0;
};

struct ConvertProgress {
    std::size_t done, all;  // tensors
    double part;            // 0 to 1, by bytes
};

class Conversion {
  public:
    // Looks at names and shapes; reads no values.
    // Throws usage_error: an unknown layout; a --keep that no tensor has, or that splits q, k and v.
    // Throws input_error, with the tensors' names:
    //   a tensor that the reader refuses; codes without a scale;
    //   e4m3-block128 of fused matrices whose rows 128 does not divide; FP4 and MX where 16 or 32 does not divide K;
    //   matrices that are stored transposed: of GPT-2, and gpt-oss' experts as transformers names them;
    //   one file of a model in several; nothing to cast.
    Conversion(std::shared_ptr<const TensorStore> store, ConvertSpec spec);

    // Writes the folder, which must not exist: tensors, the index, config.json with its quantization block replaced, and
    // the model's other files (beside.h). Nothing is left where it fails or is ended.
    // Throws input_error: NaN or Inf in what is cast, and as TensorStore::read_rows(). Throws Error{failed}: it cannot be
    // written. `option` names the folder in messages. `progress` is called by one thread.
    void write(const std::string& option, const std::filesystem::path& folder,
               const std::function<void(const ConvertProgress&)>& progress = {});

    const TensorStore& store() const { return *store_; }
    const ConvertTarget& target() const { return *target_; }
    const std::vector<ConvertedTensor>& tensors() const { return tensors_; }  // by name
    const std::vector<ConvertedFile>& files() const { return files_; }
    const std::vector<std::string>& left_out() const { return left_out_; }  // names of tensors of the input
    const std::vector<std::string>& beside() const { return beside_; }      // other files that write() wrote
    const std::vector<std::string>& not_copied() const { return not_copied_; }
    std::int64_t beyond_bf16() const { return beyond_; }  // values that BF16 does not hold: they became Inf
    std::size_t cast() const;                             // how many tensors
    std::uint64_t bytes() const;                          // of all files() together

  private:
    void take_tensors();
    void check() const;
    void place_pieces();
    void find_amaxes();
    std::filesystem::path model_folder() const;
    std::vector<std::string> ignored() const;
    float amax_of(const ConvertedTensor& tensor) const;
    void write_others(const std::filesystem::path& folder);

    std::shared_ptr<const TensorStore> store_;
    ConvertSpec spec_;
    const ConvertTarget* target_;
    std::vector<ConvertedTensor> tensors_;
    std::vector<ConvertedFile> files_;
    std::vector<std::string> left_out_, beside_, not_copied_;
    std::vector<float> amaxes_;  // of each tensor, or of its group
    std::int64_t beyond_ = 0;
};

}  // namespace fp8lab
