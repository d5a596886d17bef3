#include "core/tensors/scales/shards_beside.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/tensors/scales/find_scales.h"

namespace fp8lab {

void ShardsBeside::look_for_index() {
    looked_ = true;
    constexpr std::string_view kEnding = ".safetensors.index.json";
    const std::filesystem::path own = files_.front().path();
    folder_ = own.parent_path();
    std::error_code ignored;
    std::set<std::filesystem::path> indices;  // in a fixed order
    for (const auto& entry : std::filesystem::directory_iterator(folder_.empty() ? "." : folder_, ignored))
        if (entry.path().string().ends_with(kEnding) && entry.is_regular_file(ignored))
            indices.insert(entry.path());
    for (const std::filesystem::path& path : indices) {
        try {
            WeightMap map = parse_weight_map(read_bounded(path, kLargestDocument), path.string());
            if (!map.files.contains(own.filename().string())) continue;
            map_ = std::move(map);
            return;
        } catch (const Error& error) {
            problem_ = fmt::format("{} is not read: {}", error.where(), error.why());
        }
    }
}

const StoredTensor* ShardsBeside::find(const std::string& name) {
    if (!looked_) look_for_index();
    if (!map_) return nullptr;
    const auto entry = map_->tensors.find(name);
    if (entry == map_->tensors.end() || entry->second.file == files_.front().path().filename())
        return nullptr;
    const auto [shard, is_new] = shards_.try_emplace(entry->second.file);
    if (is_new) try {
            RandomFile file(folder_ / entry->second.file);
            for (const auto& [each, info] : index_safetensors(file).tensors)
                shard->second.emplace(each, from_safetensors(each, info, files_.size()));
            files_.push_back(std::move(file));
        } catch (const Error& error) {
            shard->second.clear();
            problem_ = fmt::format("{} is not read: {}", error.where(), error.why());
        }
    const auto found = shard->second.find(name);
    return found == shard->second.end() ? nullptr : &found->second;
}

}  // namespace fp8lab
