// The six files of exercise W.5: a weight of the Workbench's trained sample in each, in a published layout, with one fault.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensors/tensor_store.h"
#include "tests/unit/verify/faulty_files.h"

namespace faulty {

struct ShippedFault {
    std::string file, tensor, words;
    File content;
};

// `model`: assets/models/transformer-600.safetensors.
inline std::vector<ShippedFault> shipped_faults(const TensorStore& model) {
    std::vector<ShippedFault> out;
    const auto made = [&](const std::string& module, const char* layout, bool transposes = false) {
        const StoredTensor& tensor = *model.find(module + ".weight");
        const Shape shape{.rows = tensor.matrix().rows, .cols = tensor.matrix().cols};
        Values w(shape.rows * shape.cols);
        model.read_rows(tensor, 0, w);
        return cast(layout, transposes ? transposed(w, shape) : w, shape);
    };
    const auto add_file = [&](const std::string& module, const char* words, const Weight& weight) {
        ShippedFault each{.file = "fault-" + std::to_string(out.size() + 1),
                          .tensor = module + (weight.layout->is_fp4() ? ".weight_packed" : ".weight"),
                          .words = words,
                          .content = {}};
        add(each.content, module, weight);
        out.push_back(std::move(each));
    };
    Weight weight = made("blocks.1.down", "nvfp4");
    weight.global = 1 / weight.global;
    add_file("blocks.1.down", "global scale is the reciprocal", weight);
    weight = made("blocks.2.down", "mxfp4");
    swap_pairs(weight.codes);
    add_file("blocks.2.down", "nibbles swapped", weight);
    add_file("blocks.3.out", "weight transposed", made("blocks.3.out", "e4m3-row", true));
    weight = made("blocks.3.gate_up", "e4m3-row");
    std::ranges::fill(weight.scales, 1.F);
    add_file("blocks.3.gate_up", "scale lost", weight);
    weight = made("blocks.2.qkv", "e4m3-row");
    for (float& scale : weight.scales) scale = 1 / scale;
    add_file("blocks.2.qkv", "scale is the inverse", weight);
    weight = made("blocks.4.qkv", "mxfp8");
    for (float& scale : weight.scales) scale = std::log2(scale) + 127;
    weight.scale_dtype = "F32";
    add_file("blocks.4.qkv", "E8M0 byte read as a number", weight);
    return out;
}

}  // namespace faulty
