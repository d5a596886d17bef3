#include "labs/experts/model_casts.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace fp8lab::experts {
namespace {

constexpr std::array kCasts = {
    Cast{"fp32", "FP32", Role::truth, 32},
    Cast{"bf16", "BF16", Role::bf16, 16},
    Cast{"current", "E4M3, one scale", Role::e4m3, 8},
    Cast{"current:fwd=e5m2", "E5M2, one scale", Role::e5m2, 8},
    Cast{"block128:pow2=0", "E4M3 1×128, FP32 scales", Role::e4m3, 8},
    Cast{"block128", "E4M3 1×128", Role::e4m3, 8},
    Cast{"mxfp8", "MXFP8", Role::block, 8},
    Cast{"nvfp4", "NVFP4", Role::block, 4},
    Cast{"mxfp4", "MXFP4", Role::block, 4},
};

std::vector<Choice> choices_of(std::initializer_list<std::string_view> recipes) {
    std::vector<Choice> out;
    for (const std::string_view recipe : recipes) out.push_back({std::string(recipe), label_of(recipe)});
    return out;
}

}  // namespace

const Cast& find_cast(std::string_view recipe, std::string_view where) {
    const auto hit = std::ranges::find(kCasts, recipe, &Cast::recipe);
    if (hit == kCasts.end())
        throw usage_error(std::string(where), "'" + std::string(recipe) + "' is no cast of this lab");
    return *hit;
}

std::string label_of(std::string_view recipe) { return std::string(find_cast(recipe, "recipe").label); }
Role role_of(std::string_view recipe) { return find_cast(recipe, "recipe").role; }

std::vector<Choice> layer_choices() { return choices_of({"bf16", "current", "mxfp8", "nvfp4"}); }
std::vector<Choice> router_choices() {
    return choices_of({"fp32", "bf16", "current", "mxfp8", "nvfp4", "mxfp4"});
}
std::vector<Choice> gemm_choices() { return choices_of({"bf16", "current", "block128", "mxfp8", "nvfp4"}); }
std::vector<Choice> hop_choices() {
    return choices_of(
        {"bf16", "current", "current:fwd=e5m2", "block128:pow2=0", "block128", "mxfp8", "nvfp4"});
}

}  // namespace fp8lab::experts
