#include "kernels/arm/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/nn/model.h"

namespace fp8lab::cuda {
namespace {

// What the list of allocations counts.
static_assert(sizeof(ScaleState) == kScaleStateBytes && sizeof(ScaleControls) == kScaleControlsBytes);
static_assert(sizeof(StepInput) == kStepInputBytes && sizeof(ArmState) == kArmStateBytes);
static_assert(sizeof(StepResult) == kStepResultBytes && sizeof(TensorResult) == kTensorResultBytes);
static_assert(sizeof(CastSums) == kCastSumsBytes);

constexpr std::size_t kControlsAhead = 64;  // changes on their way to the device

}  // namespace

void Slot::keep_values() {
    value = Memory(elements(shape) * sizeof(float));
    fill_zeros(value.get(), value.bytes());
    values = value.get();
}

CudaArm::CudaArm(const TrainSpec& spec, const Recipe& recipe, const EngineChoice& choice)
    : spec_(spec),
      recipe_(recipe),
      plan_(model_plan(spec)),
      engine_(choice.engine),
      emulated_because_(choice.reason),
      kept_in_(spec.state == StateType::bf16 ? Element::bf16 : Element::f32),
      // Emulated recipes round the FP32 outputs themselves.
      out_(engine_ == Engine::emulated || recipe.out == OutType::fp32 ? Element::f32 : Element::bf16),
      tensors_(static_cast<int>(plan_.tensors.size())),
      slots_(plan_.tensors.size()),
      host_results_(kRecordSlots),
      host_tensors_(kRecordSlots * plan_.tensors.size()),
      host_controls_(kControlsAhead) {
    if (spec.state == StateType::bf16 && engine_ != Engine::bf16)
        throw usage_error("--state bf16", "is for recipe bf16, not " + recipe.name);
}

void CudaArm::allocate_shared() {
    const auto tensors = static_cast<std::size_t>(tensors_);
    states_ = Buffer<ScaleState>(tensors);
    states_now_ = states_.get();
    history_ = Buffer<float>(tensors * kHistoryCapacity);
    controls_ = Buffer<ScaleControls>(1);
    arm_ = Buffer<ArmState>(kStepsPerLaunch);
    finite_ = Buffer<std::int32_t>(1);
    results_ = Buffer<StepResult>(kRecordSlots);
    tensor_results_ = Buffer<TensorResult>(kRecordSlots * tensors);
}

Slot CudaArm::make_slot(TensorId id, int rows, int cols) const {
    const Recipe recipe = plan_.recipe_of(recipe_, id);
    Slot slot;
    slot.shape = shape_of(rows, cols);
    slot.id = id;
    slot.tensor = plan_.tensor(id).tensor;
    slot.plan = cast_plan(recipe, slot.tensor);
    slot.source = recipe.scale;
    slot.engine = engine_ == Engine::fp8 && recipe.fwd->name == "bf16" ? Engine::bf16 : engine_;
    slot.ordinal = plan_.ordinal(id);
    slot.place = plan_.place(id);
    slot.rotated = recipe.rht && slot.tensor != TensorClass::w;
    if (slot.engine == Engine::fp8) slot.scaling = scale_mode_of(slot.plan);
    return slot;
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
    for (Slot* slot : slots_)
        if (slot) slot->plan.margin = margin;
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

// The count is that of the first cast: a tensor that is rotated then has the padding of the batch (recipe_casts.h).
std::int64_t CudaArm::recorded_elements(TensorId id) const {
    const Slot& slot = *slots_[id.index];
    const bool turned = slot.rotated && slot.first_along == Along::rows;
    return static_cast<std::int64_t>(turned ? slot.shape.padded_rows : slot.shape.rows) * slot.shape.cols;
}

void CudaArm::record_tensors(const std::vector<bool>& chosen, const StepContext& step) {
    UpdatedTensors updated;
    updated.of = tensors_;
    const auto update = [&] {
        update_scales(states_.get(), history_.get(), updated, controls_.get(), tensor_results_.get(),
                      step.arm, step.side);
        updated.count = 0;
    };
    for (const Slot* slot : slots_) {
        if (!slot || !chosen[slot->id.index]) continue;
        const int i = updated.count++;
        updated.tensor[i] = static_cast<int>(slot->id.index);
        updated.amaxes[i] = slot->scales.vectors(nullptr).amaxes;
        updated.amax_count[i] = static_cast<int>(slot->scales.amaxes());
        if (updated.count == kMostTensorsAtOnce) update();
    }
    update();
    if (!step.with_stats) return;
    for (const Slot* slot : slots_)
        if (slot && chosen[slot->id.index] && slot->stats.size() > 0)
            reduce_stats(slot->stats.get(), stats_blocks(slot->shape), tensor_results_.get(), slot->id.index,
                         tensors_, step.arm, step.side);
}

std::vector<ScaleCheckpoint> CudaArm::scale_checkpoints() const {
    const std::vector<ScaleState> states = states_.download();
    const std::vector<float> history = history_.download();
    std::vector<ScaleCheckpoint> out;
    for (const Slot* slot : slots_) {
        if (!slot) continue;
        const std::size_t index = slot->id.index;
        const ScaleState& state = states[index];
        if (!state.delayed) continue;
        // core's order: slot 0 is empty after the roll, the oldest amax comes next, the newest last.
        std::vector<float> amaxes{0.0F};
        for (int back = recipe_.history - 1; back >= 1; --back)
            amaxes.push_back(history[index * kHistoryCapacity +
                                     static_cast<std::size_t>(state.history_at - back + kHistoryCapacity) %
                                         kHistoryCapacity]);
        out.push_back({slot->id, state.scale, state.scale_age, std::move(amaxes)});
    }
    return out;
}

// The weights live on an E4M3 grid that never changes: four times the initial amax fits (cli.md, "Definitions that
// results depend on").
float CudaArm::storage_scale(const ParameterCheckpoint& weights) const {
    if (recipe_.master != MasterWeights::none) return 0;
    constexpr float kHeadroom = 4;
    const float largest = fp8lab::amax(weights.values),
                limit = static_cast<float>(max_finite(find_format("e4m3")));
    return weights.storage_scale.value_or(largest > 0 ? limit / (kHeadroom * largest) : 1.0F);
}

void CudaArm::restore_scales(const std::vector<ScaleCheckpoint>& saved, const std::vector<float>& storage,
                             int steps_done) {
    std::vector<ScaleState> states(static_cast<std::size_t>(tensors_));
    std::vector<float> history(history_.size(), 0.0F);
    for (const Slot* slot : slots_) {
        if (!slot) continue;
        ScaleState& state = states[slot->id.index];
        state.max_finite = static_cast<float>(max_finite(*slot->plan.format));
        state.delayed = slot->source == ScaleSource::delayed && slot->plan.scaled;
        if (storage[slot->id.index] == 0) continue;
        state.scale = storage[slot->id.index];
        state.delayed = 0;
    }
    for (const ScaleCheckpoint& one : saved) {
        const std::size_t index = one.id.index;
        ScaleState& state = states[index];
        if (!state.delayed) continue;
        state.scale = one.scale;
        state.scale_age = one.scale_age;
        // Slot 1 is the oldest, the last the newest; on the card the newest is at history_at - 1.
        const std::size_t keep =
            std::min(one.history.size() - 1, static_cast<std::size_t>(recipe_.history) - 1);
        for (std::size_t back = 1; back <= keep; ++back)
            history[index * kHistoryCapacity + (kHistoryCapacity - back)] =
                one.history[one.history.size() - back];
    }
    states_.upload(states);
    history_.upload(history);
    std::vector<ArmState> steps;
    for (int i = 0; i < kStepsPerLaunch; ++i) steps.push_back({steps_done + i, 1});
    arm_.upload(steps);
    const std::int32_t finite = 1;
    finite_.upload(std::span(&finite, 1));
}

}  // namespace fp8lab::cuda
