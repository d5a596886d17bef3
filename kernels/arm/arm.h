// One arm of a comparison on the GPU: a model with one recipe, its optimiser state and all buffers of a step, in
// device memory. enqueue() puts whole steps on a stream and never synchronises, so that they can be captured in a
// graph. This class has what every model needs: scale states, casts, records; the models are kernels/mlp and
// kernels/transformer.
//
// Operands. BF16 and FP8 recipes cast the output of a GEMM directly to the operand of the next one. Emulated
// recipes (engine.h) keep values in FP32, quantise and dequantise them as core does (emulate.h), and multiply
// in FP32. All dimensions are padded with zeros to multiples of 16, which does not change any result. Operands that
// are rotated for wgrad (Recipe::rht) fill the padding of the batch: it is a part of the product.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/nn/trainer.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/preparation.h"
#include "kernels/arm/shared_weight.h"
#include "kernels/arm/slot.h"
#include "kernels/casts/emulate.h"
#include "kernels/gemm/engine.h"
#include "kernels/optimizer/parameters.h"
#include "kernels/ranks/place.h"

namespace fp8lab::cuda {

// The buffers of batches and learning rates; shared by the arms of a run. A model of rows has x and y, a model of
// tokens `tokens` (TokenRing::base).
struct StepRings {
    const float *x = nullptr, *y = nullptr;
    const std::int32_t* tokens = nullptr;
    int data_slots = 1;
    const StepInput* inputs = nullptr;
    int input_slots = 1;
    bool overlap = false;  // a launch has several steps, and they overlap
};

class Batches;

struct ArmRecord {  // of one step, as read back
    StepResult result;
    std::vector<TensorResult> tensors;  // in the order of the plan, then the second casts
    LossScaleResult loss_scale = {};    // scale 0: the recipe has none
    MomentResult moments = {};          // of moments in 16 or 8 bits; else not updated
};

class CudaArm {
  public:
    virtual ~CudaArm() = default;
    CudaArm(const CudaArm&) = delete;
    CudaArm& operator=(const CudaArm&) = delete;

    Engine engine() const { return engine_; }
    const std::string& emulated_because() const { return emulated_because_; }
    const Recipe& recipe() const { return recipe_; }
    const ModelPlan& plan() const { return plan_; }
    std::size_t memory_bytes() const { return memory_bytes_; }
    // Small batches: the weight gradient is a part of the optimiser's kernel (launch.h, WeightProduct).
    virtual bool multiplies_in_update() const { return false; }

    // Enqueues `steps` steps, at most kStepsPerLaunch. `mark` (may be empty) is called after every launch
    // with its part, for the breakdown of the time.
    enum class Part { gemm, cast, attention, norm, optimiser, bookkeeping, network, bucket };
    using Mark = std::function<void(Part)>;
    virtual void enqueue(cudaStream_t stream, int steps, bool with_stats, const Mark& mark = {}) = 0;
    // Called before and after each GEMM and each exchange with other ranks, with the stream that it is on. It may be empty.
    using Watch = std::function<void(Part, bool begins, cudaStream_t)>;
    void watch(Watch watch) { watch_ = std::move(watch); }

    // These settings take effect with the next launch on the stream; graphs stay valid.
    void set_history(int length, cudaStream_t stream);
    void set_margin(int margin, cudaStream_t stream);
    void set_algo(AmaxAlgo algo, cudaStream_t stream);

    // Copies the records of steps [first, first + count) to page-locked memory; valid once the stream has
    // done the copy.
    void read_back(int first, int count, cudaStream_t stream);
    ArmRecord record(int step) const;
    // Whether a step records the tensor: not what a library keeps to itself, like the probabilities of fused attention;
    // and one in BF16 that GEMMs read where it lies only in steps with statistics.
    bool records(TensorId id, bool with_stats) const {
        const Slot* slot = slots_[id.index];
        return slot && (with_stats || !slot->in_place());
    }
    // Whether what a view is made of is still there after the step: not where other tensors have taken its memory.
    virtual bool keeps(TensorId) const { return true; }
    // How the first cast of a tensor is made, and the place of the second one in ArmRecord::tensors; -1: there is none.
    CastPlan cast_of(TensorId id) const;
    int second_record(TensorId id) const;
    CastPlan second_cast_of(TensorId id) const;  // where there is one
    // How many elements the record of a tensor is about; of one that it records.
    std::int64_t recorded_elements(TensorId id) const;
    // How often a step casts it: weights once, the others in each micro-batch.
    int casts_in_step(TensorId id) const {
        return plan_.tensor(id).tensor == TensorClass::w ? 1 : spec_.accumulate.micro_batches;
    }

    // How many ranks cast the whole tensor; 1 where each casts its own part.
    int ranks_that_cast(TensorId id) const;

    // Histograms of the newest values, of a tensor that it records and keeps. Waits for the stream.
    TensorView view(TensorId id, int step, cudaStream_t stream);

    // Evaluates a model of tokens after `steps_done` steps: the held-out loss under the recipe's casts. Waits for the
    // stream.
    virtual Evaluation evaluate(Batches&, int /*steps_done*/, cudaStream_t) { return {}; }
    virtual void align_channel(int /*token*/) {}  // Model::align_channel(); waits for the device
    // The weights that are held since, for the arm of another recipe, before its restore(). Empty: none.
    virtual std::vector<float> held() const { return {}; }
    virtual void hold(const std::vector<float>& /*weights*/) {}

    // The first parameter that is not finite, weights before others: "w2".
    virtual std::string nonfinite_parameter() const = 0;
    virtual ArmCheckpoint checkpoint() const = 0;                               // waits for the device
    virtual void restore(const ArmCheckpoint& checkpoint, int steps_done) = 0;  // of the same shapes

  protected:
    CudaArm(const TrainSpec& spec, const Recipe& recipe, const EngineChoice& choice,
            const RankPlace& place = {});

    // Where the values of a tensor come from, ready for any target.
    using Launch = std::function<void(const CastTarget&, Pass)>;
    // The step that is running, or the one that is done: `after` finds what the update has changed meanwhile.
    enum class When { now, after };
    virtual Launch source_of(const Slot& slot, const ArmState* arm, cudaStream_t stream, When when) = 0;

    // What the launches of a step share. Both streams may be the same.
    struct StepContext {
        cudaStream_t main = nullptr, side = nullptr;
        ArmState* arm = nullptr;
        bool with_stats = false;
        const Mark* mark = nullptr;
        int micro = 0;      // the micro-batch of the step
        bool more = false;  // others follow
        void tell(Part part) const {
            if (mark && *mark) (*mark)(part);
        }
    };

    template <class Work>
    void watched(Part part, cudaStream_t stream, const Work& work) const {
        if (watch_) watch_(part, true, stream);
        work();
        if (watch_) watch_(part, false, stream);
    }

    void allocate_shared();  // states, records, the emulation's scratch memory
    // Without memory. `along`: K of the first GEMM that reads it. A split tensor has `other` for the second one, unless
    // `one_reader`.
    Slot make_slot(TensorId id, int rows, int cols, Along along = Along::cols, bool one_reader = false) const;
    // Fills the casts of a split tensor; take(ArmPart): its memory.
    template <class Take>
    void give_sides(Slot& slot, const void* in_place, const Take& take) const;
    void add_slot(Slot& slot) { slots_[slot.id.index] = &slot; }  // the slot stays where it is
    ScaleState* state(const Slot& slot) const { return states_now_ + slot.state; }
    const ScaleControls* controls(const Slot& slot) const { return controls_.get() + slot.controls; }
    // Calls visit(slot) for every cast: of each tensor, and the second one where it is split.
    template <class Visit>
    void for_each_cast(const Visit& visit) const {
        for (const Slot* slot : slots_) {
            if (!slot) continue;
            visit(*slot);
            if (slot->other) visit(*slot->other);
        }
    }
    Element operand_element(const Slot& slot) const;
    bool scaled_from_itself(const Slot& slot) const;
    bool cast_by_optimiser(const Slot& weights) const;
    const float* scale_inv(const Slot& slot) const;
    const float* factors(const Slot& slot, bool second) const;
    CastTarget target_of(const Slot& slot, bool with_stats) const;                  // engines bf16 and fp8
    void cast(Slot& slot, const StepContext& step, const Launch& launch);           // for both GEMMs
    void cast_side(Slot& slot, const StepContext& step, const Launch& launch);      // without `other`
    bool cast_together(Slot& slot, const StepContext& step, const Launch& launch);  // false: it does not fit
    void cast_kept(Slot& slot, const StepContext& step);  // of an emulated slot whose values are there
    void cast_emulated(Slot& slot, const StepContext& step);
    void round_emulated(void* product, Shape shape, OutType to, const StepContext& step);
    EmulatedCast emulated(const Slot& slot, Along along, int micro) const;
    // visit(updated, controls): of the tensors in `chosen`, some at a time.
    template <class Visit>
    void for_updated(const std::vector<bool>& chosen, int micro, const Visit& visit) const;
    // master=none: the weights themselves live on an E4M3 grid, rounded as the recipe says.
    void quantize_storage(const Slot& weights, void* master, Rounding rounding, const ArmState* arm,
                          cudaStream_t stream);
    // For the tensors in `chosen`, by index: called when their last cast of the step is enqueued.
    void record_tensors(const std::vector<bool>& chosen, const StepContext& step);
    // Between two micro-batches, for x and dy: their amaxes.
    void keep_amaxes(const StepContext& step);

    // ---- several ranks (ranks.cpp). Everything travels on StepContext::side, in the same order on all ranks.
    // What this rank owns of a weight; null: it has all of it.
    virtual const WeightBlock* block_of(TensorId) const { return nullptr; }
    WeightBlock empty_block(TensorId weight, Shape whole) const;  // without memory
    // take(ArmPart): its memory.
    template <class Take>
    WeightBlock make_block(TensorId weight, Shape whole, const Take& take) const;
    static bool casts_gathered(const Slot& weight,
                               const WeightBlock& block);  // each rank, from what it has gathered
    Element summed_in() const { return spec_.ranks.sum == "bf16" ? Element::bf16 : Element::f32; }
    CastTarget block_target(const SharedWeight& weight, bool with_stats) const;
    void send_block(const SharedWeight& weight, cudaStream_t stream);
    void share_largest(const std::vector<int>& index, const StepContext& step);
    void scale_blocks(std::span<const SharedWeight> weights, const StepContext& step);
    void gather(std::span<const SharedWeight> weights, const StepContext& step);  // sharded ones, together
    void share_amaxes(const std::vector<bool>& chosen, const StepContext& step);
    void share_gradients(std::span<const SharedWeight> weights, const StepContext& step);  // together
    void share_bucket(const Memory& bucket, const StepContext& step);
    void* own_part(void* values, std::size_t part, const RankSum& how) const;
    void gather_parts(void* values, std::size_t part, const RankSum& how);
    // Of all ranks, which call it together; and back.
    std::vector<float> whole(const Parameters& part, Shape shape, const WeightBlock* block,
                             cudaStream_t stream) const;
    std::vector<float> part_of(const std::vector<float>& whole, const WeightBlock* block) const;

    AdamW adamw() const { return {spec_.beta1, spec_.beta2, spec_.eps}; }
    // What a moment of weights that a GEMM reads is kept in: `format` is the recipe's.
    Element moment_element(const FormatInfo* format) const;
    // How the update of such weights rounds what it leaves; ordinal: Slot::ordinal.
    Rounded rounded(const Parameters& m, const Parameters& v, int ordinal) const;
    // Weights on their way to the device: BF16 numbers, where they are kept so.
    std::vector<float> as_kept(std::vector<float> weights) const;

    void initialise();  // restores the weights that the seed gives; when the buffers are there
    void push_controls(cudaStream_t stream);
    std::vector<ScaleCheckpoint> scale_checkpoints() const;
    // Scale states of a fresh or saved arm; `storage`: scales of weights that are stored in E4M3, by tensor (0: not).
    void restore_scales(const std::vector<ScaleCheckpoint>& saved, const std::vector<float>& storage,
                        int steps_done);
    float storage_scale(const ParameterCheckpoint& weights) const;
    // Buffers of a loss scale: of a recipe that has one, or of an arm that has skipped steps.
    void allocate_loss_scale();
    std::optional<LossScalerState> loss_scale_checkpoint() const;
    void restore_loss_scale(const std::optional<LossScalerState>& saved);

    const TrainSpec& spec_;
    Recipe recipe_;
    const ModelPlan plan_;
    const Engine engine_;
    const std::string emulated_because_;
    const Element kept_in_;  // weights
    const Element out_;      // of fprop and dgrad
    const RankPlace place_;
    const int tensors_;
    const int casts_;           // tensors, and the second casts of those that are split
    std::vector<Slot*> slots_;  // by tensor
    Buffer<ScaleState> states_;
    ScaleState* states_now_ = nullptr;  // what casts read and write: `states_`, or an evaluation's own
    Buffer<float> history_;
    Buffer<ScaleControls> controls_;
    Buffer<ArmState> arm_;
    Buffer<std::int32_t> finite_;
    Buffer<StepResult> results_;
    Buffer<TensorResult> tensor_results_;
    Buffer<LossScale> loss_scale_;
    Buffer<LossScaleResult> loss_scale_results_;
    Buffer<MomentCounts> moment_counts_;  // empty: moments are kept in FP32
    Buffer<MomentResult> moment_results_;
    int first_micro_ = 0;             // of the micro-batches of all ranks, this rank's first one
    Memory scratch_, rotated_;        // of emulated casts
    Buffer<float> rank_values_;       // amaxes that ranks share
    Buffer<ScaleState> spare_state_;  // of casts whose amax nobody needs
    std::size_t memory_bytes_ = 0;

  private:
    Watch watch_;
    Pinned<StepResult> host_results_;
    Pinned<TensorResult> host_tensors_;
    std::unique_ptr<Pinned<LossScaleResult>> host_loss_scales_;
    std::unique_ptr<Pinned<MomentResult>> host_moments_;
    std::vector<ScaleControls> controls_now_;
    std::vector<int> second_states_;  // by tensor: the place of its second cast's state; -1: it is not split
    Pinned<ScaleControls> host_controls_;
    std::size_t next_control_ = 0;
};

template <class Take>
WeightBlock CudaArm::make_block(TensorId weight, Shape whole, const Take& take) const {
    WeightBlock block = empty_block(weight, whole);
    block.gradient = take(ArmPart::block_gradient);
    block.sent = take(ArmPart::block_sent);
    block.gathered = take(ArmPart::gathered);
    // Padding that no cast reaches, and blocks of ranks that have no rows.
    for (const Memory* memory : {&block.sent, &block.gathered})
        if (memory->bytes() > 0) fill_zeros(memory->get(), memory->bytes());
    return block;
}

template <class Take>
void CudaArm::give_sides(Slot& slot, const void* in_place, const Take& take) const {
    for (Slot* const side : {&slot, slot.other.get()}) {
        const bool first = side == &slot;
        side->value = take(first ? ArmPart::value : ArmPart::second_value);
        side->values = side->value.get() ? side->value.get() : in_place;
        Memory operand = take(first ? ArmPart::first : ArmPart::second);
        side->cast = operand.bytes() > 0;
        side->has_second = !first && side->engine == Engine::fp8;  // codes by columns
        (side->has_second ? side->second : side->first) = std::move(operand);
        if (side->scaling != ScaleMode::tensor) side->scales = ScaleBuffers(side->scaling, side->shape);
        side->stats = Buffer<CastSums>(take(first ? ArmPart::stats : ArmPart::second_stats));
    }
}

}  // namespace fp8lab::cuda
