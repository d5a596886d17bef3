// What belongs to a model besides its tensors: its configuration, its tokenizer.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace fp8lab {

// The configuration of a folder with its quantization block replaced (by null: taken away), and all else as it is; without
// a config.json one with that block alone; empty: there is neither. Throws input_error for one that is no JSON object.
std::string converted_config(const std::filesystem::path& folder, const nlohmann::json& block);
// model_type of the folder's config.json; empty: it is not said, or there is none. Throws as above.
std::string model_type_in(const std::filesystem::path& folder);

// The other files of a model's folder, by name. Copied are those of the tokenizer, of generation and of preprocessing, the
// model's own code, licences. Not copied: weights in other formats, readmes, what is not known, hf_quant_config.json, which
// describes the old layout, and folders. Without a config.json there nothing is taken: it is no model's folder.
struct FilesBeside {
    std::vector<std::string> copied, left;
};
FilesBeside files_beside(const std::filesystem::path& folder);

}  // namespace fp8lab
