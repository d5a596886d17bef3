// The formats that a trained network is lowered to. Each row is a recipe under the name that L11 and `infer` use. A
// matrix multiplication reads its weights and its input ("activation") in one of them.
#pragma once

#include <span>
#include <string_view>

#include "core/scaling/quantizer.h"

namespace fp8lab {

struct LowFormat {
    std::string_view id;      // "mxfp6-e2m3"
    std::string_view label;   // "MXFP6 E2M3"
    std::string_view recipe;  // what core/scaling casts it with
    Role role = Role::truth;
    CastPlan weights = {}, activations = {};
    bool has_static_scale =
        false;  // one FP32 scale per tensor, which can be calibrated; NVFP4's tensor scale is one
};

// fp32 bf16 int8 e4m3 e5m2 mxfp8 mxfp6-e2m3 mxfp6-e3m2 nvfp4 mxfp4 e2m1. int8, e4m3, e5m2 and e2m1 have one scale per
// tensor.
std::span<const LowFormat> low_formats();
// Throws usage_error with the ids that there are.
const LowFormat& find_low_format(std::string_view id, std::string_view where);

}  // namespace fp8lab
