#include "core/convert/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/convert/beside.h"
#include "core/convert/parts.h"
#include "core/json/read_json.h"
#include "core/tensors/dtype.h"
#include "core/tensors/weight_map.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

bool is_numpy(const StoredTensor& tensor) {
    return !tensor.dtype.empty() && std::string_view("<>|=").find(tensor.dtype[0]) != std::string_view::npos;
}

std::uint64_t bytes_of(const WrittenTensor& tensor) {
    std::uint64_t bits = bits_of_dtype(tensor.dtype);
    for (const std::size_t extent : tensor.shape) bits *= extent;
    return bits / 8;
}

void place(WrittenTensor& tensor, std::string name, std::string_view dtype, std::vector<std::size_t> shape) {
    tensor = {.name = std::move(name), .dtype = dtype, .shape = std::move(shape)};
    tensor.bytes = bytes_of(tensor);
}

// The index beside a single file that names it, if there is one.
fs::path index_of_shard(const fs::path& path) {
    std::error_code ignored;
    const fs::path folder = path.parent_path();
    std::set<fs::path> indices;
    for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored))
        if (entry.path().string().ends_with(".safetensors.index.json") && entry.is_regular_file(ignored))
            indices.insert(entry.path());
    for (const fs::path& index : indices) try {
            const WeightMap map = parse_weight_map(read_text(index), index.string());
            if (map.files.size() > 1 && map.files.contains(path.filename().string())) return index;
        } catch (const Error&) {
            continue;  // of another model
        }
    return {};
}

// Throws where there is one: "3 tensors WHY: a, b, c".
void refuse(const TensorStore& store, const Names& names, const std::string& why) {
    if (names.empty()) return;
    throw input_error(store.files().empty() ? store.path().string() : store.files().front().where(),
                      fmt::format("{}: {}", why, some_names(names, [](const std::string& name) {
                                      return quote_from(name);
                                  })));
}

}  // namespace

Conversion::Conversion(std::shared_ptr<const TensorStore> store, ConvertSpec spec)
    : store_(std::move(store)), spec_(std::move(spec)), target_(&find_convert_target(spec_.to)) {
    if (const fs::path path = store_->path(); path != "-" && path.extension() != ".json")
        if (const fs::path index = index_of_shard(path); !index.empty())
            throw input_error(path.string(), "is one file of a model in several: convert " + index.string());
    if (target_->has_codes() && model_type_in(model_folder()) == "gpt2")
        throw input_error((model_folder() / "config.json").string(),
                          "model_type 'gpt2' stores its matrices as (K, N): scales would lie along the wrong "
                          "dimension; only bf16 is written");
    take_tensors();
    check();
    place_pieces();
    std::ranges::sort(left_out_);
}

fs::path Conversion::model_folder() const {
    return store_->path() == "-" ? fs::path("/dev/null") : store_->path().parent_path();
}

void Conversion::take_tensors() {
    std::map<std::size_t, std::size_t> file_at;  // of the store -> of files_
    for (const StoredTensor& tensor : store_->tensors()) {
        if (tensor.role == TensorRole::scale || tensor.role == TensorRole::aside ||
            (tensor.role == TensorRole::other && is_numpy(tensor))) {
            left_out_.push_back(tensor.name);
            continue;
        }
        ConvertedTensor out{.from = &tensor, .name = weight_name(tensor)};
        const auto [at, is_new] = file_at.emplace(tensor.file, files_.size());
        if (is_new) {
            fs::path name = store_->files()[tensor.file].path().filename();
            if (name == "-") name = "model.safetensors";
            files_.push_back({.name = name.replace_extension(".safetensors").string()});
        }
        out.file = at->second;
        out.copied = tensor.role == TensorRole::other;
        const auto named = [&](const std::string& part) { return out.name.find(part) != out.name.npos; };
        if (std::ranges::any_of(spec_.keep, named)) out.stays = "--keep";
        if (out.stays.empty()) out.stays = stays_because(out.name, tensor.shape);
        if (out.copied) out.stays = "not a float";
        if (out.stays.empty() && !target_->has_codes()) out.stays = "bf16";
        if (out.stays.empty()) out.group = fused_group(out.name);
        tensors_.push_back(std::move(out));
    }
    std::ranges::sort(tensors_, {}, &ConvertedTensor::name);
}

namespace {

void check_keep(const std::vector<ConvertedTensor>& tensors, const Names& keep) {
    for (const std::string& part : keep)
        if (std::ranges::none_of(
                tensors, [&](const ConvertedTensor& each) { return each.name.find(part) != each.name.npos; }))
            throw usage_error("--keep", "no tensor has '" + quote_from(part) + "' in its name");
    std::set<std::string> cast;
    for (const ConvertedTensor& each : tensors)
        if (!each.group.empty()) cast.insert(each.group);
    for (const ConvertedTensor& each : tensors)
        if (each.stays == "--keep" && cast.contains(fused_group(each.name)))
            throw usage_error("--keep", "'" + quote_from(each.name) +
                                            "' is fused with others when the model is loaded: keep all of "
                                            "q, k and v, or of gate and up, or none");
}

}  // namespace

void Conversion::check() const {
    Names refused, unscaled, twice, ragged, short_rows, swapped;
    for (const StoredTensor& tensor : store_->tensors()) {
        if (tensor.role == TensorRole::refused)
            throw input_error(store_->files()[tensor.file].where(),
                              fmt::format("byte {}: tensor '{}' is not read: {}", tensor.begin,
                                          quote_from(tensor.name), tensor.why));
        if (tensor.role == TensorRole::unscaled) unscaled.push_back(tensor.name);
    }
    refuse(*store_, unscaled, "codes without a scale, which are not converted");
    check_keep(tensors_, spec_.keep);
    std::map<std::string, int> members;
    for (const ConvertedTensor& each : tensors_)
        if (!each.group.empty()) ++members[each.group];
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const ConvertedTensor& each = tensors_[i];
        if (i > 0 && tensors_[i - 1].name == each.name) twice.push_back(each.name);
        if (each.from->scales && each.from->scales->layout == "gpt-oss" &&
            each.from->name.ends_with("_blocks"))
            swapped.push_back(each.from->name);
        if (!each.stays.empty()) continue;
        const auto& shape = each.from->shape;
        constexpr std::size_t kRows = 128;
        const bool is_fused = !each.group.empty() && members[each.group] > 1;
        if (target_->name == "e4m3-block128" && is_fused && shape[0] % kRows != 0)
            ragged.push_back(each.name);
        if (shape[1] % target_->layout().block() != 0) short_rows.push_back(each.name);
    }
    refuse(*store_, twice, "two tensors would have one name");
    refuse(
        *store_, swapped,
        "gpt-oss' experts as transformers names them are stored transposed: (E, N, K) in codes, (E, K, N) in "
        "BF16. convert transposes nothing; transformers writes them in BF16 with "
        "Mxfp4Config(dequantize=True)");
    refuse(*store_, ragged,
           "e4m3-block128 of matrices that are fused when the model is loaded needs rows that 128 divides; "
           "--keep leaves them in BF16");
    if (target_->has_codes())
        refuse(*store_, short_rows,
               fmt::format("{} needs columns that {} divides; --keep leaves them in BF16", target_->name,
                           target_->layout().block()));
    if (target_->has_codes() && cast() == 0)
        throw input_error(store_->path() == "-" ? "stdin" : store_->path().string(),
                          fmt::format("no tensor would be cast to {}: it has no matrix of a linear layer, "
                                      "called NAME.weight",
                                      target_->name));
}

void Conversion::place_pieces() {
    for (ConvertedTensor& each : tensors_) {
        const auto& shape = each.from->shape;
        if (!each.stays.empty()) {
            place(each.codes, each.name, each.copied ? std::string_view(each.from->dtype) : "BF16", shape);
            if (each.copied) each.codes.bytes = each.from->end - each.from->begin;
            continue;
        }
        const CodeLayout& layout = target_->layout();
        place(each.codes, each.name + std::string(target_->codes), layout.is_fp4() ? "U8" : "F8_E4M3",
              {shape[0], layout.is_fp4() ? shape[1] / 2 : shape[1]});
        place(each.scales, each.name + std::string(target_->scale),
              layout.scales == "F8_E8M0" ? "U8" : layout.scales,
              {layout.scale_rows(shape[0]), layout.scale_cols(shape[1])});
        if (layout.has_global) place(each.global, each.name + std::string(target_->global), "F32", {1});
    }
    for (std::size_t f = 0; f < files_.size(); ++f) {
        std::vector<WrittenTensor*> all;
        for (ConvertedTensor& each : tensors_)
            if (each.file == f)
                for (WrittenTensor* const piece : {&each.codes, &each.scales, &each.global})
                    if (!piece->name.empty()) all.push_back(piece);
        // As the format's own writer orders them, which aligns all: the widest dtype first, then by name.
        std::ranges::sort(all, {}, [](const WrittenTensor* piece) {
            return std::pair(-static_cast<std::int64_t>(bits_of_dtype(piece->dtype)),
                             std::string_view(piece->name));
        });
        nlohmann::json head = {{"__metadata__", {{"format", "pt"}}}};
        std::uint64_t at = 0;
        for (const WrittenTensor* const piece : all) {
            head[piece->name] = {
                {"dtype", piece->dtype}, {"shape", piece->shape}, {"data_offsets", {at, at + piece->bytes}}};
            at += piece->bytes;
        }
        std::string text = head.dump();
        text.resize((text.size() + 7) / 8 * 8, ' ');
        const std::uint64_t length = text.size();
        files_[f].head.assign(reinterpret_cast<const char*>(&length), sizeof length);
        files_[f].head += text;
        std::uint64_t begin = files_[f].head.size();
        files_[f].size = begin + at;
        for (WrittenTensor* const piece : all) piece->begin = begin, begin += piece->bytes;
    }
}

std::size_t Conversion::cast() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(tensors_, [](const ConvertedTensor& each) { return each.stays.empty(); }));
}

std::uint64_t Conversion::bytes() const {
    std::uint64_t sum = 0;
    for (const ConvertedFile& file : files_) sum += file.size;
    return sum;
}

std::vector<std::string> Conversion::ignored() const {
    std::set<std::string> out = {"lm_head"};  // where it is tied, the file has no such tensor
    for (const ConvertedTensor& each : tensors_)
        if (!each.stays.empty() && !each.copied && each.name.ends_with(".weight") &&
            each.from->shape.size() > 1 && each.stays != "embedding")
            out.insert(module_of(each.name));
    return {out.begin(), out.end()};
}

}  // namespace fp8lab
