#include "core/nn/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "core/nn/memory/lists.h"
#include "core/nn/model.h"
#include "core/scaling/block_scales.h"
#include "core/scaling/side_cast.h"

namespace fp8lab::cuda {
ScaleMode scale_mode_of(const CastPlan& plan) {
    if (plan.granularity == Granularity::row) return ScaleMode::row;
    if (plan.granularity == Granularity::block128)
        return plan.square_blocks ? ScaleMode::square128 : ScaleMode::block128;
    if (plan.granularity == Granularity::block32) return ScaleMode::block32;
    return ScaleMode::tensor;
}

Engine gemm_engine(Engine arm, const Recipe& recipe) {
    return arm == Engine::fp8 && recipe.fwd->name == "bf16" ? Engine::bf16 : arm;
}

std::size_t split_tensors(const ModelPlan& plan, const Recipe& recipe) {
    std::size_t count = 0;
    for (std::uint16_t i = 0; i < plan.tensors.size(); ++i)
        count += is_split(plan.recipe_of(recipe, {i}), plan.tensors[i].tensor);
    return count;
}

Sent sent_of(const Ranks& ranks, const Recipe& recipe, Engine engine) {
    const bool codes = sent_format(ranks, recipe).name == "e4m3";
    return engine == Engine::emulated ? Sent::fp32 : codes ? Sent::codes : Sent::bf16;
}

bool gathers_operand(const TrainSpec& spec, const Recipe& recipe, Engine engine) {
    return !keeps_bf16_weights(spec, recipe, engine) && !is_split(recipe, TensorClass::w) &&
           (sent_of(spec.ranks, recipe, engine) == Sent::codes || engine == Engine::bf16);
}

std::size_t scale_controls(const Recipe& recipe) { return has_inputs(recipe) ? recipe.inputs.size() : 1; }

namespace {

// The linear layers of a model of tokens.
template <class Visit>
void for_each_weight(const TrainSpec& spec, const Visit& visit) {
    const ModelPlan plan = model_plan(spec);
    for (const ParameterSpec& p : plan.parameters)
        if (p.operand) visit(static_cast<double>(p.shape[0]), static_cast<double>(p.shape[1]));
}

double token_flop(const TrainSpec& spec, int batch) {
    const double context = spec.sizes.at("context"), rows = padded(batch * spec.sizes.at("context"));
    double flop = 0;
    for_each_weight(spec, [&](double out, double in) { flop += 3 * 2 * rows * out * in; });
    // Two products forward and four backward, each over the positions up to the row's own.
    return flop + spec.sizes.at("blocks") * 6 * 2 * rows * context / 2 * spec.sizes.at("d");
}

}  // namespace

double step_elements(const TrainSpec& spec) {
    double total = 0;
    if (spec.model != "mlp") {
        const double rows = spec.batch * static_cast<double>(spec.sizes.at("context"));
        for_each_weight(spec, [&](double out, double in) { total += out * in + rows * (out + in); });
        return total;
    }
    for (std::size_t l = 0; l + 1 < spec.layers.size(); ++l)
        total += static_cast<double>(spec.layers[l]) * spec.layers[l + 1] +
                 static_cast<double>(spec.batch) * (spec.layers[l] + spec.layers[l + 1]);
    return total;
}

double step_flop(const TrainSpec& spec, int batch) {
    if (spec.model != "mlp") return token_flop(spec, batch);
    double flop = 0;
    for (std::size_t l = 0; l + 1 < spec.layers.size(); ++l)  // no gradient of the network's input
        flop += (l > 0 ? 3 : 2) * 2.0 * padded(batch) * padded(spec.layers[l]) * padded(spec.layers[l + 1]);
    return flop;
}

int steps_per_launch(const TrainSpec& spec, int batch) {
    constexpr double kShort = 2e10;  // below, a step takes less than about 0.1 ms
    return step_flop(spec, batch) <= kShort && spec.accumulate.micro_batches == 1 && spec.ranks.count == 1
               ? kStepsPerLaunch
               : 1;
}

bool measures_every_step(const TrainSpec& spec) {
    // What L8 trains by default, and L13 with its largest batch.
    constexpr double kSmall = 1 << 20, kSmallOfTokens = 1 << 24;
    return step_elements(spec) <= (find_model(spec.model).tokens ? kSmallOfTokens : kSmall);
}

bool shares_memory(const TrainSpec& spec) {
    constexpr double kLarge = 1 << 26;
    return find_model(spec.model).tokens && step_elements(spec) > kLarge;
}

int data_slots(const TrainSpec& spec) { return spec.task == TaskKind::noise ? 1 : kInputSlots; }

bool rotates_back_in_place(Engine engine, const Recipe& of_qkv, int tokens) {
    const auto in_bf16 = [&](Gemm reader) {
        return gemm_engine(engine, recipe_of_gemm(of_qkv, reader)) == Engine::bf16;
    };
    return in_bf16(Gemm::dgrad) && in_bf16(Gemm::wgrad) && tokens == padded(tokens);
}

bool multiplies_in_update(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch) {
    const auto fits = [&](TensorClass tensor) {
        const ScaleMode scaling = scale_mode_of(cast_plan(recipe, tensor, Gemm::wgrad));
        return scaling == ScaleMode::tensor || scaling == ScaleMode::row || scaling == ScaleMode::block128;
    };
    return engine != Engine::emulated && spec.accumulate.micro_batches == 1 && spec.ranks.count == 1 &&
           recipe.loss_scale == 0 && !has_narrow_moments(recipe) && recipe.master != MasterWeights::bf16 &&
           gradient_bytes(spec, recipe, engine) == 4 && fits(TensorClass::x) && fits(TensorClass::dy) &&
           padded(batch) <= kMostFusedBatch;
}

std::uint64_t emulation_scratch_bytes(const CastPlan& plan, int rows, int cols) {
    std::uint64_t blocks = 0;
    for (const Along along : {Along::cols, Along::rows})
        blocks = std::max<std::uint64_t>(blocks, block_grid(plan, size(rows), size(cols), along).count());
    // The amaxes, before them the tensor's, after them what each block's becomes.
    const bool chooses = plan.granularity == Granularity::block16 && plan.target == Nvfp4Target::four_or_six;
    return ((chooses ? 2 : 1) * blocks + 1) * sizeof(float);
}

namespace {

// Padded rows of a pool have what was there before.
bool can_share(TrainSpec spec, int batch, Sharing sharing) {
    if (sharing == Sharing::none || !find_model(spec.model).tokens) return false;
    spec.batch = batch;
    const int rows = batch * spec.sizes.at("context");
    return rows == padded(rows) && (sharing == Sharing::all || shares_memory(spec));
}

}  // namespace

ArmMemory::ArmMemory(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch,
                     const AttentionBytes& attention, Sharing sharing)
    : list_(find_model(spec.model).tokens ? transformer_list(spec, recipe, engine, batch, attention)
                                          : mlp_list(spec, recipe, engine, batch)) {
    if (can_share(spec, batch, sharing))
        pool_ = place_in_pool(list_);
    else
        for (Allocation& one : list_) one.life = {};
}

const Allocation* ArmMemory::find(ArmPart part, int layer, TensorClass tensor) const {
    for (const Allocation& one : list_)
        if (one.part == part && one.layer == layer && one.tensor == tensor) return &one;
    return nullptr;
}

std::uint64_t ArmMemory::bytes(ArmPart part, int layer, TensorClass tensor) const {
    const Allocation* const found = find(part, layer, tensor);
    return found ? found->bytes : 0;
}

std::uint64_t ArmMemory::requested_bytes() const {
    std::uint64_t sum = pool_;
    for (const Allocation& one : list_)
        if (one.life.always()) sum += one.bytes;
    return sum;
}

std::uint64_t ArmMemory::device_bytes() const {
    constexpr std::uint64_t kPage = 2 << 20, kSmall = 1 << 20, kMultiple = 512;
    const auto up = [](std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; };
    std::uint64_t pages = 0, packed = 0;
    const auto take = [&](std::uint64_t bytes) {
        (bytes > kSmall ? pages : packed) += up(bytes, bytes > kSmall ? kPage : kMultiple);
    };
    take(pool_);
    for (const Allocation& one : list_)
        if (one.life.always()) take(one.bytes);
    return pages + up(packed, kPage);
}

std::uint64_t ring_bytes(const TrainSpec& spec, int batch) {
    if (find_model(spec.model)
            .tokens)  // tokens, targets, order; starts; how many count (kernels/layers/launch.h)
        return sizeof(std::int32_t) * size(data_slots(spec)) *
                   (3 * size(batch) * size(spec.sizes.at("context")) + size(spec.vocabulary) + 2) +
               kInputSlots * kStepInputBytes;
    return sizeof(float) * size(data_slots(spec)) * size(batch) *
               size(spec.layers.front() + spec.layers.back()) +
           kInputSlots * kStepInputBytes;
}

}  // namespace fp8lab::cuda
