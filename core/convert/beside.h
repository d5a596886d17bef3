// What belongs to a model besides its tensors: its configuration, its tokenizer.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace fp8lab {

// The folder's config.json with its quantization block replaced (null: removed) and the rest as it is. Without a
// config.json: that block alone; empty where that is null too. Throws input_error: it is no JSON object.
std::string converted_config(const std::filesystem::path& folder, const nlohmann::json& block);
// model_type of the folder's config.json; empty: not said, or no such file. Throws as above.
std::string model_type_in(const std::filesystem::path& folder);

// The other files of a model's folder, by name.
// copied: tokenizer, generation, preprocessing, the model's own code, licences.
// left: weights in other formats, readmes, hf_quant_config.json (it describes the old layout), what is not known.
// Both are empty without a config.json: it is no model's folder. Folders are in neither.
struct FilesBeside {
    std::vector<std::string> copied, left;
};
FilesBeside files_beside(const std::filesystem::path& folder);

}  // namespace fp8lab
