// The device memory of a training on a GPU, as the list of its allocations. The arms (kernels/mlp/arm.cpp,
// kernels/transformer/arm.cpp) allocate what is in the list, the trainer's refusal for lack of memory counts it,
// and L10 shows it.
//
// A test compares it with memory_bytes of every recorded arm of an MLP: within 2 % or two pages of 2 MiB
// (tests/unit/backend/memory_plan_test.cpp).
//
// A transformer's allocations that a step uses only for a while share one pool: two have the same bytes of it only where
// no phase of the step uses both. The phases are those of the step's main stream, in its order. What the optimiser reads
// beside the backward pass (the gradient of the weights) is used until the step ends. Models of up to 2^26
// step_elements(), which take less than about a gigabyte, share nothing: every tensor can be looked at after the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/nn/memory/gpu_sizes.h"
#include "core/nn/model_plan.h"
#include "core/nn/train_spec.h"
#include "core/scaling/quantizer.h"

namespace fp8lab::cuda {

enum class Engine {
    bf16,
    fp8,      // FP8 codes on the tensor cores, with one scale per tensor, row or block
    emulated  // quantised and dequantised in FP32 (kernels/casts/emulate.h), multiplied in FP32
};

ScaleMode scale_mode_of(const CastPlan& plan);
// What runs a GEMM whose operands `recipe` says, in an arm of `engine`: an arm of FP8 leaves some in BF16.
Engine gemm_engine(Engine arm, const Recipe& recipe);
// How many tensors of an arm have a cast of their own for each GEMM (core/scaling/side_cast.h).
std::size_t split_tensors(const ModelPlan& plan, const Recipe& recipe);
// What an owner sends of a weight with Shard::zero1: codes of the cast itself, BF16 that GEMMs or casts read, or, where a recipe
// is emulated, FP32 that holds such values.
enum class Sent { codes, bf16, fp32 };
Sent sent_of(const Ranks& ranks, const Recipe& recipe, Engine engine);
constexpr std::uint64_t bytes_of(Sent sent) { return sent == Sent::codes ? 1 : sent == Sent::bf16 ? 2 : 4; }
// Whether what is gathered is the operand of the GEMMs; otherwise each rank casts it.
bool gathers_operand(const TrainSpec& spec, const Recipe& recipe, Engine engine);
// How many sets of values that users change an arm has: one, or one for each GEMM (Recipe::inputs).
std::size_t scale_controls(const Recipe& recipe);
double step_flop(const TrainSpec& spec, int batch);  // of the products, padded; of attention half (causal)
double step_elements(const TrainSpec& spec);         // of weights, inputs and outputs of the GEMMs
int steps_per_launch(const TrainSpec& spec, int batch);  // more than 1 where steps are short
int data_slots(const TrainSpec& spec);                   // batches that the trainer keeps on the device
bool measures_every_step(const TrainSpec& spec);         // small networks take statistics in every step
bool shares_memory(const TrainSpec& spec);               // large models of tokens: see below
// Whether a transformer's gradients of q and k are rotated back where attention left them: in BF16, without padding.
bool rotates_back_in_place(Engine engine, const Recipe& of_qkv, int tokens);
// Small batches: the weight gradient is a part of the optimiser's kernel and is not stored.
bool multiplies_in_update(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch);
// Whether the weights that GEMMs read are kept in BF16 themselves: in an emulated arm BF16 numbers are in FP32.
bool keeps_bf16_weights(const TrainSpec& spec, const Recipe& recipe, Engine engine);
// What a cast of an emulated recipe needs beside its tensor: the amaxes of its blocks.
std::uint64_t emulation_scratch_bytes(const CastPlan& plan, int rows, int cols);

enum class ArmPart {
    // The parts of a tensor x, w or dy. `first` and `second` are the operands of its GEMMs: fp8: rows and columns;
    // bf16: rows; emulated: FP32 along the first and along the second GEMM. Of a split tensor `second` is that of a cast
    // of its own, bf16: rows, with the parts second_*.
    value,  // FP32, where it is emulated or before the cast to MX
    first,
    second,
    scale_inv,
    amaxes,
    stats,
    second_value,
    second_scale_inv,
    second_amaxes,
    second_stats,
    // The parts of a layer.
    output,          // of fprop
    input_gradient,  // of dgrad; none in the first layer
    master,          // the weights that the optimiser updates
    m,
    v,
    weight_gradient,
    bias,
    bias_before,
    bias_gradient,
    bias_m,
    bias_v,
    bias_partials,
    // The parts of the arm.
    next_scale_inv,
    second_next_scale_inv,
    states,
    history,
    controls,
    steps,
    finite,
    results,
    tensor_results,
    loss_partials,
    row_stats,
    row_correct,
    scratch,
    loss_scale,
    loss_scale_results,
    moment_counts,  // of moments in 16 or 8 bits
    moment_results,
    gradient_factor,  // multiplies gradients: of the limit of their norm, or 1 / micro-batches
    rotated,          // x or dy of wgrad, where the recipe has rht
    // The parts that only a transformer has. Gains are `bias` and what belongs to it.
    stream,  // the residual stream that a norm reads
    stream_gradient,
    inverse_rms,
    qkv,
    qkv_gradient,
    attended,
    attended_gradient,
    gates,
    gate_gradient,
    attention_kept,     // for the backward pass
    attention_scratch,  // tensor x: of the forward pass; dy: of the backward pass
    channel_scales,     // SwigluForm::smooth
    scaled_weights,
    product,           // of the linears whose result is added to the stream
    product_gradient,  // of the linears that read a norm
    logits,
    head_gradient,  // of a head that reads the embedding
    row_loss,
    channel_amax,
    square_partials,
    evaluation_states,
    evaluation_step,
    evaluation_results,
    cosines,
    sines,
    // The parts that only a rank of several has (core/nn/ranks/rank_options.h). Of Shard::zero1: the sum of the gradients of its
    // block, its block as it is sent, and the weights of all where a cast of each rank reads them.
    sent_gradient,  // in the format of the sum, where the gradient has another
    block_gradient,
    block_sent,
    gathered,
    bucket,       // FP32 gradients, to be added over the ranks together: of biases, gains and the embedding
    rank_values,  // of which an all-reduce leaves the largest of all ranks
    spare_state,  // of casts whose amax nobody needs
};

// The phases of a step that use an allocation, both included.
struct Life {
    static constexpr int kAlways = -1;
    int first = kAlways, last = kAlways;
    bool always() const { return first == kAlways; }
    bool overlaps(const Life& other) const {
        return always() || other.always() || (first <= other.last && other.first <= last);
    }
    bool operator==(const Life&) const = default;
};

struct Allocation {
    ArmPart part;
    // MLP: of the layer, 1-based; 0: of the arm. Tensor x of layer 0 is the network's input of the next step.
    // Transformer, 1-based too: of ModelPlan::tensors for what belongs to a tensor, of ModelPlan::parameters for what
    // belongs to a parameter, of the block, or of the norm: two a block, and the last.
    int layer = 0;
    TensorClass tensor = TensorClass::x;
    std::uint64_t bytes = 0;
    Life life = {};
    std::uint64_t offset = 0;  // in the pool, where `life` is not always
};

// What attention needs beside its operands, per block.
struct AttentionBytes {
    std::uint64_t kept = 0;                   // from the forward to the backward pass
    std::uint64_t forward = 0, backward = 0;  // scratch memory
    bool operator==(const AttentionBytes&) const = default;
};
// Attention with the probabilities in memory, FP32.
AttentionBytes materialised_attention(const TrainSpec& spec, int batch);
// As FlashAttention-2 (Dao, arXiv 2307.08691, algorithms 1 and 2): the log-sum-exp of every row is kept; the backward
// pass has dQ in FP32 and a sum for each row. What a library takes is asked when it is there.
AttentionBytes flash_attention(const TrainSpec& spec, int batch);

// by_size: as shares_memory() says. Nothing is shared where the tokens of a batch are no multiple of 16: padded rows that
// no kernel writes stay zeros.
enum class Sharing { by_size, none, all };

// All dimensions are padded to multiples of 16.
class ArmMemory {
  public:
    // `attention`: of a transformer whose engine is not emulated.
    ArmMemory(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch,
              const AttentionBytes& attention = {}, Sharing sharing = Sharing::by_size);
    std::span<const Allocation> allocations() const { return list_; }
    const Allocation* find(ArmPart part, int layer = 0, TensorClass tensor = TensorClass::x) const;
    // The bytes of an allocation; 0: it is not in the list.
    std::uint64_t bytes(ArmPart part, int layer = 0, TensorClass tensor = TensorClass::x) const;
    std::uint64_t pool_bytes() const { return pool_; }  // one allocation; 0: nothing is shared
    bool shares() const { return pool_ > 0; }
    std::uint64_t requested_bytes() const;  // the sum, the pool counted once
    // What cudaMalloc takes for them: above 1 MiB in pages of 2 MiB, the small ones packed into such pages.
    std::uint64_t device_bytes() const;

  private:
    std::vector<Allocation> list_;
    std::uint64_t pool_ = 0;
};

// The bytes of the trainer itself: batches, targets and learning rates, which all arms share.
std::uint64_t ring_bytes(const TrainSpec& spec, int batch);

}  // namespace fp8lab::cuda
