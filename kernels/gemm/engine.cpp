#include "kernels/gemm/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace fp8lab::cuda {
namespace {

// Tensor cores multiply only OCP's two formats with 8 bits.
bool has_tensor_core(const FormatInfo& format) { return format.name == "e4m3" || format.name == "e5m2"; }

// Why the tensor cores cannot take a recipe on any GPU that this engine knows; empty: they may.
std::string unfit(const Recipe& r) {
    if (!r.wide.empty()) return "an arm with some layers in BF16 is cast in FP32 here";
    if (r.scope == CastScope::attention || r.scope == CastScope::all)
        return "the products inside attention are cast in FP32 here";
    if (r.round != Rounding::nearest || r.round_bwd != Rounding::nearest)
        return "casts for the tensor cores round to nearest";
    if (r.master == MasterWeights::none)
        return "weights without an FP32 master are kept on their grid in FP32";
    if (r.fwd->name == "bf16" && r.bwd->name == "bf16") return "";
    if (!has_tensor_core(*r.fwd) || !has_tensor_core(*r.bwd))
        return fmt::format("there is no tensor-core product of {} and {} here", r.bwd->name, r.fwd->name);
    if (r.fwd->name != "e4m3") return "tensor cores take no product of two E5M2 operands";
    if (r.overflow != Overflow::saturate) return "the hardware's casts saturate";
    if (r.granularity == Granularity::block16) return "operands with 1x16 scales are cast in FP32 here";
    if (r.granularity == Granularity::block32 && r.mx_rule != MxRule::up)
        return "casts for the tensor cores round MX scales up";
    return "";
}

}  // namespace

Element element_of(const FormatInfo& format) { return format.name == "e4m3" ? Element::e4m3 : Element::e5m2; }

Provenance provenance_of(Engine engine) {
    return engine == Engine::emulated ? Provenance::gpu_emulated : Provenance::tensor_core;
}

namespace {

constexpr std::array kGemms = {Gemm::fprop, Gemm::dgrad, Gemm::wgrad};

// Whether every input says what the recipe says.
bool says_nothing_else(const Recipe& recipe) {
    Recipe plain = recipe;
    plain.inputs = {};
    return std::ranges::all_of(
        kGemms, [&](Gemm gemm) { return recipe_text(recipe_of_gemm(recipe, gemm)) == recipe_text(plain); });
}

// Every GEMM on the tensor cores, with both operands in its own format.
EngineChoice engine_of_inputs(const Recipe& recipe, const Refusal& refusal) {
    EngineChoice out{Engine::bf16, ""};
    for (const Gemm gemm : kGemms) {
        Recipe here = recipe_of_gemm(recipe, gemm);
        if (gemm == Gemm::fprop) here.bwd = here.fwd, here.round_bwd = here.round;  // it does not read dy
        const EngineChoice choice = choose_engine(here, refusal);
        if (choice.engine == Engine::emulated) refuse_emulated_inputs(recipe, to_string(gemm), choice.reason);
        if (choice.engine == Engine::fp8) out.engine = Engine::fp8;
    }
    return out;
}

}  // namespace

void refuse_emulated_inputs(const Recipe& recipe, std::string_view gemm, const std::string& why) {
    throw Error(
        ErrorKind::backend, "recipe " + recipe.name,
        fmt::format("{}: {}; a format for each GEMM is for tensor cores here: --backend cpu", gemm, why));
}

namespace {

// What the optimiser's kernels do not keep in fewer bits.
void refuse_narrow_state(const Recipe& recipe) {
    const auto refuse = [&](const std::string& what) {
        throw Error(ErrorKind::backend, "recipe " + recipe.name,
                    what + " are computed on the CPU only: --backend cpu");
    };
    for (const FormatInfo* const format : {recipe.moment_m, recipe.moment_v}) {
        if (!format || format->name == "bf16") continue;
        if (!is_fp8(*format)) refuse(fmt::format("moments in {}", format->label));
        if (recipe.moment_block == MomentBlock::tensor)
            refuse(fmt::format("moments in {} with one scale a matrix", format->label));
    }
}

}  // namespace

EngineChoice choose_engine(const Recipe& recipe, const Refusal& refusal) {
    if (recipe.columns_from_rowwise)
        throw Error(ErrorKind::backend, "recipe " + recipe.name,
                    "colsrc=rowwise is computed on the CPU only: --backend cpu");
    if (recipe.fake)
        throw Error(ErrorKind::backend, "recipe " + recipe.name,
                    "fake=1 is computed on the CPU only: --backend cpu");
    if (recipe.sum_bits > 0)
        throw Error(ErrorKind::backend, "recipe " + recipe.name,
                    fmt::format("acc={} is computed on the CPU only: --backend cpu", recipe.sum_bits));
    if (recipe.zero_amax == ZeroAmax::inf)
        throw Error(ErrorKind::backend, "recipe " + recipe.name,
                    "zero_amax=inf is computed on the CPU only: --backend cpu");
    if (recipe.amax_percentile > 0)
        throw Error(ErrorKind::backend, "recipe " + recipe.name,
                    "scales from a percentile are computed on the CPU only: --backend cpu");
    refuse_narrow_state(recipe);
    if (has_inputs(recipe) && !says_nothing_else(recipe)) return engine_of_inputs(recipe, refusal);
    if (std::string why = unfit(recipe); !why.empty()) return {Engine::emulated, std::move(why)};
    if (recipe.fwd->name == "bf16") return {Engine::bf16, ""};
    if (scale_mode_of(cast_plan(recipe, TensorClass::x)) == ScaleMode::tensor) return {Engine::fp8, ""};
    constexpr int kSize = 256;
    const LayerProducts tried = products_of(recipe, Engine::fp8, kSize, kSize, kSize);
    for (const GemmSpec& spec : {tried.fprop, tried.dgrad, tried.wgrad})
        if (std::string why = refusal(spec); !why.empty()) return {Engine::emulated, std::move(why)};
    return {Engine::fp8, ""};
}

LayerProducts products_of(const Recipe& recipe, Engine engine, int batch, int in, int out) {
    if (has_inputs(recipe)) {
        const auto of = [&](Gemm gemm) {
            return products_of(recipe_of_gemm(recipe, gemm), engine, batch, in, out);
        };
        return {of(Gemm::fprop).fprop, of(Gemm::dgrad).dgrad, of(Gemm::wgrad).wgrad};
    }
    engine = gemm_engine(engine, recipe);
    const bool fp8 = engine == Engine::fp8;
    const auto stored = [&](OutType type) {
        return engine == Engine::emulated || type == OutType::fp32 ? Element::f32 : Element::bf16;
    };
    const Element plain = engine == Engine::bf16 ? Element::bf16 : Element::f32,
                  fwd = fp8 ? element_of(*recipe.fwd) : plain, bwd = fp8 ? element_of(*recipe.bwd) : plain,
                  to = stored(recipe.out), gradient = stored(recipe.wgrad);
    const auto mode = [&](TensorClass tensor) {
        return fp8 ? scale_mode_of(cast_plan(recipe, tensor)) : ScaleMode::none;
    };
    const ScaleMode x = mode(TensorClass::x), w = mode(TensorClass::w), dy = mode(TensorClass::dy);
    // Scales of blocks are applied outside the tensor core: what it sums is short anyway.
    const bool may_be_fast = fp8 && (x == ScaleMode::tensor || x == ScaleMode::row),
               fast_fprop = may_be_fast && recipe.fast_accum != FastAccum::none,
               fast_backward = may_be_fast && recipe.fast_accum == FastAccum::all;
    const Product back = fp8 ? Product::nt : Product::nn, weights = fp8 ? Product::nt : Product::tn;
    return {{Product::nt, batch, out, in, fwd, fwd, to, x, w, fast_fprop},
            {back, batch, in, out, bwd, fwd, to, dy, w, fast_backward},
            {weights, out, in, batch, bwd, fwd, gradient, dy, x, fast_backward}};
}

}  // namespace fp8lab::cuda
