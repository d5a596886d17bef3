#include "core/nn/model_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/error.h"

namespace fp8lab {
namespace {

bool in_scope(CastScope scope, GemmRole role) {
    switch (role) {
        case GemmRole::linear:
            return true;
        case GemmRole::head:
            return scope == CastScope::head || scope == CastScope::all;
        case GemmRole::attention:
            return scope == CastScope::attention || scope == CastScope::all;
        case GemmRole::router:
            break;
    }
    return false;
}

}  // namespace

std::size_t ParameterSpec::elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::optional<TensorId> ModelPlan::find(std::string_view name) const {
    const auto hit = std::ranges::find(tensors, name, &OperandSpec::name);
    if (hit == tensors.end()) return std::nullopt;
    return TensorId{static_cast<std::uint16_t>(hit - tensors.begin())};
}

Recipe ModelPlan::recipe_of(const Recipe& recipe, TensorId id) const {
    const ModelGemm& reader = gemm(id);
    if (reader.role == GemmRole::router) return router_recipe(recipe);
    if (!in_scope(recipe.scope, reader.role) || recipe.wide.contains(reader.block, blocks) ||
        std::ranges::find(recipe.wide.gemms, reader.name) != recipe.wide.gemms.end())
        return wide_recipe(recipe);
    if (reader.role != GemmRole::attention || recipe.granularity == Granularity::tensor) return recipe;
    Recipe out = recipe;
    out.granularity = Granularity::tensor;
    out.scale = ScaleSource::current;
    out.fwd = &find_format("e4m3"), out.bwd = &find_format("e5m2");
    out.pow2 = out.square_weights = out.rht = out.rht_bf16 = false;
    return out;
}

void ModelPlan::check(const Recipe& recipe, std::string_view where) const {
    const auto refused = [&](const std::string& why) {
        return usage_error(std::string(where), "recipe " + std::string(recipe.base) + ": " + why);
    };
    const auto has = [&](GemmRole role) {
        return std::ranges::find(gemms, role, &ModelGemm::role) != gemms.end();
    };
    for (const int number : recipe.wide.numbers)
        if (number > blocks)
            throw refused("wide names layer " + std::to_string(number) + "; the layers are 1-" +
                          std::to_string(blocks));
    for (const std::string& name : recipe.wide.gemms) {
        const auto named = std::ranges::find(gemms, name, &ModelGemm::name);
        if (named != gemms.end() && named->role == GemmRole::router)
            throw refused("wide names " + name + ", a router: what it is cast to is the option 'router'");
        if (named == gemms.end()) {
            std::string names;
            for (const ModelGemm& g : gemms) names += (names.empty() ? "" : ", ") + g.name;
            throw refused("wide names GEMM " + name + "; the GEMMs are " + names);
        }
    }
    if (recipe.scope != CastScope::linears && !has(GemmRole::attention))
        throw refused("option 'scope' is unknown to this model: all of its GEMMs are linear layers");
    if (recipe.sum_bits > 0 && gated)
        throw refused("option 'acc' is unknown to this model: its products accumulate in FP32");
    if (recipe.act != SwigluForm::plain && !gated)
        throw refused("option 'act' is unknown to this model: it has no SwiGLU");
    if (recipe.router != Recipe().router && !has(GemmRole::router))
        throw refused("option 'router' is unknown to this model: it has no experts to choose from");
    if (recipe.granularity == Granularity::block128 && in_scope(recipe.scope, GemmRole::attention))
        throw refused("FP8 attention is not supported with blocks of 128, as in Transformer Engine");
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
