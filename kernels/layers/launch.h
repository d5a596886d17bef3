// The kernels of a transformer's step beside its GEMMs: norms, rotary embedding, gate, attention, token loss,
// embedding. As in kernels/device/launch.h each function enqueues launches on a stream and neither allocates nor
// waits, pointers are device memory, matrices are row-major with padded dimensions, and the reference is the operation
// of the same name in core/nn/ops.
//
// Activations are BF16, or FP32 in emulated recipes: `element`, f32 or bf16, of every matrix of a call but the
// parameters, which are FP32. Exponentials are core's, bit for bit, in FP32, and the hardware's in BF16. `round`: results are rounded to BF16 before anything else is done with them
// (Recipe::out); in BF16 matrices they are anyway. Widths (d, ffn, heads * head_size) are multiples of 16, so that
// only rows and the vocabulary have padding. Padded rows of results are zeros where the result is an operand of a GEMM
// (casts write zeros) and untouched elsewhere; they are never read into a sum.
#pragma once

#include "kernels/device/launch.h"

namespace fp8lab::cuda {

// ---- the batch
// A ring of batches in device memory: entry (step % slots) * stride behind base, in this order, all int32:
// tokens (rows), targets (rows; -1: not scored), order (rows: the rows sorted by their token, stable), starts
// (vocabulary + 1: where in `order` each token's rows begin), scored (1: how many targets count, of all `parts` together).
struct TokenRing {
    const std::int32_t* base = nullptr;
    int rows = 0, vocabulary = 0, slots = 1;
    const StepInput* inputs = nullptr;  // its poison multiplies what the embedding gives
    int input_slots = 1;
    const ArmState* arm = nullptr;
    int parts =
        1;  // this is one of so many batches, of which a mean is taken: its loss and gradients count `parts` times
    constexpr long long stride() const { return 3LL * rows + vocabulary + 2; }
};

// out[r] = round(table[token r] * poison), table (vocabulary, shape.padded_cols). out (rows, d).
void gather(const TokenRing& batch, const float* table, Shape shape, Element element, bool round, void* out,
            cudaStream_t stream);
// dtable[v] = the sum of poison * the rows of dx with token v, in their order, + add[v] (add may be null; same layout;
// FP32). Tokens that do not occur get add[v] or 0. Deterministic: no atomics. dx (rows, d), `shape` its.
void gather_backward(const TokenRing& batch, const void* dx, Element element, Shape shape, const float* add,
                     float* dtable, cudaStream_t stream);

// ---- residual stream and norms: x (rows, d), d at most kWidestNorm but in cast_norm().
constexpr int kWidestNorm = 16384;
// Whether add_and_measure() and norm_backward() can also cast their result, without statistics: from BF16 to FP8 with one
// scale, rows of kWidestCastNorm columns at most; and add_and_measure() from BF16 to BF16, rows of any width. The first casts
// to E4M3 only, the second to E4M3 or E5M2. The codes are the same as those of a separate cast. Another cast throws
// Error{backend}.
bool casts_with_norm(Element from, Element to, Shape shape);

// sum = round(x + y), and its inverse_rms (rows), 1 / sqrt(mean sum^2 + kRmsEpsilon). y null: of x alone, and `sum` is
// not written. `cast`: what cast_norm() gives, to E4M3 or BF16. One pass: 2 + 2 read, 2 written bytes an element in BF16,
// and 2 of a cast: both ways, or by rows in BF16.
struct NormForward {
    const void *x = nullptr, *y = nullptr;
    Element element = Element::bf16;
    bool round = true;
    void* sum = nullptr;
    float* inverse_rms = nullptr;
    const float* gain = nullptr;  // (d); of the cast
};
void add_and_measure(const NormForward& how, Shape shape, cudaStream_t stream,
                     const CastTarget* cast = nullptr);

// A source of casts (launch.h): round(x inverse_rms gain). Bytes read: 2. Every source of this file casts BF16 to
// whatever tensor cores take, and copies FP32, of emulated recipes, to FP32 only: casts of their own follow.
struct NormSource {
    const void* x = nullptr;
    Element element = Element::bf16;
    const float *inverse_rms = nullptr, *gain = nullptr;  // (rows), (d)
    bool round = true;
};
void cast_norm(const NormSource& source, Shape shape, const CastTarget& target, Pass pass,
               cudaStream_t stream);

// out = round(dstream + dx), dx of dy (rows, d) through the norm. out may be dstream.
// gain_partials (norm_partials(shape), padded d): sums over strips of rows of dy * normalised, each in the order of the
// rows; update_biases() and sum_strips() add them up. `cast`: of `out`. Bytes: 2 dy + 2 x + 2 + 2 dstream, and 2 of a
// cast both ways.
struct NormBackward {
    const void *dy = nullptr, *x = nullptr;
    Element element = Element::bf16;
    const float *inverse_rms = nullptr, *gain = nullptr;
    const void* dstream = nullptr;  // null: there is none to add to
    void* out = nullptr;
    bool round = true;
    float* gain_partials = nullptr;
    // 256 bytes that the kernel clears as well (launch_cleared() of kernels/device/graph.h); null: none.
    std::uint32_t* counters = nullptr;
};
int norm_partials(Shape shape);
void norm_backward(const NormBackward& how, Shape shape, cudaStream_t stream,
                   const CastTarget* cast = nullptr);
// out[i] = the sum over strips of partials (strips, padded)[., i], in order.
void sum_strips(const float* partials, int strips, int count, int padded, float* out, cudaStream_t stream);

// ---- rotary embedding over halves of a head (core/nn/ops/rope.h). Row r is at position r % context.
struct Rotary {
    const float *cos = nullptr, *sin = nullptr;  // (context, head_size / 2)
    int context = 0, head_size = 0;
    int cols = 0;  // of the first columns: heads of q and of k; the others (v) are not rotated
};
constexpr bool rotates_in_eights(int head_size) { return head_size % 16 == 0; }
// In place: m (rows, padded_cols) = round(rotated m), back: by the negative angles. The columns of v are not touched.
enum class Turn { forward, back };
void rotate_heads(void* m, Element element, Shape shape, const Rotary& rotary, Turn turn, bool round,
                  cudaStream_t stream);
// A source of casts: m rotated back by the same angles, rounded; the columns of v as they are (rounded too). In BF16
// heads are a multiple of 16 wide (rotates_in_eights()).
struct RotatedBackSource {
    const void* m = nullptr;
    Element element = Element::bf16;
    Rotary rotary;
    bool round = true;
};
void cast_rotated_back(const RotatedBackSource& source, Shape shape, const CastTarget& target, Pass pass,
                       cudaStream_t stream);

// ---- gate: gate_up (rows, 2 ffn), gate first. Sources of casts: round(silu(gate) up), (rows, ffn); and
// round([dgate | dup]), (rows, 2 ffn), of da (rows, ffn). Bytes read: 4 an element of (rows, ffn); 6.
enum class GateKind : int { swiglu, clamp };  // core/nn/ops/swiglu.h
struct GateSource {
    const void* gate_up = nullptr;
    Element element = Element::bf16;
    GateKind kind = GateKind::swiglu;
    bool round = true;
    const float* channel_scales = nullptr;  // (ffn), multiplied after rounding; null: none (smooth)
};
void cast_gate(const GateSource& source, Shape shape, const CastTarget& target, Pass pass,
               cudaStream_t stream);
struct GateSlopeSource {
    const void *da = nullptr, *gate_up = nullptr;
    Element element = Element::bf16;
    GateKind kind = GateKind::swiglu;
    bool round = true;
    const float* channel_scales = nullptr;  // multiply da
};
void cast_gate_slope(const GateSlopeSource& source, Shape shape, const CastTarget& target, Pass pass,
                     cudaStream_t stream);
// scales (ffn) of core's channel_scales() for round(silu(gate) up); shape (rows, ffn). amax_bits (ffn): scratch.
void channel_scales(const GateSource& source, Shape shape, std::uint32_t* amax_bits, float* scales,
                    cudaStream_t stream);
// out[r][c] = m[r][c] / scales[c], FP32; may be in place. Of the weights of down, and of their gradient.
void unscale_columns(const float* m, const float* scales, Shape shape, float* out, cudaStream_t stream);

// ---- the aligned channel (Model::align_channel()): channel 1 of gate, of up and of down.
struct ChannelPlace {
    void *gate_up = nullptr, *down = nullptr;  // (2 ffn, d), (d, ffn); null: left alone by clear_channel()
    int gate_up_stride = 0, down_stride = 0;   // elements between rows
    int ffn = 0, d = 0;
};
void clear_channel(const ChannelPlace& at, Element element, cudaStream_t stream);  // of gradients: zeros
// FP32 weights = held (2 d): what gate and up read, then what down has.
void restore_channel(const ChannelPlace& at, const float* held, cudaStream_t stream);

// ---- loss of the next token: logits (rows, vocabulary), rows x padded vocabulary in memory.
struct TokenLossSource {
    const void* logits = nullptr;
    Element element = Element::bf16;
    TokenRing batch;
    const float2* row_stats = nullptr;  // of token_rows()
    bool round = true;
};
// row_stats {max, sum of exp(y - max)}; row_loss: parts times the row's loss / scored targets, 0 where it is not scored; correct: 1
// where its largest logit (the first, if several are equal) is the target. One read of the logits; those of rows that are
// not scored change nothing, and the stats of such rows are {0, 1}.
void token_rows(const TokenLossSource& source, Shape shape, float2* row_stats, double* row_loss,
                std::uint8_t* correct, cudaStream_t stream);
// A source of casts: round(parts (softmax - one-hot) / scored), 0 in rows that are not scored.
void cast_token_gradient(const TokenLossSource& source, Shape shape, const CastTarget& target, Pass pass,
                         cudaStream_t stream);

// ---- attention, materialised: P and dS in memory, products in FP32. For every shape and type; what cuDNN does not
// take, or where it is not found. Matrices of q, k, v, dq, dk, dv are columns of (sequences * context, stride)
// matrices, head h at column h * head_size; P and dS (sequences * heads * context, stride p_stride), FP32. Causal:
// nothing is computed above the diagonal, where P and dS are 0, up to the end of the stride. See
// core/nn/ops/attention.h, whose six operations these are; sums in FP32 in a fixed order. In BF16 the products that read
// P or dS as an operand round it to BF16, as core's casts do; dS itself comes from P as it is.
struct AttentionSizes {
    int sequences = 0, context = 0, heads = 0, kv_heads = 0, head_size = 0;
};
struct HeadMatrix {
    void* data = nullptr;  // of the first head
    int stride = 0;        // elements between rows
};
void attention_probabilities(const HeadMatrix& q, const HeadMatrix& k, Element element,
                             const AttentionSizes& sizes, float* p, int p_stride, cudaStream_t stream);
void attention_output(const float* p, int p_stride, const HeadMatrix& v, Element element,
                      const AttentionSizes& sizes, bool round, const HeadMatrix& out, cudaStream_t stream);
void attention_value_gradient(const float* p, int p_stride, const HeadMatrix& dout, Element element,
                              const AttentionSizes& sizes, bool round, const HeadMatrix& dv,
                              cudaStream_t stream);
// dS = P * (dP - rowsum(dP * P)), dP = dout v^T.
void attention_score_gradient(const float* p, int p_stride, const HeadMatrix& dout, const HeadMatrix& v,
                              Element element, const AttentionSizes& sizes, float* ds, cudaStream_t stream);
void attention_query_gradient(const float* ds, int p_stride, const HeadMatrix& k, Element element,
                              const AttentionSizes& sizes, bool round, const HeadMatrix& dq,
                              cudaStream_t stream);
void attention_key_gradient(const float* ds, int p_stride, const HeadMatrix& q, Element element,
                            const AttentionSizes& sizes, bool round, const HeadMatrix& dk,
                            cudaStream_t stream);

// ---- gradient norm and clipping, in two stages without atomics: partials[first ...] of each gradient, then the factor.
// square_partials(count): how many partials a gradient of `count` elements has. Sums in FP64 in a fixed order.
int square_partials(long long count);
void sum_of_squares(const void* g, Element element, long long count, double* partials, cudaStream_t stream);
// factor = limit / (norm + 1e-6) where that is below 1, else 1 (core's limit_norm()); norm may be null. Of gradients that are
// sums of several, of which share times them is the mean: norm that of the mean, factor times share.
void clip_factor(const double* partials, int count, double limit, float* factor, double* norm,
                 cudaStream_t stream, double share = 1);

}  // namespace fp8lab::cuda
