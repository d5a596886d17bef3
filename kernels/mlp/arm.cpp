#include "kernels/mlp/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/nn/model.h"

namespace fp8lab::cuda {
namespace {

// Multiprocessors that a product leaves to NCCL's blocks where gradients or weights of another layer travel beside it. A kernel
// of cuBLASLt keeps all that it gets until it ends: without, the network waited for it, 1.21 ms of a step of 4096-16384-4096,
// 8,192 rows a GPU, were network alone, and with 24 of 132 they are 0.59 (two H100s, CUDA 13.0, 2026-11-27).
constexpr int kSpared = 24;

}  // namespace

MlpArm::MlpArm(const TrainSpec& spec, const Recipe& recipe, const EngineChoice& choice, const Lt& lt,
               const StepRings& rings, cudaStream_t stream, const Preparation& preparation,
               const RankPlace& place)
    : CudaArm(spec, recipe, choice, place), lt_(lt), rings_(rings) {
    first_micro_ = place.rank * parts();
    if (layer_count() > kMaxLayers)
        throw Error(ErrorKind::backend, "--layers", "the GPU trains at most 16 layers");
    if (spec.clip != 0)  // the update of a layer does not wait for the gradients of the others
        throw usage_error("--clip", "has no effect on model mlp on a GPU: --backend cpu");
    allocate();
    for (std::size_t i = 0; i < 2 * layers_.size() + 4; ++i) events_.forks.emplace_back();
    if (place_.several()) events_.gathered.resize(layers_.size());
    make_plans(stream, preparation);
    push_controls(stream);
    preparation.begin(fmt::format("{}: initial weights", recipe.base));
    initialise();
}

Slot MlpArm::make_layer_slot(const ArmMemory& plan, MlpTensor id, int rows, int cols, int planned_as) {
    // The order of the GEMMs: x and w serve fprop first, dy serves dgrad first. In the first layer, which has no dgrad,
    // one GEMM reads w, and one dy.
    const bool one_reader = id.layer == 1 && id.tensor != TensorClass::x;
    Slot slot = make_slot(id, rows, cols,
                          one_reader && id.tensor == TensorClass::dy ? Along::rows : Along::cols, one_reader);
    const auto bytes = [&](ArmPart part) { return plan.bytes(part, planned_as, id.tensor); };
    if (slot.other) {
        give_sides(slot, nullptr, [&](ArmPart part) { return Memory(bytes(part)); });
        return slot;
    }
    if (bytes(ArmPart::value) > 0) slot.keep_values();
    slot.first = Memory(bytes(ArmPart::first));
    slot.second = Memory(bytes(ArmPart::second));
    slot.cast = slot.engine == Engine::fp8 || slot.first.bytes() > 0;
    slot.has_second = slot.engine == Engine::fp8 || slot.second.bytes() > 0;
    if (engine_ == Engine::emulated)  // emulated casts leave the padding alone
        for (const Memory* operand : {&slot.first, &slot.second})
            if (operand->bytes() > 0) fill_zeros(operand->get(), operand->bytes());
    if (bytes(ArmPart::scale_inv) > 0) slot.scales = ScaleBuffers(slot.scaling, slot.shape);
    slot.stats = Buffer<CastSums>(bytes(ArmPart::stats) / sizeof(CastSums));
    return slot;
}

void MlpArm::allocate() {
    std::size_t before = 0, after = 0, total = 0;
    check(cudaMemGetInfo(&before, &total), "cudaMemGetInfo");
    const ArmMemory plan(spec_, recipe_, engine_, spec_.batch);
    for (std::size_t l = 0; l + 1 < spec_.layers.size(); ++l) {
        const int in = spec_.layers[l], out = spec_.layers[l + 1], number = static_cast<int>(l) + 1;
        auto layer = std::make_unique<MlpLayer>();
        layer->number = number;
        layer->x = make_layer_slot(plan, {TensorClass::x, number}, rows(), in, number);
        layer->w = make_layer_slot(plan, {TensorClass::w, number}, out, in, number);
        layer->dy = make_layer_slot(plan, {TensorClass::dy, number}, rows(), out, number);
        layer->out = layer->dy.shape;
        const auto parameters = [&](ArmPart part, Element element) {
            return plan.bytes(part, number) > 0
                       ? Parameters(element,
                                    part == ArmPart::weight_gradient ? layer->w.shape : updated_shape(*layer))
                       : Parameters();
        };
        const auto floats = [&](ArmPart part) {
            return Buffer<float>(plan.bytes(part, number) / sizeof(float));
        };
        if (place_.several()) allocate_ranks(*layer, plan);
        layer->h = Memory(plan.bytes(ArmPart::output, number));
        layer->da = Memory(plan.bytes(ArmPart::input_gradient, number));
        layer->master = parameters(ArmPart::master, kept_in_);
        for (Slot* side = &layer->w; side; side = side->other.get())
            side->values = layer->block && layer->block->gathered.bytes() > 0 ? layer->block->gathered.get()
                                                                              : layer->master.get();
        layer->dw = parameters(ArmPart::weight_gradient, gradient_in());
        layer->b = floats(ArmPart::bias);
        layer->b_before = floats(ArmPart::bias_before);
        layer->db = floats(ArmPart::bias_gradient);
        layer->m = parameters(ArmPart::m, moment_element(recipe_.moment_m));
        layer->v = parameters(ArmPart::v, moment_element(recipe_.moment_v));
        layer->mb = floats(ArmPart::bias_m);
        layer->vb = floats(ArmPart::bias_v);
        layer->bias_partials = floats(ArmPart::bias_partials);
        for (Slot* slot : {&layer->x, &layer->w, &layer->dy}) add_slot(*slot);
        layers_.push_back(std::move(layer));
    }
    if (plan.bytes(ArmPart::stats, 0) > 0) allocate_other_x(plan);
    allocate_shared();
    loss_partials_ = Buffer<double>(plan.bytes(ArmPart::loss_partials) / sizeof(double));
    row_stats_ = Buffer<float2>(plan.bytes(ArmPart::row_stats) / sizeof(float2));
    row_correct_ = Buffer<std::uint8_t>(plan.bytes(ArmPart::row_correct));
    if (const int all = parts() * place_.count; all > 1)
        gradient_factor_ = Buffer<float>(std::vector<float>{1.0F / static_cast<float>(all)});
    bucket_ = Memory(plan.bytes(ArmPart::bucket));
    fill_zeros(bucket_.get(), bucket_.bytes());
    if (recipe_.loss_scale > 0) allocate_loss_scale();
    scratch_ = Memory(plan.bytes(ArmPart::scratch));
    rotated_ = Memory(plan.bytes(ArmPart::rotated));
    check(cudaMemGetInfo(&after, &total), "cudaMemGetInfo");
    memory_bytes_ = before > after ? before - after : 0;
}

void MlpArm::allocate_other_x(const ArmMemory& plan) {
    const auto floats = [&](ArmPart part) { return Buffer<float>(plan.bytes(part) / sizeof(float)); };
    other_x_ = make_layer_slot(plan, {TensorClass::x, 1}, rows(), spec_.layers.front(), 0);
    other_x_->scale_inv = floats(ArmPart::next_scale_inv);
    if (other_x_->other) other_x_->other->scale_inv = floats(ArmPart::second_next_scale_inv);
}

void MlpArm::make_plans(cudaStream_t stream, const Preparation& preparation) {
    for (const auto& layer : layers_) {
        LayerProducts products = products_of(recipe_, engine_, layer->out.padded_rows,
                                             layer->w.shape.padded_cols, layer->w.shape.padded_rows);
        products.wgrad.d = gradient_in();
        if (place_.several() && layer->number < layer_count()) {
            products.wgrad.spared = kSpared;
            if (spec_.ranks.sharded()) products.fprop.spared = kSpared;
        }
        const auto choose = [&](std::optional<GemmPlan>& plan, std::string_view product,
                                const GemmSpec& spec) {
            preparation.begin(fmt::format("{}: {} of layer {}", recipe_.base, product, layer->number));
            plan.emplace(lt_, spec, stream);
        };
        choose(layer->fprop, "fprop", products.fprop);
        if (layer->number > 1) choose(layer->dgrad, "dgrad", products.dgrad);
        if (!multiplies_in_update()) choose(layer->wgrad, "wgrad", products.wgrad);
    }
}

Element MlpArm::gradient_in() const {
    constexpr int kAny = 16;
    if (place_.several() && parts() == 1 && engine_ != Engine::emulated && spec_.state != StateType::bf16)
        return spec_.ranks.sum == "bf16" ? Element::bf16 : Element::f32;
    const bool sums_in_bf16 = spec_.accumulate.format == "bf16" && engine_ != Engine::emulated;
    return spec_.state == StateType::bf16 || sums_in_bf16
               ? Element::bf16
               : products_of(recipe_, engine_, kAny, kAny, kAny).wgrad.d;
}

bool MlpArm::multiplies_in_update() const {
    return cuda::multiplies_in_update(spec_, recipe_, engine_, spec_.batch);
}

std::string MlpArm::nonfinite_parameter() const {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto bad = [](const std::vector<float>& values) {
        return !std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
    };
    for (const auto& layer : layers_)
        if (bad(layer->master.read())) return fmt::format("w{}", layer->number);
    for (const auto& layer : layers_)
        if (bad(layer->b.download())) return fmt::format("b{}", layer->number);
    return "update";
}

ArmCheckpoint MlpArm::checkpoint() const {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    ArmCheckpoint out{.recipe = recipe_text(recipe_), .parameters = {}, .scales = scale_checkpoints()};
    out.scaler = loss_scale_checkpoint();
    const std::vector<ScaleState> states = states_.download();
    for (const auto& layer : layers_) {
        const Shape s = layer->w.shape;
        const auto vector = [&](const Buffer<float>& b) {
            std::vector<float> values = b.download();
            values.resize(std::min(values.size(), static_cast<std::size_t>(s.rows)));
            return values;
        };
        const auto all = [&](const Parameters& part) {
            return whole(part, s, layer->block ? &*layer->block : nullptr, side_.get());
        };
        ParameterCheckpoint weights{all(layer->master), {all(layer->m), all(layer->v)}, {}};
        if (recipe_.master == MasterWeights::none) weights.storage_scale = states[layer->w.id.index].scale;
        out.parameters.push_back(std::move(weights));
        out.parameters.push_back({vector(layer->b), {vector(layer->mb), vector(layer->vb)}, {}});
    }
    return out;
}

void MlpArm::restore(const ArmCheckpoint& checkpoint, int steps_done) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<float> storage(static_cast<std::size_t>(tensors_), 0.0F);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        MlpLayer& layer = *layers_[l];
        const ParameterCheckpoint &weights = checkpoint.parameters[2 * l],
                                  &bias = checkpoint.parameters[2 * l + 1];
        const auto vector = [&](std::vector<float> from, Buffer<float>& to) {
            if (to.size() == 0) return;
            from.resize(to.size(), 0.0F);
            to.upload(from);
        };
        const WeightBlock* const block = layer.block ? &*layer.block : nullptr;
        layer.master.write(as_kept(part_of(weights.values, block)));
        layer.m.write(part_of(weights.moments.m, block));
        layer.v.write(part_of(weights.moments.v, block));
        vector(bias.values, layer.b);
        vector(bias.moments.m, layer.mb);
        vector(bias.moments.v, layer.vb);
        storage[layer.w.id.index] = storage_scale(weights);
    }
    restore_scales(checkpoint.scales, storage, steps_done);
    restore_loss_scale(checkpoint.scaler);
    requantise_weights();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace fp8lab::cuda
