// The other files of a model, for one of its shards that was opened alone: by the .safetensors.index.json beside it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/files/random_file.h"
#include "core/tensors/scales/stored_tensor.h"
#include "core/tensors/weight_map.h"

namespace fp8lab {

class ShardsBeside {
  public:
    // `files`: has the shard; what is opened is added. It must outlive this.
    explicit ShardsBeside(std::vector<RandomFile>& files) : files_(files) {}

    // A tensor of another shard, with file and element; null: there is no index that names the shard, it does not have
    // the tensor, or one of the files cannot be read, which problem() says. The files are opened when they are needed.
    const StoredTensor* find(const std::string& name);
    const std::string& problem() const { return problem_; }

  private:
    void look_for_index();

    std::vector<RandomFile>& files_;
    bool looked_ = false;
    std::optional<WeightMap> map_;
    std::filesystem::path folder_;
    std::map<std::string, std::map<std::string, StoredTensor>> shards_;  // by file, then by name
    std::string problem_;
};

}  // namespace fp8lab
