#include "kernels/trainer/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/nn/model.h"
#include "core/nn/streams.h"

namespace fp8lab::cuda {
namespace {

// What the list of allocations counts.
static_assert(sizeof(ScaleState) == kScaleStateBytes && sizeof(ScaleControls) == kScaleControlsBytes);
static_assert(sizeof(StepInput) == kStepInputBytes && sizeof(ArmState) == kArmStateBytes);
static_assert(sizeof(StepResult) == kStepResultBytes && sizeof(TensorResult) == kTensorResultBytes);
static_assert(sizeof(CastSums) == kCastSumsBytes);

Shape shape_of(int rows, int cols) { return {rows, cols, padded(rows), padded(cols)}; }
std::size_t elements(Shape s) {
    return static_cast<std::size_t>(s.padded_rows) * static_cast<std::size_t>(s.padded_cols);
}

}  // namespace

CudaArm::CudaArm(const TrainSpec& spec, const Recipe& recipe, const EngineChoice& choice, const Lt& lt,
                 const StepRings& rings, cudaStream_t stream, const Preparation& preparation)
    : spec_(spec),
      recipe_(recipe),
      engine_(choice.engine),
      emulated_because_(choice.reason),
      lt_(lt),
      rings_(rings),
      kept_in_(spec.state == StateType::bf16 ? Element::bf16 : Element::f32),
      // Emulated recipes round the FP32 outputs themselves.
      out_(engine_ == Engine::emulated || recipe.out == OutType::fp32 ? Element::f32 : Element::bf16),
      tensors_(3 * (static_cast<int>(spec.layers.size()) - 1)),
      host_results_(kRecordSlots),
      host_tensors_(static_cast<std::size_t>(kRecordSlots) * static_cast<std::size_t>(tensors_)),
      host_controls_(64) {
    if (tensors_ / 3 > kMaxLayers)
        throw Error(ErrorKind::backend, "--layers", "the GPU trains at most 16 layers");
    if (spec.state == StateType::bf16 && engine_ != Engine::bf16)
        throw usage_error("--state bf16", "is for recipe bf16, not " + recipe.name);
    allocate();
    for (std::size_t i = 0; i < layers_.size() + 2; ++i) events_.forks.emplace_back();
    make_plans(stream, preparation);
    push_controls(stream);
    preparation.begin(fmt::format("{}: initial weights", recipe.base));
    initialise();
}

void Slot::keep_values() {
    value = Memory(elements(shape) * sizeof(float));
    fill_zeros(value.get(), value.bytes());
    values = value.get();
}

Slot CudaArm::make_slot(const ArmMemory& plan, MlpTensor id, int rows, int cols, int planned_as) {
    Slot slot;
    slot.shape = shape_of(rows, cols);
    const Recipe recipe = recipe_of_layer(recipe_, id.layer, layer_count());
    slot.plan = cast_plan(recipe, id.tensor);
    slot.rotated = recipe.rht && id.tensor != TensorClass::w;
    slot.id = id;
    slot.index = TensorId(id).index;
    const auto bytes = [&](ArmPart part) { return plan.bytes(part, planned_as, id.tensor); };
    if (bytes(ArmPart::value) > 0) slot.keep_values();
    slot.first = Memory(bytes(ArmPart::first));
    slot.second = Memory(bytes(ArmPart::second));
    slot.cast = engine_ == Engine::fp8 || slot.first.bytes() > 0;
    slot.has_second = engine_ == Engine::fp8 || slot.second.bytes() > 0;
    if (engine_ == Engine::emulated)  // emulated casts leave the padding alone
        for (const Memory* operand : {&slot.first, &slot.second})
            if (operand->bytes() > 0) fill_zeros(operand->get(), operand->bytes());
    if (engine_ == Engine::fp8) {
        slot.scaling = scale_mode_of(slot.plan);
        if (bytes(ArmPart::scale_inv) > 0) slot.scales = ScaleBuffers(slot.scaling, slot.shape);
    }
    slot.stats = Buffer<CastSums>(bytes(ArmPart::stats) / sizeof(CastSums));
    return slot;
}

void CudaArm::allocate() {
    std::size_t before = 0, after = 0, total = 0;
    check(cudaMemGetInfo(&before, &total), "cudaMemGetInfo");
    const ArmMemory plan(spec_, recipe_, engine_, spec_.batch);
    for (std::size_t l = 0; l + 1 < spec_.layers.size(); ++l) {
        const int in = spec_.layers[l], out = spec_.layers[l + 1], number = static_cast<int>(l) + 1;
        auto layer = std::make_unique<ArmLayer>();
        layer->number = number;
        layer->x = make_slot(plan, {TensorClass::x, number}, spec_.batch, in, number);
        layer->w = make_slot(plan, {TensorClass::w, number}, out, in, number);
        layer->dy = make_slot(plan, {TensorClass::dy, number}, spec_.batch, out, number);
        layer->out = layer->dy.shape;
        const auto parameters = [&](ArmPart part, Element element) {
            return plan.bytes(part, number) > 0 ? Parameters(element, layer->w.shape) : Parameters();
        };
        const auto floats = [&](ArmPart part) {
            return Buffer<float>(plan.bytes(part, number) / sizeof(float));
        };
        layer->h = Memory(plan.bytes(ArmPart::output, number));
        layer->da = Memory(plan.bytes(ArmPart::input_gradient, number));
        layer->master = parameters(ArmPart::master, kept_in_);
        layer->w.values = layer->master.get();
        layer->dw = parameters(ArmPart::weight_gradient, gradient_in());
        layer->b = floats(ArmPart::bias);
        layer->b_before = floats(ArmPart::bias_before);
        layer->db = floats(ArmPart::bias_gradient);
        layer->m = parameters(ArmPart::m, kept_in_);
        layer->v = parameters(ArmPart::v, kept_in_);
        layer->mb = floats(ArmPart::bias_m);
        layer->vb = floats(ArmPart::bias_v);
        layer->bias_partials = floats(ArmPart::bias_partials);
        layers_.push_back(std::move(layer));
    }
    if (plan.bytes(ArmPart::stats, 0) > 0) {
        other_x_ = make_slot(plan, {TensorClass::x, 1}, spec_.batch, spec_.layers.front(), 0);
        other_x_->scale_inv = Buffer<float>(plan.bytes(ArmPart::next_scale_inv) / sizeof(float));
    }
    const auto tensors = static_cast<std::size_t>(tensors_), rows = static_cast<std::size_t>(spec_.batch);
    states_ = Buffer<ScaleState>(tensors);
    history_ = Buffer<float>(tensors * kHistoryCapacity);
    controls_ = Buffer<ScaleControls>(1);
    arm_ = Buffer<ArmState>(kStepsPerLaunch);
    finite_ = Buffer<std::int32_t>(1);
    results_ = Buffer<StepResult>(kRecordSlots);
    tensor_results_ = Buffer<TensorResult>(kRecordSlots * tensors);
    loss_partials_ = Buffer<double>(plan.bytes(ArmPart::loss_partials) / sizeof(double));
    row_stats_ = Buffer<float2>(rows);
    row_correct_ = Buffer<std::uint8_t>(rows);
    scratch_ = Memory(plan.bytes(ArmPart::scratch));
    rotated_ = Memory(plan.bytes(ArmPart::rotated));
    check(cudaMemGetInfo(&after, &total), "cudaMemGetInfo");
    memory_bytes_ = before > after ? before - after : 0;
}

void CudaArm::make_plans(cudaStream_t stream, const Preparation& preparation) {
    for (const auto& layer : layers_) {
        LayerProducts products = products_of(recipe_, engine_, layer->out.padded_rows,
                                             layer->w.shape.padded_cols, layer->w.shape.padded_rows);
        products.wgrad.d = gradient_in();
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

Element CudaArm::operand_element(const Slot& slot) const {
    return engine_ == Engine::emulated ? Element::f32
           : engine_ == Engine::bf16   ? Element::bf16
                                       : element_of(*slot.plan.format);
}

Element CudaArm::gradient_in() const {
    constexpr int kAny = 16;
    return kept_in_ == Element::bf16 ? Element::bf16
                                     : products_of(recipe_, engine_, kAny, kAny, kAny).wgrad.d;
}

bool CudaArm::multiplies_in_update() const {
    return cuda::multiplies_in_update(spec_, recipe_, engine_, spec_.batch);
}

// The model of core, from the seed alone: every arm and backend starts from the same weights.
void CudaArm::initialise() {
    const auto model = make_model(spec_);
    model->initialise(spec_.seed);
    ArmCheckpoint start;
    for (const Parameter<float>& p : model->parameters())
        start.parameters.push_back({{p.value.begin(), p.value.end()}, {}, {}});
    restore(start, 0);
}

void CudaArm::push_controls(cudaStream_t stream) {
    ScaleControls& slot = host_controls_.values()[next_control_++ % host_controls_.values().size()];
    slot = {recipe_.history, recipe_.algo == AmaxAlgo::most_recent, recipe_.margin, recipe_.interval,
            recipe_.pow2};
    check(cudaMemcpyAsync(controls_.get(), &slot, sizeof slot, cudaMemcpyHostToDevice, stream),
          "scale controls");
}

void CudaArm::set_history(int length, cudaStream_t stream) {
    // What has left the window does not come back when it grows: the ring still holds it.
    const int kept = std::min(recipe_.history, length) - 1;  // slot 0 is the next amax's
    recipe_.history = length;
    push_controls(stream);
    truncate_history(states_.get(), history_.get(), tensors_, kept, stream);
}
void CudaArm::set_margin(int margin, cudaStream_t stream) {
    recipe_.margin = margin;
    for (const auto& layer : layers_)
        for (Slot* slot : {&layer->x, &layer->w, &layer->dy}) slot->plan.margin = margin;
    push_controls(stream);
}
void CudaArm::set_algo(AmaxAlgo algo, cudaStream_t stream) {
    recipe_.algo = algo;
    push_controls(stream);
}

void CudaArm::read_back(int first, int count, cudaStream_t stream) {
    while (count > 0) {
        const int slot = first % kRecordSlots, run = std::min(count, kRecordSlots - slot);
        const auto at = static_cast<std::size_t>(slot), n = static_cast<std::size_t>(run),
                   t = static_cast<std::size_t>(tensors_);
        check(cudaMemcpyAsync(host_results_.values().data() + at, results_.get() + at, n * sizeof(StepResult),
                              cudaMemcpyDeviceToHost, stream),
              "records");
        check(cudaMemcpyAsync(host_tensors_.values().data() + at * t, tensor_results_.get() + at * t,
                              n * t * sizeof(TensorResult), cudaMemcpyDeviceToHost, stream),
              "records");
        first += run;
        count -= run;
    }
}

ArmRecord CudaArm::record(int step) const {
    const auto slot = static_cast<std::size_t>(step % kRecordSlots), t = static_cast<std::size_t>(tensors_);
    const auto tensors = host_tensors_.values().subspan(slot * t, t);
    return {host_results_.values()[slot], {tensors.begin(), tensors.end()}};
}

std::string CudaArm::nonfinite_parameter() const {
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

ArmCheckpoint CudaArm::checkpoint() const {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    ArmCheckpoint out{.recipe = recipe_text(recipe_), .parameters = {}, .scales = {}};
    const std::vector<ScaleState> states = states_.download();
    const std::vector<float> history = history_.download();
    for (const auto& layer : layers_) {
        const Shape s = layer->w.shape;
        const auto vector = [&](const Buffer<float>& b) {
            std::vector<float> values = b.download();
            values.resize(std::min(values.size(), static_cast<std::size_t>(s.rows)));
            return values;
        };
        ParameterCheckpoint weights{layer->master.read(), {layer->m.read(), layer->v.read()}, {}};
        if (recipe_.master == MasterWeights::none)
            weights.storage_scale = states[static_cast<std::size_t>(layer->w.index)].scale;
        out.parameters.push_back(std::move(weights));
        out.parameters.push_back({vector(layer->b), {vector(layer->mb), vector(layer->vb)}, {}});
        for (const Slot* slot : {&layer->x, &layer->w, &layer->dy}) {
            const ScaleState& state = states[static_cast<std::size_t>(slot->index)];
            if (!state.delayed) continue;
            // core's order: slot 0 is empty after the roll, the oldest amax comes next, the newest last.
            std::vector<float> amaxes{0.0F};
            for (int back = recipe_.history - 1; back >= 1; --back)
                amaxes.push_back(
                    history[static_cast<std::size_t>(slot->index) * kHistoryCapacity +
                            static_cast<std::size_t>(state.history_at - back + kHistoryCapacity) %
                                kHistoryCapacity]);
            out.scales.push_back({slot->id, state.scale, state.scale_age, std::move(amaxes)});
        }
    }
    return out;
}

void CudaArm::restore(const ArmCheckpoint& checkpoint, int steps_done) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<ScaleState> states(static_cast<std::size_t>(tensors_));
    std::vector<float> history(history_.size(), 0.0F);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        ArmLayer& layer = *layers_[l];
        const ParameterCheckpoint &weights = checkpoint.parameters[2 * l],
                                  &bias = checkpoint.parameters[2 * l + 1];
        const auto vector = [&](std::vector<float> from, Buffer<float>& to) {
            if (to.size() == 0) return;
            from.resize(to.size(), 0.0F);
            to.upload(from);
        };
        layer.master.write(weights.values);
        layer.m.write(weights.moments.m);
        layer.v.write(weights.moments.v);
        vector(bias.values, layer.b);
        vector(bias.moments.m, layer.mb);
        vector(bias.moments.v, layer.vb);
        for (const Slot* slot : {&layer.x, &layer.w, &layer.dy}) {
            ScaleState& state = states[static_cast<std::size_t>(slot->index)];
            state.max_finite = static_cast<float>(max_finite(*slot->plan.format));
            state.delayed = recipe_.scale == ScaleSource::delayed && slot->plan.scaled;
        }
        if (recipe_.master != MasterWeights::none) continue;
        // The weights live on an E4M3 grid that never changes: four times the initial amax fits
        // (cli.md, "Definitions that results depend on").
        constexpr float kHeadroom = 4;
        const float largest = fp8lab::amax(weights.values),
                    limit = static_cast<float>(max_finite(find_format("e4m3")));
        ScaleState& state = states[static_cast<std::size_t>(layer.w.index)];
        state.scale = weights.storage_scale.value_or(largest > 0 ? limit / (kHeadroom * largest) : 1.0F);
        state.delayed = 0;
    }
    for (const ScaleCheckpoint& saved : checkpoint.scales) {
        const std::size_t index = saved.id.index;
        ScaleState& state = states[index];
        if (!state.delayed) continue;
        state.scale = saved.scale;
        state.scale_age = saved.scale_age;
        // Slot 1 is the oldest, the last the newest; on the card the newest is at history_at - 1.
        const std::size_t keep =
            std::min(saved.history.size() - 1, static_cast<std::size_t>(recipe_.history) - 1);
        for (std::size_t back = 1; back <= keep; ++back)
            history[index * kHistoryCapacity + (kHistoryCapacity - back)] =
                saved.history[saved.history.size() - back];
    }
    states_.upload(states);
    history_.upload(history);
    std::vector<ArmState> steps;
    for (int i = 0; i < kStepsPerLaunch; ++i) steps.push_back({steps_done + i, 1});
    arm_.upload(steps);
    const std::int32_t finite = 1;
    finite_.upload(std::span(&finite, 1));
    requantise_weights();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace fp8lab::cuda
