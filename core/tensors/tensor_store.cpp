#include "core/tensors/tensor_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/json/read_json.h"
#include "core/tensors/dtype.h"
#include "core/tensors/npy.h"
#include "core/tensors/picture.h"
#include "core/tensors/safetensors.h"
#include "core/tensors/scales/find_scales.h"
#include "core/tensors/scales/shards_beside.h"
#include "core/tensors/weight_map.h"

namespace fp8lab {
namespace {

constexpr std::size_t kLargestIndex = std::size_t{64} << 20;  // bytes; models of 10^5 tensors have 10 MB

constexpr std::string_view kNpyMagic = "\x93NUMPY", kZipMagic = "PK";

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Sets element and role by NumPy's dtype.
StoredTensor from_npy(std::string name, const NpyIndex& index) {
    StoredTensor tensor{.name = std::move(name), .dtype = index.dtype, .shape = index.shape};
    tensor.begin = index.begin, tensor.end = index.end;
    tensor.fortran_order = index.fortran_order && index.shape.size() > 1;
    tensor.big_endian = index.dtype.starts_with('>');
    for (const auto& [kind, element] : {std::pair{"f8", "F64"}, {"f4", "F32"}, {"f2", "F16"}})
        if (std::string_view(index.dtype).substr(1) == kind) tensor.element = element;
    tensor.role = tensor.is_float() ? TensorRole::values : TensorRole::other;
    if (!tensor.is_float()) tensor.why = "not a float";
    return tensor;
}

bool is_pickle(const std::filesystem::path& path, std::string_view head) {
    constexpr std::array<std::string_view, 4> kExtensions = {".pt", ".pth", ".bin", ".ckpt"};
    // Protocols 2 to 5. The length of a safetensors header may begin with the same bytes: then its '{' follows.
    const bool is_pickled = head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5 &&
                            (head.size() < 9 || head[8] != '{');
    return std::ranges::find(kExtensions, path.extension().string()) != kExtensions.end() || is_pickled ||
           head.find("/data.pkl") != head.npos;
}

// A model is often named by its folder: says which file of it to name.
void refuse_folder(const std::filesystem::path& path) {
    std::error_code none;
    if (path == "-" || !std::filesystem::is_directory(path, none)) return;
    constexpr std::string_view kIndex = ".safetensors.index.json", kFile = ".safetensors";
    std::vector<std::string> indices, files;
    for (auto at = std::filesystem::directory_iterator(path, none);
         !none && at != std::filesystem::directory_iterator(); at.increment(none)) {
        const std::string name = at->path().filename().string();
        if (name.ends_with(kIndex)) indices.push_back(name);
        if (name.ends_with(kFile)) files.push_back(name);
    }
    std::vector<std::string>& named = indices.empty() ? files : indices;
    if (named.empty()) return;
    std::ranges::sort(named);
    throw input_error(path.string(),
                      fmt::format("is a folder, not a file: name {}{} in it",
                                  named.size() == 1 ? "" : "one of ", some_names(named, quote_from)));
}

}  // namespace

std::uint64_t StoredTensor::values() const {
    std::uint64_t count = 1;
    for (const std::size_t extent : shape)
        if (__builtin_mul_overflow(count, extent, &count)) return 0;
    return count;
}

std::string StoredTensor::scale_words() const {
    if (role == TensorRole::unscaled) return "none found";
    if (!scales) return {};
    return fmt::format("{}, {}{}", scales->name, scales->grid.words(),
                       scales->global ? ", a global scale" : "");
}

void require_values(const TensorStore& store, const StoredTensor& tensor, bool unscaled) {
    const auto fail = [&](const std::string& why) {
        return input_error(store.files()[tensor.file].where(), fmt::format("byte {}: {}", tensor.begin, why));
    };
    const std::string name = quote_from(tensor.name), dtype = quote_from(tensor.dtype);
    if (tensor.role == TensorRole::refused) throw fail(fmt::format("tensor '{}': {}", name, tensor.why));
    if (!tensor.is_float()) throw fail(fmt::format("dtype {} of tensor '{}' is not a float", dtype, name));
    if (tensor.role == TensorRole::unscaled && !unscaled)
        throw fail(
            fmt::format("tensor '{}' holds {} codes without a scale: none found; quantize and inspect "
                        "take the codes as values with --unscaled-codes",
                        name, dtype));
}

RandomFile open_tensors(const std::filesystem::path& path, Pipes pipes) {
    refuse_folder(path);
    return {path,
            [&](std::span<const std::byte> head) -> std::uint64_t {
                constexpr std::size_t kEnough = 8;
                // A ZIP archive says at its end what is in it; a PNG of 2^26 pixels has 2^29 bytes.
                constexpr std::uint64_t kLargestArchive = std::uint64_t{1} << 32;
                if (head.size() < kEnough) return kEnough;
                const std::string where = path == "-" ? "stdin" : path.string();
                const std::string_view text = text_of(head);
                if (is_png(head)) return kLargestPicture;
                if (text.starts_with(kZipMagic)) return kLargestArchive;
                if (text.starts_with(kNpyMagic)) return npy_size(head, where);
                return safetensors_size(head, where);
            },
            pipes};
}

TensorStore::TensorStore(const std::filesystem::path& path) : TensorStore(open_tensors(path)) {}

TensorStore::TensorStore(RandomFile file) : TensorStore() {
    path_ = file.path();
    const std::vector<std::byte> bytes = file.read_some(0, 128);
    const std::string_view head = text_of(bytes);
    if (is_pickle(path_, head)) throw input_error(file.where(), "holds code; save it as .safetensors");
    if (path_.extension() == ".json") {
        open_shards(path_);
    } else if (head.starts_with(kZipMagic) || path_.extension() == ".npz") {
        open_npz(std::move(file));
    } else if (head.starts_with(kNpyMagic) || path_.extension() == ".npy") {
        tensors_.push_back(from_npy(path_.stem().string(), index_npy(file)));
        files_.push_back(std::move(file));
    } else {
        open_safetensors(std::move(file));
    }
    metadata_.resize(files_.size());
    std::ranges::sort(tensors_, {}, &StoredTensor::name);
    find_scales();
}

TensorStore TensorStore::of_files(std::span<const std::filesystem::path> paths) {
    if (paths.empty()) throw usage_error("file", "no file is named");
    if (paths.size() == 1) return TensorStore(paths.front());
    TensorStore out;
    out.path_ = paths.front();
    out.listed_ = paths.size();
    std::set<std::string> taken;
    for (const std::filesystem::path& path : paths) {
        TensorStore one(path);
        std::string name = path.stem().string();
        for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}-{}", path.stem().string(), n);
        name += '/';
        for (StoredTensor& tensor : one.tensors_) {
            tensor.name.insert(0, name);
            tensor.prefix = name.size();
            tensor.file += out.files_.size();
            if (tensor.scales) tensor.scales->file += out.files_.size();
            out.tensors_.push_back(std::move(tensor));
        }
        std::ranges::move(one.files_, std::back_inserter(out.files_));
        std::ranges::move(one.metadata_, std::back_inserter(out.metadata_));
        std::ranges::move(one.problems_, std::back_inserter(out.problems_));
    }
    std::ranges::sort(out.tensors_, {}, &StoredTensor::name);
    return out;
}

void TensorStore::open_safetensors(RandomFile opened) {
    const std::size_t file = files_.size();
    files_.push_back(std::move(opened));
    SafeTensorsIndex index = index_safetensors(files_.back());
    for (const auto& [name, info] : index.tensors) tensors_.push_back(from_safetensors(name, info, file));
    metadata_.resize(file);
    metadata_.push_back(std::move(index.metadata));
}

void TensorStore::open_npz(RandomFile file) {
    for (const auto& [name, array] : index_npz(file)) {
        tensors_.push_back(from_npy(name, array.index));
        tensors_.back().packed = array.packed;
    }
    files_.push_back(std::move(file));
}

void TensorStore::open_shards(const std::filesystem::path& index) {
    const std::string text = read_bounded(index, kLargestIndex);
    const WeightMap map = parse_weight_map(text, index.string());
    std::map<std::string, std::string> file_of;  // tensor -> shard, as the shards have it
    for (const std::string& shard : map.files) {
        const std::size_t before = tensors_.size();
        open_safetensors(RandomFile(index.parent_path() / shard));
        for (std::size_t i = before; i < tensors_.size(); ++i) {
            const auto [there, added] = file_of.emplace(tensors_[i].name, shard);
            if (!added)
                throw input_error((index.parent_path() / shard).string(),
                                  fmt::format("byte {}: tensor '{}' is in '{}' too", tensors_[i].begin,
                                              quote_from(tensors_[i].name), there->second));
        }
    }
    for (const auto& [tensor, entry] : map.tensors) {
        const auto there = file_of.find(tensor);
        if (there == file_of.end() || there->second != entry.file)
            throw input_error(index.string(), fmt::format("byte {}: tensor '{}' is not in '{}'", entry.place,
                                                          quote_from(tensor), entry.file));
    }
}

// Where the file is one of a safetensors model, codes may need what stands beside it: the configuration, and the other
// files.
void TensorStore::find_scales() {
    const auto is_code = [](const StoredTensor& tensor) { return may_be_codes(tensor.dtype); };
    const auto may_be_scale = [](const StoredTensor& tensor) { return tensor.name.ends_with(".scale"); };
    const bool is_model = path_ != "-" && !files_.empty();
    const bool of_model = is_model && std::ranges::any_of(tensors_, is_code);
    std::optional<QuantizationConfig> config;
    if (of_model) try {
            config = quantization_config_in(files_.front().path().parent_path());
        } catch (const Error& error) {
            problems_.push_back(fmt::format("{} is not read: {}", error.where(), error.why()));
        }
    std::optional<ShardsBeside> beside;
    // The codes of scales that are alone may be there too.
    if (is_model && files_.size() == 1 && (of_model || std::ranges::any_of(tensors_, may_be_scale)))
        beside.emplace(files_);
    const auto elsewhere = [&](const std::string& name) -> const StoredTensor* {
        return beside ? beside->find(name) : nullptr;
    };
    fp8lab::find_scales({.tensors = tensors_,
                         .files = files_,
                         .metadata = metadata_,
                         .config = config ? &*config : nullptr,
                         .elsewhere = elsewhere});
    if (beside && !beside->problem().empty()) problems_.push_back(beside->problem());
    metadata_.resize(files_.size());
}

std::string TensorStore::unscaled() const {
    std::vector<std::string> names;
    for (const StoredTensor& tensor : tensors_)
        if (tensor.role == TensorRole::unscaled) names.push_back(quote_from(tensor.name));
    if (names.empty()) return {};
    return fmt::format(
        "{} codes without a scale, none found: {}",
        names.size() == 1 ? "1 tensor holds" : fmt::format("{} tensors hold", with_commas(names.size())),
        some_names(names, std::identity{}));
}

std::vector<std::string> TensorStore::notes() const {
    std::map<std::string, std::vector<std::string>> with;
    for (const StoredTensor& tensor : tensors_) {
        if (tensor.role == TensorRole::refused)
            with["not read: " + tensor.why].push_back(quote_from(tensor.name));
        if (!tensor.note.empty()) with[tensor.note].push_back(quote_from(tensor.name));
    }
    std::vector<std::string> out = problems_;
    for (const auto& [note, names] : with)
        out.push_back(fmt::format("{}: {}", note, some_names(names, std::identity{})));
    return out;
}

std::uint64_t TensorStore::bytes() const {
    std::uint64_t sum = 0;
    for (const RandomFile& file : files_) sum += file.size();
    return sum;
}

const StoredTensor* TensorStore::find(std::string_view name) const {
    const auto found = std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name);
    return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

}  // namespace fp8lab
