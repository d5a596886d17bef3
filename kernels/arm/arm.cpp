#include "kernels/arm/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/nn/faults.h"
#include "core/nn/model.h"
#include "core/scaling/moment_storage.h"
#include "core/scaling/side_cast.h"

namespace fp8lab::cuda {
namespace {

// What the list of allocations counts.
static_assert(sizeof(ScaleState) == kScaleStateBytes && sizeof(ScaleControls) == kScaleControlsBytes);
static_assert(sizeof(StepInput) == kStepInputBytes && sizeof(ArmState) == kArmStateBytes);
static_assert(sizeof(StepResult) == kStepResultBytes && sizeof(TensorResult) == kTensorResultBytes);
static_assert(sizeof(CastSums) == kCastSumsBytes);
static_assert(sizeof(LossScale) == kLossScaleBytes && sizeof(LossScaleResult) == kLossScaleResultBytes);
static_assert(sizeof(MomentCounts) == kMomentCountsBytes && sizeof(MomentResult) == kMomentResultBytes);

constexpr std::size_t kControlsAhead = 64;  // changes on their way to the device

ScaleControls controls_of(const Recipe& recipe) {
    return {recipe.history, recipe.algo == AmaxAlgo::most_recent,
            recipe.margin,  recipe.interval,
            recipe.pow2,    recipe.algo == AmaxAlgo::ema ? recipe.ema_decay : 0.0F};
}

}  // namespace

void Slot::keep_values() {
    value = Memory(elements(shape) * sizeof(float));
    fill_zeros(value.get(), value.bytes());
    values = value.get();
}

CudaArm::CudaArm(const TrainSpec& spec, const Recipe& recipe, const EngineChoice& choice,
                 const RankPlace& place)
    : spec_(spec),
      recipe_(recipe),
      plan_(model_plan(spec)),
      engine_(choice.engine),
      emulated_because_(choice.reason),
      kept_in_(keeps_bf16_weights(spec, recipe, engine_) ? Element::bf16 : Element::f32),
      // Emulated recipes round the FP32 outputs themselves.
      out_(engine_ == Engine::emulated || recipe.out == OutType::fp32 ? Element::f32 : Element::bf16),
      place_(place),
      tensors_(static_cast<int>(plan_.tensors.size())),
      casts_(tensors_ + static_cast<int>(split_tensors(plan_, recipe))),
      slots_(plan_.tensors.size()),
      host_results_(kRecordSlots),
      host_tensors_(kRecordSlots * static_cast<std::size_t>(casts_)),
      host_controls_(kControlsAhead * scale_controls(recipe)) {
    for (std::size_t i = 0; i < scale_controls(recipe); ++i)
        controls_now_.push_back(controls_of(recipe_of_gemm(recipe, static_cast<Gemm>(i))));
    int next = tensors_;
    for (std::uint16_t i = 0; i < plan_.tensors.size(); ++i) {
        const bool split = is_split(plan_.recipe_of(recipe, {i}), plan_.tensors[i].tensor);
        second_states_.push_back(split ? next++ : -1);
    }
    if (spec.state == StateType::bf16 && engine_ != Engine::bf16)
        throw usage_error("--state bf16", "is for recipe bf16, not " + recipe.name);
    if (spec.state == StateType::bf16 && (has_narrow_moments(recipe) || recipe.master == MasterWeights::bf16))
        throw usage_error(
            "--state bf16",
            "says what weights and moments are kept in, as m, v and master of recipe " + recipe.name + " do");
}

Element CudaArm::moment_element(const FormatInfo* format) const {
    if (!format) return spec_.state == StateType::bf16 ? Element::bf16 : Element::f32;
    return is_fp8(*format) ? element_of(*format) : Element::bf16;
}

Rounded CudaArm::rounded(const Parameters& m, const Parameters& v, int ordinal) const {
    Rounded out;
    if (spec_.state == StateType::bf16) return out;
    const auto store = [](const Parameters& moment, Rounding rounding) {
        return MomentStore{moment.element(), rounding == Rounding::stochastic, moment.scale_inv()};
    };
    out.m = store(m, recipe_.round_m);
    out.v = store(v, recipe_.round_v);
    out.weights = recipe_.master == MasterWeights::bf16;
    out.weights_stochastic = recipe_.round_update == Rounding::stochastic;
    out.seed = spec_.seed;
    out.layer = ordinal;
    out.counts = moment_counts_.get();
    return out;
}

std::vector<float> CudaArm::as_kept(std::vector<float> weights) const {
    if (recipe_.master == MasterWeights::bf16)
        store(CastPlan{.format = &find_format("bf16"), .overflow = Overflow::nonsaturate}, weights, 0, 0);
    return weights;
}

void CudaArm::allocate_loss_scale() {
    if (loss_scale_.size() > 0) return;
    loss_scale_ = Buffer<LossScale>(1);
    loss_scale_results_ = Buffer<LossScaleResult>(kRecordSlots);
    host_loss_scales_ = std::make_unique<Pinned<LossScaleResult>>(kRecordSlots);
}

std::optional<LossScalerState> CudaArm::loss_scale_checkpoint() const {
    if (loss_scale_.size() == 0) return {};
    const LossScale now = loss_scale_.download().front();
    if (recipe_.loss_scale == 0 && now.skipped == 0) return {};
    return LossScalerState{now.scale, now.good, now.skipped};
}

void CudaArm::restore_loss_scale(const std::optional<LossScalerState>& saved) {
    const bool on = recipe_.loss_scale > 0;
    if (!on && (!saved || saved->skipped == 0)) return;
    allocate_loss_scale();
    LossScale now;
    if (on) now.scale = recipe_.loss_scale;
    if (saved) now.skipped = saved->skipped;
    if (saved && on) now.scale = saved->scale, now.good = saved->good;
    loss_scale_.upload(std::span(&now, 1));
}

void CudaArm::allocate_shared() {
    const auto casts = static_cast<std::size_t>(casts_);
    states_ = Buffer<ScaleState>(casts);
    states_now_ = states_.get();
    history_ = Buffer<float>(casts * kHistoryCapacity);
    controls_ = Buffer<ScaleControls>(controls_now_.size());
    arm_ = Buffer<ArmState>(kStepsPerLaunch);
    finite_ = Buffer<std::int32_t>(1);
    results_ = Buffer<StepResult>(kRecordSlots);
    tensor_results_ = Buffer<TensorResult>(kRecordSlots * casts);
    if (place_.several()) {
        rank_values_ = Buffer<float>(rank_values(casts));
        spare_state_ = Buffer<ScaleState>(1);
    }
    if (!has_narrow_moments(recipe_)) return;
    moment_counts_ = Buffer<MomentCounts>(1);
    moment_results_ = Buffer<MomentResult>(kRecordSlots);
    host_moments_ = std::make_unique<Pinned<MomentResult>>(kRecordSlots);
}

Slot CudaArm::make_slot(TensorId id, int rows, int cols, Along along, bool one_reader) const {
    Slot slot;
    slot.tensor = plan_.tensor(id).tensor;
    const Gemm reader = gemm_of(slot.tensor, along);
    const Recipe recipe = recipe_of_gemm(plan_.recipe_of(recipe_, id), reader);
    slot.shape = shape_of(rows, cols);
    slot.id = id;
    slot.state = id.index;
    slot.controls = controls_now_.size() > 1 ? static_cast<int>(reader) : 0;
    slot.first_along = along;
    slot.plan = cast_plan(recipe, slot.tensor);
    slot.source = recipe.scale;
    slot.engine = gemm_engine(engine_, recipe);
    slot.ordinal = plan_.ordinal(id);
    slot.place = plan_.place(id);
    slot.rotated = recipe.rht && slot.tensor != TensorClass::w;
    if (slot.engine == Engine::fp8) slot.scaling = scale_mode_of(slot.plan);
    const int second = second_states_[id.index];
    if (second < 0) return slot;
    slot.reader = reader;
    if (one_reader) return slot;
    slot.other = std::make_unique<Slot>(make_slot(id, rows, cols, Along::rows, true));
    slot.other->state = second;
    return slot;
}

CastPlan CudaArm::cast_of(TensorId id) const {
    const Slot* const slot = slots_[id.index];
    return slot ? slot->plan : cast_plan(plan_.recipe_of(recipe_, id), plan_.tensor(id).tensor);
}
int CudaArm::second_record(TensorId id) const {
    const Slot* const slot = slots_[id.index];
    return slot && slot->other ? slot->other->state : -1;
}
CastPlan CudaArm::second_cast_of(TensorId id) const { return slots_[id.index]->other->plan; }

// The model of core, from the seed alone: every arm and backend starts from the same weights.
void CudaArm::initialise() {
    const auto model = make_model(spec_);
    fp8lab::initialise(*model, spec_);
    ArmCheckpoint start;
    for (const Parameter<float>& p : model->parameters())
        start.parameters.push_back({{p.value.begin(), p.value.end()}, {}, {}});
    restore(start, 0);
}

void CudaArm::push_controls(cudaStream_t stream) {
    const auto n = controls_now_.size();
    const auto to = host_controls_.values().subspan(next_control_++ % kControlsAhead * n, n);
    std::ranges::copy(controls_now_, to.begin());
    check(cudaMemcpyAsync(controls_.get(), to.data(), to.size_bytes(), cudaMemcpyHostToDevice, stream),
          "scale controls");
}

void CudaArm::set_history(int length, cudaStream_t stream) {
    // What has left the window does not come back when it grows: the ring still holds it.
    const auto kept = [&](const ScaleControls& c) {
        return std::min(c.history, length) - 1;  // slot 0 is the next amax's
    };
    if (controls_now_.size() == 1)
        truncate_history(states_.get(), history_.get(), casts_, kept(controls_now_[0]), stream);
    else
        for_each_cast([&](const Slot& slot) {
            const auto at = static_cast<std::size_t>(slot.state);
            truncate_history(states_.get() + at, history_.get() + at * kHistoryCapacity, 1,
                             kept(controls_now_[static_cast<std::size_t>(slot.controls)]), stream);
        });
    recipe_.history = length;
    for (ScaleControls& c : controls_now_) c.history = length;
    push_controls(stream);
}
void CudaArm::set_margin(int margin, cudaStream_t stream) {
    recipe_.margin = margin;
    for (ScaleControls& c : controls_now_) c.margin = margin;
    for (Slot* slot : slots_)
        for (; slot; slot = slot->other.get()) slot->plan.margin = margin;
    push_controls(stream);
}
void CudaArm::set_algo(AmaxAlgo algo, cudaStream_t stream) {
    recipe_.algo = algo;
    for (ScaleControls& c : controls_now_) {
        c.most_recent = algo == AmaxAlgo::most_recent;
        c.ema_decay = algo == AmaxAlgo::ema ? recipe_.ema_decay : 0.0F;
    }
    push_controls(stream);
}

void CudaArm::read_back(int first, int count, cudaStream_t stream) {
    while (count > 0) {
        const int slot = first % kRecordSlots, run = std::min(count, kRecordSlots - slot);
        const auto at = static_cast<std::size_t>(slot), n = static_cast<std::size_t>(run),
                   t = static_cast<std::size_t>(casts_);
        check(cudaMemcpyAsync(host_results_.values().data() + at, results_.get() + at, n * sizeof(StepResult),
                              cudaMemcpyDeviceToHost, stream),
              "records");
        check(cudaMemcpyAsync(host_tensors_.values().data() + at * t, tensor_results_.get() + at * t,
                              n * t * sizeof(TensorResult), cudaMemcpyDeviceToHost, stream),
              "records");
        if (host_loss_scales_)
            check(cudaMemcpyAsync(host_loss_scales_->values().data() + at, loss_scale_results_.get() + at,
                                  n * sizeof(LossScaleResult), cudaMemcpyDeviceToHost, stream),
                  "records");
        if (host_moments_)
            check(cudaMemcpyAsync(host_moments_->values().data() + at, moment_results_.get() + at,
                                  n * sizeof(MomentResult), cudaMemcpyDeviceToHost, stream),
                  "records");
        first += run;
        count -= run;
    }
}

ArmRecord CudaArm::record(int step) const {
    const auto slot = static_cast<std::size_t>(step % kRecordSlots), t = static_cast<std::size_t>(casts_);
    const auto tensors = host_tensors_.values().subspan(slot * t, t);
    return {host_results_.values()[slot],
            {tensors.begin(), tensors.end()},
            recipe_.loss_scale > 0 ? host_loss_scales_->values()[slot] : LossScaleResult{},
            host_moments_ ? host_moments_->values()[slot] : MomentResult{}};
}

// The count is that of the first cast: a tensor that is rotated then has the padding of the batch (recipe_casts.h).
std::int64_t CudaArm::recorded_elements(TensorId id) const {
    const Slot& slot = *slots_[id.index];
    const bool turned = slot.rotated && slot.first_along == Along::rows;
    return static_cast<std::int64_t>(turned ? slot.shape.padded_rows : slot.shape.rows) * slot.shape.cols;
}

template <class Visit>
void CudaArm::for_updated(const std::vector<bool>& chosen, int micro, const Visit& visit) const {
    for (int which = 0; which < static_cast<int>(controls_now_.size()); ++which) {
        UpdatedTensors updated;
        updated.of = casts_;
        const auto update = [&] {
            visit(updated, controls_.get() + which);
            updated.count = 0;
        };
        for_each_cast([&](const Slot& slot) {
            if (slot.controls != which || !chosen[slot.id.index]) return;
            const int i = updated.count++;
            updated.tensor[i] = slot.state;
            updated.amaxes[i] = slot.scales.vectors(nullptr).amaxes;
            updated.amax_count[i] = static_cast<int>(slot.scales.amaxes());
            updated.in_parts[i] = micro > 0 && slot.tensor != TensorClass::w;
            if (updated.count == kMostTensorsAtOnce) update();
        });
        update();
    }
}

void CudaArm::keep_amaxes(const StepContext& step) {
    std::vector<bool> chosen;
    for (const OperandSpec& tensor : plan_.tensors) chosen.push_back(tensor.tensor != TensorClass::w);
    for_updated(chosen, step.micro, [&](const UpdatedTensors& updated, const ScaleControls* controls) {
        next_micro_batch(states_.get(), history_.get(), updated, controls, spec_.accumulate.amax,
                         tensor_results_.get(), step.arm, step.main);
    });
}

void CudaArm::record_tensors(const std::vector<bool>& chosen, const StepContext& step) {
    for_updated(chosen, step.micro, [&](const UpdatedTensors& updated, const ScaleControls* controls) {
        update_scales(states_.get(), history_.get(), updated, controls, tensor_results_.get(), step.arm,
                      step.side);
    });
    if (!step.with_stats) return;
    for_each_cast([&](const Slot& slot) {
        if (chosen[slot.id.index] && slot.stats.size() > 0)
            reduce_stats(slot.stats.get(), stats_blocks(slot.shape), tensor_results_.get(), slot.state,
                         casts_, step.arm, step.side);
    });
}

std::vector<ScaleCheckpoint> CudaArm::scale_checkpoints() const {
    const std::vector<ScaleState> states = states_.download();
    const std::vector<float> history = history_.download();
    std::vector<ScaleCheckpoint> out;
    for_each_cast([&](const Slot& slot) {
        const auto index = static_cast<std::size_t>(slot.state);
        const ScaleState& state = states[index];
        if (!state.delayed) return;
        // core's order: slot 0 is empty after the roll, the oldest amax comes next, the newest last.
        std::vector<float> amaxes{0.0F};
        for (int back = controls_now_[static_cast<std::size_t>(slot.controls)].history - 1; back >= 1; --back)
            amaxes.push_back(history[index * kHistoryCapacity +
                                     static_cast<std::size_t>(state.history_at - back + kHistoryCapacity) %
                                         kHistoryCapacity]);
        out.push_back({slot.id, state.scale, state.scale_age, std::move(amaxes), slot.reader});
    });
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
    std::vector<ScaleState> states(static_cast<std::size_t>(casts_));
    std::vector<float> history(history_.size(), 0.0F);
    for_each_cast([&](const Slot& slot) {
        const auto index = static_cast<std::size_t>(slot.state);
        ScaleState& state = states[index];
        state.max_finite = static_cast<float>(max_finite(*slot.plan.format));
        state.delayed = slot.source == ScaleSource::delayed && slot.plan.scaled;
        if (storage[slot.id.index] != 0) {
            state.scale = storage[slot.id.index];
            state.delayed = 0;
        }
        if (!state.delayed) return;
        const auto length =
            static_cast<std::size_t>(controls_now_[static_cast<std::size_t>(slot.controls)].history);
        for (const ScaleCheckpoint& one : saved) {
            if (!(one.id == slot.id) || (one.gemm && slot.reader && one.gemm != slot.reader)) continue;
            state.scale = one.scale;
            state.scale_age = one.scale_age;
            // Slot 1 is the oldest, the last the newest; on the card the newest is at history_at - 1.
            const std::size_t keep = std::min(one.history.size(), length) - 1;
            for (std::size_t back = 1; back <= keep; ++back)
                history[index * kHistoryCapacity + (kHistoryCapacity - back)] =
                    one.history[one.history.size() - back];
        }
    });
    states_.upload(states);
    history_.upload(history);
    std::vector<ArmState> steps;
    for (int i = 0; i < kStepsPerLaunch; ++i) steps.push_back({steps_done + i, 1});
    arm_.upload(steps);
    const std::int32_t finite = 1;
    finite_.upload(std::span(&finite, 1));
}

}  // namespace fp8lab::cuda
