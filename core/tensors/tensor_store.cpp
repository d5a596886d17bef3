#include "core/tensors/tensor_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/json/read_json.h"
#include "core/tensors/npy.h"
#include "core/tensors/picture.h"
#include "core/tensors/safetensors.h"
#include "core/tensors/weight_map.h"
#include "core/threads/ask.h"

namespace fp8lab {
namespace {

constexpr std::size_t kLargestIndex = std::size_t{64} << 20;  // bytes; models of 10^5 tensors have 10 MB

constexpr std::string_view kNpyMagic = "\x93NUMPY", kZipMagic = "PK";

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// decode_stored()'s name of NumPy's dtype; empty: no float.
std::string_view float_dtype(std::string_view dtype) {
    if (dtype == "<f8") return "F64";
    if (dtype == "<f4") return "F32";
    if (dtype == "<f2") return "F16";
    return is_float_dtype(dtype) ? dtype : std::string_view{};
}

StoredTensor from_npy(std::string name, const NpyIndex& index) {
    StoredTensor tensor{.name = std::move(name), .dtype = index.dtype, .shape = index.shape};
    tensor.begin = index.begin, tensor.end = index.end;
    tensor.fortran_order = index.fortran_order && index.shape.size() > 1;
    tensor.is_float = !float_dtype(index.dtype).empty();
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

}  // namespace

std::uint64_t StoredTensor::values() const {
    std::uint64_t count = 1;
    for (const std::size_t extent : shape)
        if (__builtin_mul_overflow(count, extent, &count)) return 0;
    return count;
}

void require_float(const TensorStore& store, const StoredTensor& tensor) {
    if (tensor.is_float) return;
    throw input_error(store.files()[tensor.file].where(),
                      fmt::format("byte {}: dtype {} of tensor '{}' is not a float", tensor.begin,
                                  quote_from(tensor.dtype), quote_from(tensor.name)));
}

RandomFile open_tensors(const std::filesystem::path& path, Pipes pipes) {
    return {path,
            [&](std::span<const std::byte> head) -> std::uint64_t {
                constexpr std::size_t kMagic = 8;
                // A ZIP archive says at its end what is in it; a PNG of 2^26 pixels has 2^29 bytes.
                constexpr std::uint64_t kLargestArchive = std::uint64_t{1} << 32;
                if (head.size() < kMagic) return kMagic;
                const std::string where = path == "-" ? "stdin" : path.string();
                const std::string_view text = text_of(head);
                if (is_png(head)) return kLargestPicture;
                if (text.starts_with(kZipMagic)) return kLargestArchive;
                if (text.starts_with(kNpyMagic)) return npy_size(head, where);
                return safetensors_size(head, where);
            },
            pipes};
}

// The last member that was unpacked: rows are read in order, many times of one tensor.
struct TensorStore::Unpacked {
    std::mutex mutex;
    std::size_t file = 0;
    std::uint64_t begin = 0;
    std::shared_ptr<const std::vector<std::byte>> bytes;
};

TensorStore::TensorStore() : unpacked_(std::make_shared<Unpacked>()) {}

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
            out.tensors_.push_back(std::move(tensor));
        }
        std::ranges::move(one.files_, std::back_inserter(out.files_));
    }
    std::ranges::sort(out.tensors_, {}, &StoredTensor::name);
    return out;
}

void TensorStore::open_safetensors(RandomFile opened) {
    const std::size_t file = files_.size();
    files_.push_back(std::move(opened));
    for (auto& [name, info] : index_safetensors(files_.back()).tensors) {
        StoredTensor tensor{.name = name, .dtype = info.dtype, .shape = info.shape, .file = file};
        tensor.begin = info.begin, tensor.end = info.end;
        tensor.is_float = is_float_dtype(info.dtype);
        tensor.is_scale = info.dtype == "F8_E8M0";
        tensors_.push_back(std::move(tensor));
    }
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

void TensorStore::find_scales() {
    for (StoredTensor& tensor : tensors_) {
        if (tensor.dtype != "F8_E4M3" && tensor.dtype != "F8_E5M2") continue;
        for (const std::string& name : scale_names(tensor.name)) {
            const auto found = std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name);
            if (found == tensors_.end() || found->name != name || !found->is_float) continue;
            const auto fail = [&](const std::string& why) {
                return input_error(files_[found->file].path().string(),
                                   fmt::format("byte {}: {}", found->begin, why));
            };
            // Checked before anything of that size is made.
            if (found->values() > std::max<std::uint64_t>(tensor.values(), 1))
                throw fail(fmt::format("tensor '{}' has more elements than its codes", quote_from(name)));
            std::vector<float> values(found->values());
            read_rows(*found, 0, values);
            try {
                tensor.scales = std::make_shared<WeightScales>(
                    weight_scales(name, tensor.shape, found->shape, std::move(values)));
            } catch (const Error& error) {
                throw fail(error.why());
            }
            found->is_scale = true;
            break;
        }
    }
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

void TensorStore::read_stored(const StoredTensor& tensor, std::size_t offset,
                              std::span<std::byte> into) const {
    const RandomFile& file = files_[tensor.file];
    if (tensor.packed.size == 0) return file.read(tensor.begin + offset, into);
    std::shared_ptr<const std::vector<std::byte>> bytes;
    {
        const std::lock_guard lock{unpacked_->mutex};
        if (!unpacked_->bytes || unpacked_->file != tensor.file || unpacked_->begin != tensor.packed.begin) {
            unpacked_->bytes.reset();
            unpacked_->bytes = std::make_shared<const std::vector<std::byte>>(unpack(file, tensor.packed));
            unpacked_->file = tensor.file;
            unpacked_->begin = tensor.packed.begin;
        }
        bytes = unpacked_->bytes;
    }
    std::memcpy(into.data(), bytes->data() + tensor.begin + offset, into.size());
}

Narrowed TensorStore::read_rows(const StoredTensor& tensor, std::size_t first, std::span<float> rows) const {
    const std::string_view dtype = float_dtype(tensor.dtype);
    const MatrixShape shape = tensor.matrix();
    if (dtype.empty()) throw usage_error(tensor.name, "dtype " + tensor.dtype + " is not a float");
    if (rows.empty()) return {};
    if (shape.cols == 0 || rows.size() % shape.cols != 0 || first > shape.rows ||
        rows.size() / shape.cols > shape.rows - first)
        throw usage_error(tensor.name, "only whole rows of the tensor are read");
    const std::size_t width = width_of_dtype(dtype);
    Narrowed narrowed;
    if (tensor.fortran_order) {
        std::vector<std::byte> stored(tensor.end - tensor.begin);
        std::vector<float> values(stored.size() / width);
        read_stored(tensor, 0, stored);
        ask_between();
        narrowed = decode_stored(dtype, stored, values);
        ask_between();
        values = to_c_order(values, tensor.shape);
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first * shape.cols), rows.size(),
                    rows.begin());
    } else {
        constexpr std::size_t kPiece = std::size_t{1} << 20;  // values
        std::vector<std::byte> stored;
        for (std::size_t at = 0; at < rows.size(); at += kPiece) {
            ask_between();
            const std::span<float> piece = rows.subspan(at, std::min(kPiece, rows.size() - at));
            stored.resize(piece.size() * width);
            read_stored(tensor, (first * shape.cols + at) * width, stored);
            narrowed += decode_stored(dtype, stored, piece);
        }
    }
    if (tensor.scales) {
        const auto is_inf = [](float value) { return std::isinf(value); };
        const auto infinite_codes = std::ranges::count_if(rows, is_inf);
        apply_scales(*tensor.scales, first, shape.cols, rows);
        narrowed.beyond = std::max<std::int64_t>(0, std::ranges::count_if(rows, is_inf) - infinite_codes);
    }
    return narrowed;
}

}  // namespace fp8lab
