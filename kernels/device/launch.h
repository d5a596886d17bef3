// The element-wise kernels of a training step, as functions that enqueue one launch on a stream. All pointers
// are device memory, all matrices row-major with padded dimensions (multiples of 16); nothing here allocates,
// synchronises or reads back. Every kernel is one pass of one mechanism: a *source* yields the FP32 value of
// element (r, c) (a copy, the activation of a GEMM's output, a loss gradient, an optimiser update ...), and
// the value is cast and stored in up to two layouts while its amax and statistics are computed.
//
// Rounding is that of core (numerics.md 3.3): multiply by the scale in FP32, then one conversion (nearest
// even, saturating); no fused multiply-adds except where a function says so. Tests compare every launcher
// with its reference in core, byte for byte.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "core/nn/memory/gpu_sizes.h"
#include "core/stats/lost_mass.h"

namespace fp8lab {
enum class AmaxOf;  // core/nn/train_spec.h
}

namespace fp8lab::cuda {

enum class Element : int { f32, bf16, e4m3, e5m2 };
constexpr int bytes_of(Element e) { return e == Element::f32 ? 4 : e == Element::bf16 ? 2 : 1; }

constexpr int kMaxLayers = 16;  // of a network

// The scaling state of one tensor. An arm has one array of these, x1 w1 dy1 x2 w2 dy2 ..., which the host
// copies back. Casts read `scale` and write scale_used and scale_inv (unless CastTarget has another place for
// it), so that a GEMM finds the scale_inv of its operand even when `scale` is already that of the next step.
struct alignas(16) ScaleState {   // cuBLASLt wants the address of scale_inv to be a multiple of 16
    float scale_inv = 1;          // 1 / scale_used, rounded to FP32
    float scale = 1;              // the next cast multiplies by it
    float scale_used = 1;         // of the last cast
    std::uint32_t amax_bits = 0;  // bits of max |x| since the last update_scales(); a NaN is larger than Inf
    float max_finite = 448;       // of the format
    std::int32_t delayed = 0;     // 1: update_scales() computes a new scale
    std::int32_t scale_age = 0;   // updates since the scale was computed
    std::int32_t history_at = 0;  // the slot of history[] that the next amax goes to
    unsigned long long underflow = 0,
                       overflow = 0;  // elements, see CastStats; since the last update_scales()
};

// The values that users change during a training. In device memory, so that a new value needs no new graph.
struct ScaleControls {
    std::int32_t history = 16, most_recent = 0, margin = 0, interval = 1, pow2 = 0;
    float ema_decay = 0;  // above 0: the scale is that of ema_of() the history
};

// The input of a step from the host, in a ring in device memory: entry step % slots. The factors of AdamW are
// those of core/nn/optimizer.h: rate = lr / (1 - beta1^t), spread = 1 / sqrt(1 - beta2^t), decay = lr *
// weight_decay.
struct StepInput {
    float lr = 0, rate = 0, spread = 0, decay = 0;
    float poison = 1;  // multiplies x of the batch
};

// The loss scale of an arm, in device memory; loss_scaler.h has the rules.
struct LossScale {
    float scale = 1;   // multiplies dy of the loss
    float factor = 1;  // multiplies the gradients of this step: 1 / (scale * micro-batches)
    std::int32_t good = 0, skipped = 0;
    std::int32_t finite = 1, skips = 0;  // whether this step's gradients are; whether it is skipped
    StepInput input;  // of this step, its factors of AdamW without the steps that were skipped
};
struct LossScaleResult {  // of a step, in a ring of kRecordSlots
    float scale = 0;      // that it used
    std::int32_t skipped = 0;
};

// One for every step of a launch, in device memory: parts of two steps may run at once.
struct ArmState {
    std::int32_t step = 0;
    std::int32_t alive =
        1;  // 0 from the first step whose loss or updated weights are not finite; then nothing is updated
};

// The results of a step for the host, in a ring of kRecordSlots: entry step % kRecordSlots, followed by
// its tensors.
struct StepResult {
    double loss = 0, correct = 0;  // correct: rows whose largest output is the target's
    std::int32_t step = -1, alive = 1;
};
struct CastSums {                  // over finite elements, as CastStats has them
    double signal = 0, noise = 0;  // of x^2, of (x - q)^2
    LostMass mass;
    double fourth = 0;  // of x^4
};
struct TensorResult {
    float scale = 1;
    std::uint32_t amax_bits = 0;
    unsigned long long underflow = 0, overflow = 0;
    CastSums sums;  // only in steps with statistics, else NaN
};

// A matrix whose memory is (padded_rows, padded_cols), of which (rows, cols) are real. Casts write zeros to
// the padding.
struct Shape {
    int rows = 0, cols = 0, padded_rows = 0, padded_cols = 0;
};

// The index of the scale of element i of payload row r.
constexpr int scale_inv_at(ScaleMode scaling, int m, int k, int r, int i) {
    return scaling == ScaleMode::row        ? r
           : scaling == ScaleMode::block128 ? i / kBlock * m + r
                                            : r / kBlock * ((blocks_of(k) + 3) / 4 * 4) + i / kBlock;
}
// block32: the index of its byte.
constexpr int mx_scale_at(int k, int r, int i) {
    return (r / 128 * blocks_of(k) + i / 128) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + i % 128 / kMxBlock;
}
struct ScaleVectors {
    float *rows = nullptr, *columns = nullptr;  // of CastTarget::rows and ::columns
    // ScaleMode::row only, padded rows first, padded columns behind them: bits of the amaxes since they were
    // cleared (update_scales()). Pass::amax_only gathers them, Pass::cast computes the scales from them. For a
    // tensor whose blocks of threads fit on the GPU at once, the first does nothing and the second does both;
    // its blocks count themselves in `arrived`.
    std::uint32_t *amaxes = nullptr, *arrived = nullptr;
    const ScaleControls* controls = nullptr;  // margin and pow2
};

// The outputs of a cast. Null pointers are skipped.
struct CastTarget {
    Element element = Element::bf16;
    void* rows = nullptr;     // (padded_rows, padded_cols)
    void* columns = nullptr;  // the transpose, (padded_cols, padded_rows); 1-byte elements only
    // The values in BF16 besides, (padded_rows, padded_cols): of a cast to FP8 with one scale and without statistics, from a
    // source of a step's x, w or dy. What is read for both is read once.
    void* beside = nullptr;
    ScaleState* state = nullptr;  // null: no scale, and no amax either
    float* scale_inv = nullptr;   // one scale: receives its inverse, 16-byte aligned; null: in the state
    bool scaled = false;  // false: the cast does not multiply (bf16, f32, unscaled); amax is still taken
    CastSums* stats_partials = nullptr;  // (stats_blocks(shape)); null: no statistics, no counts
    // Beyond one scale: FP8 elements and a state, whose scale is left at 1. Statistics are those of `rows`,
    // or of `columns` where rows is null.
    ScaleMode scaling = ScaleMode::tensor;
    ScaleVectors vectors;
};
constexpr int tiles_down(Shape s) { return tiles_down(s.padded_rows); }
constexpr int tiles_across(Shape s) { return tiles_across(s.padded_cols); }
constexpr int stats_blocks(Shape s) { return tiles_down(s) * tiles_across(s); }

// amax_only() variants: the same source, nothing stored, amax into target.state (current scaling's first
// pass).
enum class Pass { cast, amax_only };

// A ring of batches in device memory: entry (step % slots) * stride elements behind base; slots 1 for a task
// whose data never change.
struct BatchRing {
    const float* base = nullptr;
    long long stride = 0;
    int slots = 1;
    const StepInput* inputs = nullptr;  // ring of input_slots, for the poison factor; null: factor 1
    int input_slots = 1;
    const ArmState* arm = nullptr;
};

// ---- x of the first layer: FP32 batch (rows, cols) unpadded in memory -> target. Bytes per element: 4 read
// + payload.
void cast_batch(BatchRing x, Shape shape, const CastTarget& target, Pass pass, cudaStream_t stream);

// ---- any matrix in memory, f32 or bf16, (padded_rows, padded_cols).
void cast_matrix(const void* in, Element in_element, Shape shape, const CastTarget& target, Pass pass,
                 cudaStream_t stream);

// The same to MXFP8, without its amax pass: target.scaling is ScaleMode::block32, which no other source has. Rule
// `up` of core/scaling/recipe.h, without a margin. Beside a NaN the whole block is NaN, its padding too.
void cast_matrix_to_mx(const void* in, Element in_element, Shape shape, const CastTarget& target,
                       cudaStream_t stream);

// ---- x of a later layer: f(h + bias), h the output of fprop in bf16 or f32, bias (padded_cols) FP32. GELU
// in its tanh form with the hardware's tanh (tanh.approx.f32) when `fast` is set, else tanhf.
enum class ActivationKind : int { tanh, gelu, relu };
struct ActivationSource {
    const void* h = nullptr;
    Element h_element = Element::bf16;
    const float* bias = nullptr;
    ActivationKind kind = ActivationKind::gelu;
    bool fast = true;
};
void cast_activation(const ActivationSource& source, Shape shape, const CastTarget& target, Pass pass,
                     cudaStream_t stream);

// ---- dy of the last layer. y = h + bias; mse: dy = 2 (y - t) / n, cross entropy: dy = (softmax(y) - t) /
// rows, as core/nn/loss.h. `row_stats`: for cross entropy, (rows) of {max, sum of exp(y - max)} from
// softmax_rows(). Loss terms of mse go to loss_partials (stats_blocks(shape)), sums of FP32 terms in FP64 in
// a fixed order; column sums of dy over the tile's rows to bias_partials (tiles_down(shape), padded_cols).
struct LossSource {
    const void* h = nullptr;
    Element h_element = Element::bf16;
    const float* bias = nullptr;
    BatchRing target;
    const float2* row_stats = nullptr;  // null: mse
    double* loss_partials = nullptr;    // mse only
    float* bias_partials = nullptr;
    const LossScale* scaler = nullptr;  // its scale multiplies dy; null: 1
};
void cast_loss_gradient(const LossSource& source, Shape shape, const CastTarget& target, Pass pass,
                        cudaStream_t stream);
// One warp a row: {max, sum exp}, the row's loss log(sum) + max - y[label] (0 elsewhere) and whether its
// largest output is the target's.
void softmax_rows(const LossSource& source, Shape shape, float2* row_stats, double* row_loss,
                  std::uint8_t* row_correct, cudaStream_t stream);

// ---- dy of an earlier layer: da * f'(h + bias), da the output of dgrad.
struct SlopeSource {
    const void* da = nullptr;
    const void* h = nullptr;
    Element element = Element::bf16;  // of both
    const float* bias = nullptr;
    ActivationKind kind = ActivationKind::gelu;
    bool fast = true;
    float* bias_partials = nullptr;
};
void cast_slope(const SlopeSource& source, Shape shape, const CastTarget& target, Pass pass,
                cudaStream_t stream);

// AdamW's constants. The kernels round them to FP32 as core/nn/optimizer.cpp does, 1 - beta computed in FP64 first: do not
// round them before.
struct AdamW {
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

// ---- the optimiser, element by element: w, m and v are updated in place and the new w is cast. arm->alive
// == 0 leaves everything as it is. A non-finite new weight clears `finite`. Bytes per element: 24 (w m v) + 4
// or 2 (g) + payload. In BF16 the payload, in BF16 too, is the new w, which is stored nowhere else: 2 + 8 (m
// v) + 2 (g) + 2. Weights in BF16 have no counterpart in core: multiply-adds are fused, the root and the inverse are the
// hardware's approximations, and results are within a rounding of BF16 of core's.
// What a moment is kept in. FP32 and BF16: (padded_rows, padded_cols). E4M3 and E5M2: the codes of the flattened (rows, cols),
// up to a multiple of 128, and for each 128 of them scale_inv; core/scaling/moment_storage.h has the rounding.
struct MomentStore {
    Element element = Element::f32;
    bool stochastic = false;
    float* scale_inv = nullptr;
};
struct MomentCounts {  // of a step, until finish_step(): core/nn/trainer.h, StepRecord
    unsigned long long zeros = 0, large = 0;
};
struct MomentResult {  // in a ring of kRecordSlots
    MomentCounts counts;
    std::int32_t updated = 0;  // 0: the step was skipped, or the arm has stopped
};
// Of updates that round what they leave: a moment to 16 or 8 bits, or the weights to BF16.
struct Rounded {
    MomentStore m = {}, v = {};
    bool weights = false, weights_stochastic = false;  // BF16 numbers, whatever they are stored in
    std::uint64_t seed = 0;
    int layer = 0;  // of the streams Draw::update (core/nn/streams.h), details 1: m, 2: v, 3: weights
    MomentCounts* counts = nullptr;  // null: not counted
    bool any() const { return weights || m.element != Element::f32 || v.element != Element::f32; }
};
struct UpdateSource {
    void *w = nullptr, *m = nullptr, *v = nullptr;  // of `element`; m and v null: SGD
    const void* g = nullptr;
    Element element = Element::f32, g_element = Element::f32;  // or bf16; both, where weights are BF16
    const StepInput* inputs = nullptr;
    int input_slots = 1;
    const ArmState* arm = nullptr;
    std::int32_t* finite = nullptr;  // cleared when a new weight is not finite
    AdamW adamw;
    const float* gradient_factor = nullptr;  // multiplies the gradient, in FP32; null: 1
    // With any(): AdamW; the arithmetic is core's to the bit also where `element` is BF16. Bytes per element: 8 or 4 (w), 4 (g),
    // for each moment 4 in BF16 and 2.06 in 8 bits, and the payload. Moments in 8 bits of a matrix whose columns are no multiple
    // of 128 take a kernel of their own, and a cast.
    Rounded rounded = {};
};
void update_weights(const UpdateSource& source, Shape shape, const CastTarget& target, cudaStream_t stream);
// An update of several matrices at once, or of a part: `tiles` of all their tiles, in the order of the list.
struct WeightUpdate {
    UpdateSource source;
    Shape shape;
    CastTarget target;
};
struct TileRange {
    unsigned first = 0, last = ~0U;
};
unsigned tiles_of(std::span<const WeightUpdate> updates);
// blocks: the most blocks of threads, each with many tiles, beside a kernel of another stream; 0: one block per tile.
void update_weights(std::span<const WeightUpdate> updates, TileRange tiles, unsigned blocks,
                    cudaStream_t stream);
// The same with the gradient dW = dy^T x multiplied on the way, by the tensor cores, and never stored
// (source.g is not read): for batches so small that moving dW would cost more than computing it. BF16: dy
// (batch, out) and x (batch, in) as they lie. FP8: dy E4M3 or E5M2 and x E4M3 by columns, (out, batch) and
// (in, batch), and the factors of both: one each, or (by_column) one per column, (out) and (in), which is what
// one scale per row is, and 1x128 scales of at most 128 rows. batch: padded; every multiple of 16 works, up to
// kMostFusedBatch it pays.
struct WeightProduct {
    const void *dy = nullptr, *x = nullptr;
    Element dy_element = Element::bf16;
    int batch = 0;
    const float *dy_scale_inv = nullptr, *x_scale_inv = nullptr;
    bool by_column = false;
};
void update_weights(const UpdateSource& source, const WeightProduct& product, Shape shape,
                    const CastTarget& target, cudaStream_t stream);
// Biases of all layers in one launch: the gradient is the sum of bias_partials over tiles, in kBiasSums sums of every
// kBiasSums-th tile that are then added up in order; `gradient_factor` multiplies it as it is used, not in db.
constexpr int kBiasSums = 8;
constexpr int kMostBiases = 56;  // vectors of a launch: what 4 KiB of parameters hold
struct BiasUpdate {
    float *b = nullptr, *m = nullptr, *v = nullptr;
    float *db = nullptr, *before = nullptr;  // written: the summed gradient; b as this step used it
    const float* partials = nullptr;
    int tiles = 0, count = 0, padded = 0;
};
struct BiasUpdates {
    BiasUpdate layer[kMostBiases];
    int layers = 0;
};
void update_biases(const BiasUpdates& updates, const StepInput* inputs, int input_slots, const ArmState* arm,
                   std::int32_t* finite, cudaStream_t stream, const AdamW& adamw = {},
                   const float* gradient_factor = nullptr);

// ---- scaling
// Current scaling: scale = max_finite * 2^-margin / amax from amax_bits (1 where amax is 0 or not finite);
// pow2 rounds down.
void scale_from_amax(ScaleState* state, const ScaleControls* controls, cudaStream_t stream);
// When a tensor was cast for the last time in a step: its record, then for delayed ones history and new
// scale (Transformer Engine's order, core/scaling/delayed.h); amaxes and counts are cleared. history:
// (tensors of the arm, kHistoryCapacity).
constexpr int kMostTensorsAtOnce = 192;
struct UpdatedTensors {
    int of = 0;     // tensors of the arm
    int count = 0;  // tensors that are updated: the first entries of each array
    int tensor[kMostTensorsAtOnce] = {};
    // ScaleVectors::amaxes and how many, where a tensor has one scale per row; else null and 0.
    std::uint32_t* amaxes[kMostTensorsAtOnce] = {};
    int amax_count[kMostTensorsAtOnce] = {};
    // Whether the record has the amax of earlier micro-batches of the step (next_micro_batch()).
    std::uint8_t in_parts[kMostTensorsAtOnce] = {};
};
void update_scales(ScaleState* states, float* history, const UpdatedTensors& updated,
                   const ScaleControls* controls, TensorResult* records, const ArmState* arm,
                   cudaStream_t stream);
// Between two micro-batches of a step, for tensors that each of them casts: the amax goes into the record, and to where
// `amax` says of delayed scales (core/nn/train_spec.h); those of other scales are cleared.
void next_micro_batch(ScaleState* states, float* history, const UpdatedTensors& updated,
                      const ScaleControls* controls, AmaxOf amax, TensorResult* records, const ArmState* arm,
                      cudaStream_t stream);
// A history of another length keeps the newest amaxes that both lengths hold, min(old, new) - 1: entries
// older than the newest `keep` become 0.
void truncate_history(const ScaleState* states, float* history, int tensors, int keep, cudaStream_t stream);
// Sums stats_partials of one tensor, in order, into its record of this step.
void reduce_stats(const CastSums* partials, int count, TensorResult* records, int tensor, int tensors,
                  const ArmState* arm, cudaStream_t stream);

// ---- the loss of the step: sums partials in order (FP64), writes the record, clears arm->alive if it is not
// finite. Runs before the optimiser. `elements`: what the sum is divided by. correct may be null.
void finish_loss(const double* partials, int count, double elements, const std::uint8_t* row_correct,
                 int rows, StepResult* records, ArmState* arm, cudaStream_t stream);
// The end of the step: arm->alive &= finite, which goes on to the next step's state: arm[1], or, after the
// last step of a launch, `all` of the launch (kStepsPerLaunch), which then are of the steps that follow. counts: go to the record
// and become 0.
void finish_step(const std::int32_t* finite, StepResult* records, ArmState* arm, ArmState* all,
                 cudaStream_t stream, const LossScale* scaler = nullptr, MomentCounts* counts = nullptr,
                 MomentResult* moment_records = nullptr);

// ---- loss scaling (core/trainer/loss_scaler.h), when all gradients of a step are there and before they are used.
// A gradient that is not finite clears scaler->finite. count: elements, a multiple of 8.
void find_nonfinite(const void* gradient, Element element, long long count, LossScale* scaler,
                    cudaStream_t stream);
void find_nonfinite_biases(const BiasUpdates& updates, LossScale* scaler, cudaStream_t stream);
// Then halves or doubles the scale, and sets what the updates of this step read: `factor` and `input`. A step with a gradient that
// is not finite is skipped: arm->alive is 0 until finish_step(). A step that is not alive changes no scale.
struct LossScaleRule {
    int growth_interval = 0, micro_batches = 1;
    double beta1 = 0.9, beta2 = 0.999;
};
void update_loss_scale(LossScale* scaler, const LossScaleRule& rule, const StepInput* inputs, int input_slots,
                       LossScaleResult* records, ArmState* arm, cudaStream_t stream);

// ---- emulation: quantise-dequantise in FP32 for any format of core/formats, granularity and rounding
// (emulate.h), and measurements over matrices in memory.
void amax(const void* in, Element element, long long count, std::uint32_t* amax_bits, cudaStream_t stream);

}  // namespace fp8lab::cuda
