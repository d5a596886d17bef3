// The decoder-only transformer on the GPU (core/nn/models/transformer). Everything beside the GEMMs is
// kernels/layers/launch.h; attention is attention.h.
//
// In arms of BF16 and FP8 the residual stream, the outputs of GEMMs and the gradients between them are BF16, and so is
// what attention reads and writes; a GEMM of the plan that the recipe leaves in BF16 (the head, by default) reads them
// where they lie. Emulated arms keep all of it in FP32, rounded as core does.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/models/transformer/model.h"
#include "kernels/arm/arm.h"
#include "kernels/arm/arm_buffers.h"
#include "kernels/device/graph.h"
#include "kernels/gemm/gemm.h"
#include "kernels/layers/attention.h"
#include "kernels/layers/launch.h"
#include "kernels/transformer/weights.h"

namespace fp8lab::cuda {

// A linear layer without bias.
struct TransformerLinear {
    int in = 0, out = 0;
    Slot x, w, dy;
    MatrixParameter* weight = nullptr;
    const Parameters* dw = nullptr;  // where wgrad goes
    std::optional<GemmPlan> fprop, dgrad, wgrad;
    std::optional<Event> gathered;  // the weight, where each rank owns a part of it
};

struct TransformerNorm {
    VectorParameter* gain = nullptr;
    Buffer<float> inverse_rms;
    Memory stream, gradient;  // the residual stream that it reads, and the gradient there
};

// The operands of attention in an emulated arm.
struct AttentionCasts {
    Slot q, k, v, p, ds, dout;
};

struct TransformerBlock {
    TransformerNorm norm1, norm2;
    TransformerLinear qkv, out, gate_up, down;
    Memory qkv_out,
        dqkv;  // q and k are rotated in place; the gradients are rotated back in place in BF16 only
    Memory attended, dattended;  // what attention gives, and its gradient
    Memory gates, da;            // gate and up; the gradient of the gate's result
    Memory attention_kept, attention_forward, attention_backward;
    std::optional<AttentionCasts> casts;  // where its operands are cast
    Buffer<float> channel_scales;         // SwigluForm::smooth
    Buffer<float> scaled_down;            // the weights of down divided by them
};

class TransformerArm final : public CudaArm {
  public:
    // Throws usage_error: d, ffn or the width of a head is not a multiple of 16 (8: a head). Else as GemmPlan and
    // Memory.
    TransformerArm(const TrainSpec& spec, const Recipe& recipe, const EngineChoice& choice, const Lt& lt,
                   const StepRings& rings, cudaStream_t stream, const Preparation& preparation,
                   const RankPlace& place = {}, Sharing sharing = Sharing::by_size);
    ~TransformerArm() override;

    void enqueue(cudaStream_t stream, int steps, bool with_stats, const Mark& mark) override;
    // The blocks alone (Backend::time_blocks()), on random values that fill_block_inputs() leaves.
    void fill_block_inputs(cudaStream_t stream);
    void enqueue_blocks(cudaStream_t stream, const Mark& mark);
    std::string_view attention() const { return attention_ ? attention_->name() : "materialised, cast"; }
    const ArmMemory& memory() const { return memory_->list(); }
    // Weights and what their gradients come from have memory of their own; but not all of a weight that ranks share.
    bool keeps(TensorId id) const override {
        const bool weight = plan_.tensor(id).tensor == TensorClass::w;
        return weight ? !block_of(id) : !memory().shares();
    }
    Evaluation evaluate(Batches& batches, int steps_done, cudaStream_t stream) override;
    void align_channel(int token) override;
    std::vector<float> held() const override;
    void hold(const std::vector<float>& weights) override;
    std::string nonfinite_parameter() const override;
    // Of all ranks, which call it together.
    ArmCheckpoint checkpoint() const override;
    void restore(const ArmCheckpoint& checkpoint, int steps_done) override;

  private:
    using Block = TransformerBlock;
    using Linear = TransformerLinear;
    using Norm = TransformerNorm;

    void allocate();
    void allocate_arm();
    void allocate_block(Block& block, int number, const Memory& gradient);
    // x and dy: matrices of `rows_` rows that are these tensors as they lie; null: a source computes them.
    void add_linear(Linear& linear, const std::string& gemm, int out, int in, const Memory* x = nullptr,
                    const Memory* dy = nullptr);
    void add_attention(Block& block, const std::string& name);
    void add_operand(Slot& slot, TensorId id, int rows, int cols, const void* in_place);
    void add_norm(Norm& norm, int number, const std::string& gain);
    void set_sources(Block& block);
    void make_plans(cudaStream_t stream, const Preparation& preparation);
    void requantise_weights();
    // Holds the aligned channel: no gradient, and the weights as they were made.
    void hold_gradient(const Linear& linear, const StepContext& step);
    void hold_aligned(cudaStream_t stream);

    Shape shape(int cols) const { return shape_of(rows_, cols); }
    AttentionSizes attention_sizes() const;
    bool rounds() const { return recipe_.out == OutType::bf16; }

    void forward(const StepContext& step);
    // behind: the reader that the norm behind the last block is cast for; null: none.
    void forward_blocks(const StepContext& step, const Slot* behind);
    void attend(Block& block, const StepContext& step);
    void attend_with_casts(Block& block, const StepContext& step);
    void loss(const StepContext& step);
    void backward(const StepContext& step);
    void backward_blocks(const StepContext& step);
    void clear_padding(const MatrixParameter& parameter, cudaStream_t stream) const;
    void begin_step();
    void gradient_is_there(const Linear& linear);
    void attend_backward_beside_updates(Block& block, const StepContext& step);
    void attend_backward(Block& block, const StepContext& step);
    void attend_backward_with_casts(Block& block, const StepContext& step);
    void update(const StepContext& step);
    void update_embedding(const StepContext& step);
    void limit_norm(const StepContext& step);

    void multiply(Linear& linear, void* y, const StepContext& step);  // y = x w^T
    void multiply_back(Linear& linear, void* dx,
                       const StepContext& step);  // dx = dy w, then dw
    // reader: the tensor that the result is cast for; null: none.
    void add(const Norm& from, const void* y, Norm& to, const Slot* reader, const StepContext& step);
    // counters: what the kernel clears besides; null: nothing.
    void norm_back(Norm& norm, const void* dy, const Memory* gradient, const Slot* reader,
                   const StepContext& step, const Memory* counters = nullptr);
    std::optional<CastTarget> cast_with_norm(const Slot* reader, const StepContext& step) const;
    void smooth(Block& block, const StepContext& step);
    void update_beside(const StepContext& step);
    void update_waiting(unsigned most, unsigned blocks, const StepContext& step, cudaStream_t stream);
    std::vector<WeightUpdate> waiting_updates(const StepContext& step) const;
    std::pair<const void*, Element> gradient_of(const MatrixParameter& parameter) const;
    WeightUpdate update_of(const MatrixParameter& parameter, const Slot* slot, const StepContext& step) const;
    void quantise(const MatrixParameter& parameter, const Slot& slot, const StepContext& step,
                  cudaStream_t stream);
    void optimise_gains(const StepContext& step);
    void cast_now(Slot& slot, const StepContext& step);
    void cast_unless_done(Slot& slot, const StepContext& step);
    bool recast(const Slot& weights) const;  // at the beginning of each step
    static StepContext on_main(const StepContext& step);
    static StepContext on_side(const StepContext& step);
    void begin_beside(const StepContext& step);
    // ---- several ranks
    const WeightBlock* block_of(TensorId id) const override { return blocks_of_[id.index]; }
    static SharedWeight shared(const MatrixParameter& parameter, const Slot* slot);
    std::vector<Linear*> linears();                  // in the order of the forward pass
    bool casts_weights(const Linear& linear) const;  // before their GEMMs
    void gather_weights(const StepContext& step);
    void share_waiting(const StepContext& step);
    void share_partials(const StepContext& step);
    void update_alone(const Linear& linear, const StepContext& step);
    void update_with_ranks(const StepContext& step);
    void record_or_share(const std::vector<bool>& chosen, const StepContext& step);
    Event& next_event() { return events_[events_used_++ % events_.size()]; }
    void join(const StepContext& step);
    Launch source_of(const Slot& slot, const ArmState* arm, cudaStream_t stream, When when) override;
    Launch norm_source(const Norm& norm, Shape shape, cudaStream_t stream) const;
    TokenRing tokens(const ArmState* arm) const;
    TokenLossSource loss_source(const ArmState* arm) const;
    GateSource gate_source(const Block& block) const;
    Rotary rotary() const;
    bool clips() const { return spec_.clip > 0; }

    const TransformerShape shape_;
    const int rows_;  // tokens of a batch
    const Lt& lt_;
    StepRings rings_;
    std::unique_ptr<Attention> attention_;  // of all blocks; none where its operands are cast
    std::optional<ArmBuffers> memory_;
    std::vector<bool> read_forward_, gradients_;  // tensors of class x and w; of class dy
    // The launch that gives a tensor's values.
    using Source = std::function<Launch(const ArmState*, cudaStream_t)>;
    std::vector<Source> sources_;
    std::vector<const WeightBlock*> blocks_of_;  // by tensor
    WeightList weights_;
    MatrixParameter* embedding_ = nullptr;
    Parameters head_gradient_;  // of a head that reads the embedding
    std::vector<std::unique_ptr<Block>> blocks_;
    Norm norm_;
    Linear head_;
    Memory y_, dx_;  // outputs of GEMMs that the next kernel takes
    Memory logits_;
    Buffer<float> cos_, sin_;
    Buffer<float2> row_stats_;
    Buffer<double> row_loss_;
    Buffer<std::uint8_t> row_correct_;
    Buffer<std::uint32_t> channel_amax_;
    Buffer<double> square_partials_;
    Buffer<float> clip_factor_;
    // The states of an evaluation, whose casts leave the scales of the training alone.
    Buffer<ScaleState> evaluation_states_;
    Buffer<ArmState> evaluation_arm_;
    Buffer<StepResult> evaluation_results_;
    bool evaluates_ = false;
    Buffer<float> held_;  // of the aligned channel: row, then column; empty: none is aligned
    bool aligned() const { return held_.size() > 0; }
    // Linear layers whose gradients are there, and how many tiles of their weights are updated.
    struct Waiting {
        std::vector<const Linear*> linears;
        unsigned tiles_done = 0;
    } waiting_;
    std::vector<const Linear*> shared_;    // of several ranks, whose updates wait for the norm
    Stream side_{Stream::Priority::high};  // of the updates, beside the backward pass
    bool side_used_ = false;               // in this step
    std::vector<Event> events_;
    std::size_t events_used_ = 0;
};

// What attention in BF16 needs on this GPU: of cuDNN where it takes the shape. Slow: cuDNN makes its plans.
AttentionBytes attention_bytes(const TrainSpec& spec, int batch);

}  // namespace fp8lab::cuda
