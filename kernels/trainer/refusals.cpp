#include "kernels/trainer/refusals.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/nn/memory_plan.h"
#include "core/nn/model.h"

namespace fp8lab::cuda {

EngineChoice engine_or_refusal(const TrainSpec& spec, const Recipe& recipe, const Refusal& refusal) {
    const EngineChoice choice = choose_engine(recipe, refusal);
    if (!find_model(spec.model).tokens) return choice;
    const auto refuse = [&](const char* why) {
        throw Error(ErrorKind::backend, "recipe " + recipe.name, std::string(why) + ": --backend cpu");
    };
    if (recipe.loss_scale > 0) refuse("a GPU scales the loss of model mlp only");
    if (recipe.master == MasterWeights::bf16)
        refuse("weights in BF16 without an FP32 master are computed on the CPU only, but for model mlp");
    if (recipe.out != OutType::fp32 || recipe.fwd->name == "fp32") return choice;
    const std::string why = "between the GEMMs of a transformer the tensor cores' arms have BF16";
    if (split_tensors(model_plan(spec), recipe) > 0) refuse_emulated_inputs(recipe, "out=fp32", why);
    return {Engine::emulated, why};
}

void refuse_model(const TrainSpec& spec) {
    if (!find_model(spec.model).on_gpu)
        throw Error(ErrorKind::backend, "--model " + spec.model, "is trained on the CPU only: --backend cpu");
}

void refuse_accumulation(const TrainSpec& spec) {
    const Accumulation& a = spec.accumulate;
    const auto refuse = [](const char* option, const std::string& why) {
        throw Error(ErrorKind::backend, option, why + ": --backend cpu");
    };
    if (a.weights != WeightCache::once) refuse("--weight-cache", "a GPU casts weights once a step");
    if (a.micro_batches == 1) return;
    if (a.format != "fp32" && a.format != "bf16")
        refuse("--accumulate-in", "a GPU adds gradients in fp32 or bf16, not in " + a.format);
    if (find_model(spec.model).tokens) refuse("--accumulate", "a GPU takes micro-batches of model mlp only");
    for (const Recipe& recipe : spec.arms)
        if (recipe.wgrad == OutType::bf16 || spec.state == StateType::bf16)
            refuse("--accumulate", "recipe " + recipe.name +
                                       " has its weight gradients in bf16; with "
                                       "micro-batches a GPU adds them as --accumulate-in says");
}

void refuse_files(const TrainSpec& spec) {
    for (const auto& [option, file] :
         {std::pair{"--init-from", &spec.init_from}, {"--teacher", &spec.teacher}})
        if (!file->empty())
            throw Error(ErrorKind::backend, option, "is computed on the CPU only: --backend cpu");
}

void refuse_faults(const TrainSpec& spec) {
    if (spec.poison && spec.poison->rows > 0)
        throw Error(ErrorKind::backend, "--poison",
                    "a GPU multiplies the whole batch, STEP:FACTOR: --backend cpu");
}

void refuse_ranks(const TrainSpec& spec, const std::vector<Engine>& engines) {
    const Ranks& ranks = spec.ranks;
    if (ranks.count == 1) return;
    constexpr int kMost = 16;  // dimensions are padded to multiples of 16, which such numbers divide
    const auto refuse = [](const std::string& option, const std::string& why) {
        throw Error(ErrorKind::backend, option, why + ": --backend cpu --ranks");
    };
    if (ranks.count > kMost || kMost % ranks.count != 0)
        refuse("--devices", fmt::format("{} GPUs; a training takes 2, 4, 8 or 16", ranks.count));
    if (ranks.sum != "bf16" && ranks.sum != "fp32")
        refuse("--sum", "GPUs add gradients in bf16 or fp32, not as " + ranks.sum);
    if (ranks.weight_scale != WeightScale::reduced)
        refuse("--wscale",
               fmt::format("GPUs share the scale of the weights; {}", to_string(ranks.weight_scale)));
    if (spec.state == StateType::bf16 && ranks.sum != "bf16")
        refuse("--state", "bf16 has gradients in bf16: --sum bf16, or");
    if (spec.accumulate.micro_batches > 1 && spec.accumulate.amax == AmaxOf::each &&
        ranks.amax == RankAmax::reduced)
        refuse("--amax-of", "each: GPUs reduce amaxes once a step: --act-amax local, or");
    for (std::size_t i = 0; i < spec.arms.size(); ++i) {
        const Recipe& arm = spec.arms[i];
        const std::string where = "recipe " + arm.name;
        if (arm.loss_scale > 0) refuse(where, "several GPUs train without a loss scale");
        if (has_narrow_moments(arm) || arm.master != MasterWeights::fp32)
            refuse(where, "several GPUs keep master weights and moments in FP32");
        if (arm.wgrad == OutType::bf16 && ranks.sum == "fp32")
            refuse(where, "has its weight gradients in bf16: --sum bf16, or");
        if (arm.act == SwigluForm::smooth && ranks.sum == "bf16" && engines[i] != Engine::emulated)
            refuse(where, "act=smooth needs gradients in FP32: --sum fp32, or");
        if (engines[i] == Engine::fp8 && ranks.sharded() &&
            scale_mode_of(cast_plan(arm, TensorClass::w)) == ScaleMode::block32)
            refuse("--shard",
                   fmt::format("zero1: tensor cores read weights of recipe {} from FP32", arm.name));
        if (engines[i] == Engine::emulated && ranks.sharded() && ranks.gather == Gather::e4m3)
            refuse("--gather", fmt::format("e4m3: recipe {} is emulated", arm.name));
    }
}

}  // namespace fp8lab::cuda
