// Checkpoints of one weight in each published layout, healthy and with one fault each, and the original that they are made
// of. The codes are those of cast_to_layout(); every fault is made here, in the bytes of the file.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/files/files.h"
#include "core/formats/codec.h"
#include "core/scaling/code_layouts.h"

namespace faulty {

using namespace fp8lab;
using Values = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

struct FileTensor {
    std::string dtype;
    std::vector<std::size_t> shape;
    Bytes data;
};
using File = std::map<std::string, FileTensor>;

inline void write_tensors(const std::filesystem::path& path, const File& file) {
    std::string header = "{";
    std::size_t at = 0;
    for (const auto& [name, tensor] : file) {
        std::string shape;
        for (const std::size_t extent : tensor.shape)
            shape += (shape.empty() ? "" : ",") + std::to_string(extent);
        header += (at > 0 ? ",\"" : "\"") + name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[" +
                  shape + "],\"data_offsets\":[" + std::to_string(at) + "," +
                  std::to_string(at + tensor.data.size()) + "]}";
        at += tensor.data.size();
    }
    header += "}";
    Bytes bytes(8);
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, sizeof length);
    bytes.insert(bytes.end(), header.begin(), header.end());
    for (const auto& [name, tensor] : file) bytes.insert(bytes.end(), tensor.data.begin(), tensor.data.end());
    write_file(path, std::as_bytes(std::span(bytes)));
}

inline FileTensor f32(const Values& values, std::vector<std::size_t> shape) {
    Bytes data(values.size() * sizeof(float));
    std::memcpy(data.data(), values.data(), data.size());
    return {"F32", std::move(shape), std::move(data)};
}
inline FileTensor bf16(const Values& values, std::vector<std::size_t> shape) {
    std::vector<std::uint16_t> codes(values.size());
    encode(find_format("bf16"), values, std::span(codes), {.overflow = Overflow::nonsaturate});
    Bytes data(codes.size() * 2);
    std::memcpy(data.data(), codes.data(), data.size());
    return {"BF16", std::move(shape), std::move(data)};
}
inline Values to_bf16(Values values) {
    quantize(find_format("bf16"), values, values, {.overflow = Overflow::nonsaturate});
    return values;
}

struct Shape {
    std::size_t rows = 512, cols = 512;
};

// Student's t with 5 degrees of freedom, rows and columns of different size, in BF16: as weights are.
inline Values weights(std::uint64_t seed, Shape shape = {}) {
    Rng rng(seed, 77);
    Values out(shape.rows * shape.cols), row(shape.rows), col(shape.cols);
    for (float& each : row) each = std::exp(0.4F * rng.normal());
    for (float& each : col) each = std::exp(0.2F * rng.normal());
    for (std::size_t i = 0; i < out.size(); ++i) {
        double chi = 0;
        for (int k = 0; k < 5; ++k) chi += std::pow(static_cast<double>(rng.normal()), 2);
        const double t = static_cast<double>(rng.normal()) / std::sqrt(chi / 5);
        out[i] = static_cast<float>(t * 0.02) * row[i / shape.cols] * col[i % shape.cols];
    }
    return to_bf16(out);
}

// A weight as a file has it. `scale`: as the file's dtype holds them, F32 or the byte of E8M0 or E4M3.
struct Weight {
    const CodeLayout* layout = nullptr;
    Shape shape;
    Bytes codes = {};  // one a byte
    Values scales = {};
    float global = 1;  // divides
    std::string scale_dtype = {};

    std::size_t down() const { return layout->scale_rows(shape.rows); }
    std::size_t across() const { return layout->scale_cols(shape.cols); }
};

inline Weight cast(const char* layout, const Values& w, Shape shape) {
    const CodeLayout& row = find_code_layout(layout);
    CodedMatrix coded = cast_to_layout(row, w, shape.rows, shape.cols);
    return {&row,
            shape,
            std::move(coded.codes),
            std::move(coded.scales),
            coded.global,
            row.scales == "F32"       ? "F32"
            : row.scales == "F8_E8M0" ? "U8"
                                      : "F8_E4M3"};
}

// Under the names of the layout: hf-fp8 for 128 x 128, compressed-tensors for all others.
inline void add(File& file, const std::string& module, const Weight& weight) {
    const auto& [rows, cols] = weight.shape;
    FileTensor scale = f32(weight.scales, {weight.down(), weight.across()});
    if (weight.scale_dtype != "F32") {
        const bool e8m0 = weight.scale_dtype == "U8";
        scale.dtype = weight.scale_dtype;
        scale.data.resize(weight.scales.size());
        encode(find_format(e8m0 ? "e8m0" : "e4m3"), weight.scales, std::span(scale.data),
               {.rounding = e8m0 ? Rounding::toward_zero : Rounding::nearest});
    }
    if (weight.layout->granularity == Granularity::tensor) scale.shape = {1};
    const std::string name = module + ".weight";
    if (weight.layout->is_fp4()) {
        file[name + "_packed"] = {"U8", {rows, cols / 2}, pack_fp4(weight.codes)};
        file[name + "_scale"] = scale;
        if (weight.layout->has_global) file[name + "_global_scale"] = f32({weight.global}, {1});
    } else {
        file[name] = {"F8_E4M3", {rows, cols}, weight.codes};
        file[name + (weight.layout->granularity == Granularity::block128 ? "_scale_inv" : "_scale")] = scale;
    }
}

inline Values decoded(const Weight& weight) {
    const CodedMatrix coded{.codes = weight.codes, .scales = weight.scales, .global = weight.global};
    Values out(weight.codes.size());
    decode_layout(*weight.layout, coded, weight.shape.cols, out);
    return out;
}
inline Values code_values(const Weight& weight) {
    Values out(weight.codes.size());
    decode(find_format(weight.layout->format), weight.codes, out);
    return out;
}

// Rows in the order of Meta: of h heads, element by element of the two halves.
inline Values rope(const Values& w, std::size_t heads, Shape shape) {
    Values out(w.size());
    const std::size_t head = shape.rows / heads, half = head / 2;
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t j = 0; j < half; ++j)
            for (std::size_t t = 0; t < 2; ++t)
                std::copy_n(w.begin() + static_cast<std::ptrdiff_t>((h * head + t * half + j) * shape.cols),
                            shape.cols,
                            out.begin() + static_cast<std::ptrdiff_t>((h * head + 2 * j + t) * shape.cols));
    return out;
}
inline Values transposed(const Values& w, Shape shape) {
    Values out(w.size());
    for (std::size_t r = 0; r < shape.rows; ++r)
        for (std::size_t c = 0; c < shape.cols; ++c) out[c * shape.rows + r] = w[r * shape.cols + c];
    return out;
}

struct Case {
    std::string name, words = {};  // what the diagnosis has to say
    File file = {};
    Values original = {};  // of proj.weight
    File others = {};      // of the original
};

struct Maker {
    std::vector<Case> cases = {};
    Values w, other;
    Shape shape;

    void add(std::string name, std::string words, const Weight& weight) {
        File file;
        faulty::add(file, "proj", weight);
        cases.push_back({std::move(name), std::move(words), std::move(file), w});
    }
    void add_values(std::string name, std::string words, const Values& values) {
        cases.push_back({std::move(name),
                         std::move(words),
                         {{"proj.weight", bf16(values, {shape.rows, shape.cols})}},
                         w});
    }
    Weight made(const char* layout) const { return cast(layout, w, shape); }
};

inline void add_of_layout(Maker& maker, const char* layout) {
    const std::string begin = std::string(layout) + " ";
    const Weight right = maker.made(layout);
    maker.add(begin + "healthy", "fine", right);
    Weight bad = right;
    if (!right.layout->has_global) {
        std::ranges::fill(bad.scales, 1.F);
        maker.add(begin + "scale 1", "scale lost", bad);
    }
    bad = right;
    for (float& scale : bad.scales) scale = 1 / scale;
    maker.add(begin + "1/s", "scale is the inverse", bad);
    if (!right.layout->is_fp4()) {
        maker.add_values(begin + "decoded without scale", "scale lost", code_values(right));
        maker.add_values(begin + "decoded with 1/s", "divided by the scale", decoded(bad));
        for (std::size_t i = 0; i < bad.scales.size(); ++i) bad.scales[i] = right.scales[i] * right.scales[i];
        maker.add_values(begin + "decoded with s s", "scale applied twice", decoded(bad));
    }
    maker.add(begin + "rotary order", "rows permuted (rotary order)",
              cast(layout, rope(maker.w, 4, maker.shape), maker.shape));
    maker.add(begin + "other weights", "none of these", cast(layout, maker.other, maker.shape));
}

inline void swap_pairs(Bytes& codes) {
    for (std::size_t i = 0; i < codes.size(); i += 2) std::swap(codes[i], codes[i + 1]);
}

inline void add_of_fp4_and_mx(Maker& maker) {
    Weight bad = maker.made("nvfp4");
    bad.global = 1 / bad.global;
    maker.add("nvfp4 1/g", "global scale is the reciprocal", bad);
    bad.global = 1;
    maker.add("nvfp4 g = 1", "global scale lost", bad);
    for (const char* layout : {"nvfp4", "mxfp4"}) {
        bad = maker.made(layout);
        swap_pairs(bad.codes);
        maker.add(std::string(layout) + " nibbles", "nibbles swapped", bad);
    }
    bad = maker.made("mxfp8");
    for (float& scale : bad.scales) scale = std::log2(scale) + 127;
    bad.scale_dtype = "F32";
    maker.add("mxfp8 byte as a number", "E8M0 byte read as a number", bad);
}

inline void add_of_blocks(Maker& maker) {
    const Weight right = maker.made("e4m3-block128");
    Weight bad = right;
    bad.scales = transposed(right.scales, {right.down(), right.across()});
    maker.add("block128 s^T", "scale transposed", bad);
    bad = right;
    for (float& scale : bad.scales) scale = std::exp2(std::ceil(std::log2(scale)));
    maker.add("block128 rounded later", "scale rounded after the cast", bad);
    maker.add("block128 W^T", "weight transposed",
              cast("e4m3-block128", transposed(maker.w, maker.shape), maker.shape));
    bad = right;
    bad.scales[right.across() + 2] *= 16;
    maker.add("block128 one scale wrong", "local: 1 of " + std::to_string(right.scales.size()) + " scales",
              bad);
}

// Codes of a row under amax / max of that format, in a file that calls them E4M3.
inline Weight as_e4m3(const Maker& maker, const char* format, float max) {
    Weight out = maker.made("e4m3-row");
    for (std::size_t r = 0; r < maker.shape.rows; ++r) {
        const auto row = std::span(maker.w).subspan(r * maker.shape.cols, maker.shape.cols);
        out.scales[r] = amax(row) / max;
        encode(find_format(format), row, std::span(out.codes).subspan(r * maker.shape.cols, maker.shape.cols),
               {.scale = 1 / out.scales[r]});
    }
    return out;
}

inline Weight unscaled(const Values& w, Shape shape) {
    Weight out = cast("e4m3-row", w, shape);
    std::ranges::fill(out.scales, 1.F);
    encode(find_format("e4m3"), w, std::span(out.codes));
    return out;
}

inline void add_of_rows(Maker& maker, std::uint64_t seed) {
    maker.add("row again", "fine", maker.made("e4m3-row"));
    maker.add("row FNUZ as FN", "FNUZ codes read as FN", as_e4m3(maker, "e4m3fnuz", 240));
    maker.add("row E5M2 as E4M3", "E5M2 codes read as E4M3", as_e4m3(maker, "e5m2", 448));
    maker.add("unscaled codes, scale 1", "rounded before scaling", unscaled(maker.w, maker.shape));
    Maker small = maker;
    small.cases.clear();
    for (float& value : small.w) value /= 16;
    small.add("cast first, small weights", "rounded before scaling", unscaled(small.w, small.shape));
    maker.cases.push_back(small.cases.front());
    maker.add_values("cast first, BF16 file", "rounded before scaling",
                     code_values(unscaled(maker.w, maker.shape)));
    const std::vector<std::size_t> extents = {maker.shape.rows, maker.shape.cols};
    Case swapped{.name = "two tensors swapped", .words = "is another tensor: up.weight", .original = maker.w};
    add(swapped.file, "proj", cast("e4m3-row", maker.other, maker.shape));
    add(swapped.file, "up", maker.made("e4m3-row"));
    swapped.others["up.weight"] = bf16(maker.other, extents);
    maker.cases.push_back(std::move(swapped));
    Values tuned = maker.w;
    double squares = 0;
    for (const float value : tuned) squares += std::pow(static_cast<double>(value), 2);
    Rng rng(seed, 78);
    const auto sigma = static_cast<float>(0.08 * std::sqrt(squares / static_cast<double>(tuned.size())));
    for (float& value : tuned) value += sigma * rng.normal();
    maker.add_values("fine-tuned by 8 %", "none of these", tuned);
}

// 58 of a square matrix of at least 256 rows. `other`: other weights of that shape.
inline std::vector<Case> cases_of(Values w, Values other, Shape shape, std::uint64_t seed) {
    Maker maker{.w = std::move(w), .other = std::move(other), .shape = shape};
    for (const CodeLayout& layout : code_layouts()) add_of_layout(maker, std::string(layout.name).c_str());
    add_of_fp4_and_mx(maker);
    add_of_blocks(maker);
    add_of_rows(maker, seed);
    return std::move(maker.cases);
}

// DIR/model.safetensors and DIR/original.safetensors.
inline void write_case(const std::filesystem::path& folder, const Case& each, Shape shape) {
    write_tensors(folder / "model.safetensors", each.file);
    File original = each.others;
    original["proj.weight"] = bf16(each.original, {shape.rows, shape.cols});
    write_tensors(folder / "original.safetensors", original);
}

}  // namespace faulty
