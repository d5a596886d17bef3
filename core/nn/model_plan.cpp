#include "core/nn/model_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace fp8lab {

std::size_t ParameterSpec::elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::optional<TensorId> ModelPlan::find(std::string_view name) const {
    const auto hit = std::ranges::find(tensors, name, &OperandSpec::name);
    if (hit == tensors.end()) return std::nullopt;
    return TensorId{static_cast<std::uint16_t>(hit - tensors.begin())};
}

Recipe ModelPlan::recipe_of(const Recipe& recipe, TensorId id) const {
    return recipe_of_layer(recipe, gemm(id).block, blocks);
}

unsigned ModelPlan::place(TensorId id) const {
    unsigned place = 0;
    while (place < id.index && tensors[id.index - place - 1].gemm == tensor(id).gemm) ++place;
    return place;
}

TensorId ModelPlan::add_linear(const LinearNames& names, GemmRole role, int block, std::size_t out,
                               std::size_t in) {
    const auto gemm = static_cast<std::uint16_t>(gemms.size());
    const auto first = static_cast<std::uint16_t>(tensors.size());
    gemms.push_back({names.gemm, role, block});
    tensors.push_back({names.x, TensorClass::x, gemm});
    tensors.push_back({names.w, TensorClass::w, gemm});
    tensors.push_back({names.dy, TensorClass::dy, gemm});
    const auto w = static_cast<std::uint16_t>(first + 1);
    parameters.push_back({names.parameter, {out, in}, TensorId{w}});
    return {first};
}

}  // namespace fp8lab
