// Conversion's writing.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/convert/beside.h"
#include "core/convert/convert.h"
#include "core/convert/new_folder.h"
#include "core/files/files.h"
#include "core/files/memory.h"
#include "core/formats/codec.h"
#include "core/json/read_json.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunk = std::size_t{1} << 19;  // values that a thread works on at a time

// Rows of a tensor's matrix, whole groups of 128, so that a block is in one part.
struct Parts {
    MatrixShape shape;
    std::size_t rows = 1;  // of a part
    std::size_t count() const {
        return shape.rows == 0 || shape.cols == 0 ? 0 : (shape.rows + rows - 1) / rows;
    }
};
Parts parts_of(const StoredTensor& tensor, bool in_blocks) {
    constexpr std::size_t kBlock = 128;
    Parts out{.shape = tensor.matrix()};
    out.rows = std::max<std::size_t>(1, kChunk / std::max<std::size_t>(1, out.shape.cols));
    if (in_blocks) out.rows = (out.rows + kBlock - 1) / kBlock * kBlock;
    if (tensor.fortran_order) out.rows = std::max<std::size_t>(1, out.shape.rows);  // it is read whole
    require_memory(tensor.name, 4.0 * sizeof(float) *
                                    static_cast<double>(std::min(out.rows, out.shape.rows)) *
                                    static_cast<double>(out.shape.cols));
    return out;
}

// The rows of each part as float32, in parallel.
template <class Body>
void for_parts(const TensorStore& store, const StoredTensor& tensor, const Parts& parts, const Body& body) {
    parallel_for(parts.count(), 1, [&](std::size_t begin, std::size_t end) {
        std::vector<float> values;
        for (std::size_t part = begin; part < end; ++part) {
            ask_between();
            const std::size_t first = part * parts.rows, n = std::min(parts.rows, parts.shape.rows - first);
            values.resize(n * parts.shape.cols);
            store.read_rows(tensor, first, values);
            body(first, n, std::span<float>(values));
        }
    });
}

void require_finite(const TensorStore& store, const StoredTensor& tensor, std::span<const float> values) {
    float sum = 0;  // NaN or not
    for (const float value : values) sum += value * 0;
    if (sum == 0) return;
    throw input_error(store.files()[tensor.file].where(),
                      "tensor '" + quote_from(tensor.name) +
                          "' has NaN or Inf among its values, which no cast keeps; --keep leaves it in BF16");
}

bool is_copied(const ConvertedTensor& tensor) {
    const StoredTensor& from = *tensor.from;
    return tensor.copied || (from.element == "BF16" && !from.scales);
}

void copy(const TensorStore& store, const ConvertedTensor& tensor, const PlacedFile& file) {
    constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes
    const std::uint64_t bytes = tensor.codes.bytes;
    parallel_for((bytes + kPiece - 1) / kPiece, 1, [&](std::size_t begin, std::size_t end) {
        std::vector<std::byte> piece;
        for (std::size_t i = begin; i < end; ++i) {
            ask_between();
            piece.resize(std::min<std::uint64_t>(kPiece, bytes - i * kPiece));
            store.files()[tensor.from->file].read(tensor.from->begin + i * kPiece, piece);
            file.write(tensor.codes.begin + i * kPiece, piece);
        }
    });
}

// Returns how many finite values become Inf.
std::int64_t write_bf16(const TensorStore& store, const ConvertedTensor& tensor, const PlacedFile& file) {
    const Parts parts = parts_of(*tensor.from, false);
    const FormatInfo& bf16 = find_format("bf16");
    std::atomic<std::int64_t> beyond = 0;
    for_parts(store, *tensor.from, parts, [&](std::size_t first, std::size_t, std::span<float> values) {
        std::vector<std::uint16_t> codes(values.size());
        encode(bf16, values, codes, {.overflow = Overflow::nonsaturate});
        constexpr unsigned kInfinite = 0x7F80, kMagnitude = 0x7FFF;
        std::int64_t lost = 0;
        for (std::size_t i = 0; i < codes.size(); ++i)
            lost += (codes[i] & kMagnitude) == kInfinite && std::isfinite(values[i]);
        beyond += lost;
        file.write(tensor.codes.begin + first * parts.shape.cols * sizeof(std::uint16_t),
                   std::as_bytes(std::span(codes)));
    });
    return beyond;
}

void write_codes(const TensorStore& store, const ConvertedTensor& tensor, const CodeLayout& layout,
                 float amax, const PlacedFile& file) {
    const Parts parts = parts_of(*tensor.from, layout.granularity == Granularity::block128);
    const std::size_t cols = parts.shape.cols, across = layout.scale_cols(cols);
    for_parts(store, *tensor.from, parts, [&](std::size_t first, std::size_t n, std::span<float> values) {
        require_finite(store, *tensor.from, values);
        const CodedMatrix coded = cast_to_layout(layout, values, n, cols, amax);
        const bool fp4 = layout.is_fp4();
        const std::vector<std::uint8_t> packed = fp4 ? pack_fp4(coded.codes) : std::vector<std::uint8_t>{};
        file.write(tensor.codes.begin + first * cols / (fp4 ? 2 : 1),
                   std::as_bytes(std::span(fp4 ? packed : coded.codes)));
        const bool wide = coded.scale_codes.empty();
        file.write(
            tensor.scales.begin + layout.scale_rows(first) * across * (wide ? sizeof(float) : 1),
            wide ? std::as_bytes(std::span(coded.scales)) : std::as_bytes(std::span(coded.scale_codes)));
        if (layout.has_global && first == 0)
            file.write(tensor.global.begin, std::as_bytes(std::span(&coded.global, 1)));
    });
}

}  // namespace

float Conversion::amax_of(const ConvertedTensor& tensor) const {
    const Parts parts = parts_of(*tensor.from, false);
    std::mutex mutex;
    float largest = 0;
    for_parts(*store_, *tensor.from, parts, [&](std::size_t, std::size_t, std::span<float> values) {
        require_finite(*store_, *tensor.from, values);
        const float own = amax(values);
        const std::lock_guard lock{mutex};
        largest = std::max(largest, own);
    });
    return largest;
}

// Of NVFP4: the global scale is known only after all of a group is read.
void Conversion::find_amaxes() {
    amaxes_.assign(tensors_.size(), -1);
    if (!target_->has_codes() || !target_->layout().has_global) return;
    std::map<std::string, float> of_group;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        if (!tensors_[i].stays.empty()) continue;
        amaxes_[i] = amax_of(tensors_[i]);
        if (tensors_[i].group.empty()) continue;
        float& shared = of_group.emplace(tensors_[i].group, 0).first->second;
        shared = std::max(shared, amaxes_[i]);
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        if (!tensors_[i].group.empty()) amaxes_[i] = of_group.at(tensors_[i].group);
}

void Conversion::write_others(const fs::path& folder) {
    if (store_->path().extension() == ".json") {
        nlohmann::json map = nlohmann::json::object();
        std::uint64_t total = 0;
        for (const ConvertedTensor& each : tensors_)
            for (const WrittenTensor* const piece : {&each.codes, &each.scales, &each.global})
                if (!piece->name.empty()) map[piece->name] = files_[each.file].name, total += piece->bytes;
        const std::string name = store_->path().filename().string();
        const nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
        write_file(folder / name, index.dump(2) + "\n");
        beside_.push_back(name);
    }
    const std::string config = converted_config(model_folder(), quantization_block(*target_, ignored()));
    if (!config.empty()) {
        write_file(folder / "config.json", config);
        beside_.emplace_back("config.json");
    }
    FilesBeside others = files_beside(model_folder());
    for (const std::string& name : others.copied) {
        ask_between();
        write_file(folder / name, read_bytes(model_folder() / name));
        beside_.push_back(name);
    }
    not_copied_ = std::move(others.left);
}

void Conversion::write(const std::string& option, const fs::path& folder,
                       const std::function<void(const ConvertProgress&)>& progress) {
    NewFolder made(option, folder);
    made.require_room(bytes());
    find_amaxes();
    std::vector<std::unique_ptr<const PlacedFile>> written;
    ConvertProgress at{.done = 0, .all = tensors_.size(), .part = 0};
    for (std::size_t f = 0; f < files_.size(); ++f) {
        auto opened = std::make_unique<const PlacedFile>(made.path() / files_[f].name);
        const PlacedFile& file = *opened;
        file.write(0, std::as_bytes(std::span(files_[f].head)));
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const ConvertedTensor& each = tensors_[i];
            if (each.file != f) continue;
            if (is_copied(each) && !each.stays.empty())
                copy(*store_, each, file);
            else if (!each.stays.empty())
                beyond_ += write_bf16(*store_, each, file);
            else
                write_codes(*store_, each, target_->layout(), amaxes_[i], file);
            ++at.done;
            at.part += static_cast<double>(each.codes.bytes + each.scales.bytes + each.global.bytes) /
                       static_cast<double>(std::max<std::uint64_t>(1, bytes()));
            if (progress) progress(at);
        }
        written.push_back(std::move(opened));
    }
    write_others(made.path());
    for (std::size_t f = 0; f < files_.size(); ++f) written[f]->sync(files_[f].size);
    made.keep();
}

}  // namespace fp8lab
