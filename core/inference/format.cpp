#include "core/inference/format.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"

namespace fp8lab {

std::span<const LowFormat> low_formats() {
    static const std::vector<LowFormat> kTable = [] {
        std::vector<LowFormat> rows = {
            {"fp32", "FP32", "fp32", Role::truth},
            {"bf16", "BF16", "bf16", Role::bf16},
            {"int8", "INT8", "int8", Role::truth},
            {"e4m3", "E4M3", "current", Role::e4m3},
            {"e5m2", "E5M2", "current:fwd=e5m2", Role::e5m2},
            {"mxfp8", "MXFP8", "mxfp8", Role::e4m3},
            {"mxfp6-e2m3", "MXFP6 E2M3", "mxfp6-e2m3", Role::block},
            {"mxfp6-e3m2", "MXFP6 E3M2", "mxfp6-e3m2", Role::block},
            {"nvfp4", "NVFP4", "nvfp4", Role::block},
            {"mxfp4", "MXFP4", "mxfp4", Role::block},
            {"e2m1", "E2M1 tensor", "current:fwd=e2m1", Role::truth},
        };
        for (LowFormat& row : rows) {
            const Recipe recipe = parse_recipe(row.recipe);
            row.weights = cast_plan(recipe, TensorClass::w);
            row.activations = cast_plan(recipe, TensorClass::x);
            row.has_static_scale =
                row.activations.scaled && (row.activations.granularity == Granularity::tensor ||
                                           row.activations.granularity == Granularity::block16);
        }
        return rows;
    }();
    return kTable;
}

const LowFormat& find_low_format(std::string_view id, std::string_view where) {
    const auto found = std::ranges::find(low_formats(), id, &LowFormat::id);
    if (found != low_formats().end()) return *found;
    throw unknown_name(std::string(where), "format", id, low_formats(),
                       [](const LowFormat& f) { return f.id; });
}

}  // namespace fp8lab
