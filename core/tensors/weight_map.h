// model.safetensors.index.json: which file of a model in several parts holds which tensor, {"weight_map": {tensor: file}}.
// Format: https://huggingface.co/docs/safetensors, "Sharded checkpoints".
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace fp8lab {

struct WeightMap {
    struct Entry {
        std::string file;
        std::size_t place = 0;  // byte of the index, for messages
    };
    std::map<std::string, Entry> tensors;
    std::set<std::string> files;
};

// Throws input_error(where, ...), with tensor and byte where there is one: not JSON, no weight_map, a file's name that
// is not one of the index's own folder (a path, "..", empty) or does not end in .safetensors.
WeightMap parse_weight_map(std::string_view text, const std::string& where);

}  // namespace fp8lab
