#include "kernels/prefill/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "kernels/gemm/gemm.h"
#include "kernels/layers/attention.h"
#include "kernels/prefill/launch.h"

namespace fp8lab::cuda {
namespace {

using Bytes = Buffer<std::uint8_t>;

constexpr int kShortOfCudnn = 128;              // tokens; up to these ours is a launch of few blocks as well
constexpr int kInputsOfLayer = 4;               // of GEMMs
constexpr long long kMostRows = 65535LL * 128;  // of attention: blocks of a launch, rows of each

void refuse(const char* what, const std::string& why) { throw usage_error(what, why); }
void check_range(const char* what, int value, int most) {
    if (value < 1 || value > most) refuse(what, fmt::format("{} is not from 1 to {}", value, most));
}
void check_width(const char* what, int value) {
    if (value < 16 || value > kMostServedWidth || value % 16 != 0)
        refuse(what, fmt::format("{} is not a multiple of 16 from 16 to {}", value, kMostServedWidth));
}
void check_shape(const PassShape& s) {
    check_range("batch", s.batch, kMostServedBatch);
    check_range("context", s.capacity, kMostServedContext);
    check_range("tokens", s.tokens, s.capacity);
    if (s.layers < 1) refuse("layers", fmt::format("{} layers; at least 1", s.layers));
    if (s.vocabulary < 0) refuse("vocabulary", fmt::format("{} is less than 0", s.vocabulary));
    if (s.head_size < 16 || s.head_size > kMostServedHead || s.head_size % 16 != 0)
        refuse("heads",
               fmt::format("a head of {} is not a multiple of 16 up to {}", s.head_size, kMostServedHead));
    check_range("heads", s.heads, kMostServedWidth / 16);
    check_range("heads of K and V", s.kv_heads, s.heads);
    if (s.heads % s.kv_heads != 0)
        refuse("heads",
               fmt::format("{} heads are not a multiple of {} heads of K and V", s.heads, s.kv_heads));
    if (static_cast<long long>(s.tokens) * (s.heads / s.kv_heads) > kMostRows)
        refuse("tokens", fmt::format("{} tokens of {} heads for each of K and V are more than {} rows",
                                     s.tokens, s.heads / s.kv_heads, kMostRows));
    check_width("d", s.d);
    check_width("ffn", s.ffn);
    check_width("heads", s.heads * s.head_size);
    if (s.stream != Element::bf16 && s.stream != Element::f32)
        refuse("stream", "the residual stream is BF16 or FP32");
    if (served_attention_bytes(s) > shared_memory())
        refuse("heads", fmt::format("attention needs {} bytes of shared memory; {} are there",
                                    served_attention_bytes(s), shared_memory()));
}

std::size_t area(int rows, int cols) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}
std::byte* at(void* base, std::size_t bytes) { return static_cast<std::byte*>(base) + bytes; }

}  // namespace

struct ServedPass::Parts {
    PassShape shape;
    int padded_rows, padded_batch, padded_vocabulary;
    std::optional<GemmPlan> qkv, out, gate_up, down, head;
    std::unique_ptr<Attention> fused;
    Bytes stream, x, qkv_out, attended, gated, kept, scratch;
    Buffer<float> scales, logits, partials;
    Buffer<std::uint32_t> amaxes;
    int splits = 1;

    Parts(const PassShape& s, const Lt& lt, cudaStream_t on);
    bool fp8() const { return shape.weights != PassWeights::bf16; }
    void plan(const Lt& lt, cudaStream_t on);
    void plan_attention();
    void allocate();
    std::size_t bytes() const;
    RowTarget target(int cols, int which) const;
    ServedAttention attention(const PassModel& model, int layer) const;
    void attend(const PassModel& model, int layer, cudaStream_t on, unsigned parts);
    void layer(const PassModel& model, int layer, cudaStream_t on, unsigned parts);
    void last(const PassModel& model, cudaStream_t on);
    void multiply(const GemmPlan& plan, const void* a, const PassMatrix& w, void* d, cudaStream_t on,
                  bool add = false) const {
        plan.run(a, w.weights, d, fp8() ? scales.get() : nullptr, fp8() ? w.scales : nullptr, on, add);
    }
};

ServedPass::Parts::Parts(const PassShape& s, const Lt& lt, cudaStream_t on)
    : shape(s),
      padded_rows(padded(s.rows())),
      padded_batch(padded(s.batch)),
      padded_vocabulary(padded(s.vocabulary)) {
    splits = served_splits(s, multiprocessors());
    plan_attention();
    allocate();
    plan(lt, on);
}

void ServedPass::Parts::plan(const Lt& lt, cudaStream_t on) {
    const Element in = fp8() ? Element::e4m3 : Element::bf16;
    const ScaleMode mode = !fp8()                                   ? ScaleMode::none
                           : shape.weights == PassWeights::e4m3_row ? ScaleMode::row
                                                                    : ScaleMode::tensor;
    const auto make = [&](std::optional<GemmPlan>& plan, int rows, int n, int k, Element d) {
        plan.emplace(lt, GemmSpec{Product::nt, rows, n, k, in, in, d, mode, mode, fp8()}, on);
    };
    make(qkv, padded_rows, shape.qkv_rows(), shape.d, shape.stream);
    make(out, padded_rows, shape.d, shape.heads * shape.head_size, shape.stream);
    make(gate_up, padded_rows, 2 * shape.ffn, shape.d, shape.stream);
    make(down, padded_rows, shape.d, shape.ffn, shape.stream);
    if (shape.vocabulary > 0) make(head, padded_batch, padded_vocabulary, shape.d, Element::f32);
}

// cuDNN's reads K and V where the GEMM left them: of positions that are not in the cache yet.
void ServedPass::Parts::plan_attention() {
    if (!shape.from_empty || shape.own_attention || shape.stream != Element::bf16 ||
        shape.cache != PassCache::bf16 || shape.tokens <= kShortOfCudnn)
        return;
    AttentionSizes sizes;
    sizes.sequences = shape.batch, sizes.context = shape.tokens, sizes.heads = shape.heads;
    sizes.kv_heads = shape.kv_heads, sizes.head_size = shape.head_size;
    auto found = make_attention(sizes, {Element::bf16, shape.qkv_rows(), shape.heads * shape.head_size});
    if (found->name() == "cuDNN") fused = std::move(found);
}

void ServedPass::Parts::allocate() {
    const int heads = shape.heads * shape.head_size;
    const std::size_t widest = static_cast<std::size_t>(std::max({shape.d, shape.ffn, heads})),
                      rows = static_cast<std::size_t>(padded_rows);
    const auto of_stream = [&](int cols) {
        return Bytes(area(padded_rows, cols) * static_cast<std::size_t>(bytes_of(shape.stream)));
    };
    stream = of_stream(shape.d);
    x = Bytes(rows * widest * (fp8() ? 1 : 2));
    qkv_out = of_stream(shape.qkv_rows());
    attended = Bytes(2 * area(padded_rows, heads));
    gated = of_stream(2 * shape.ffn);
    scales = Buffer<float>(rows);
    amaxes = Buffer<std::uint32_t>(static_cast<std::size_t>(kInputsOfLayer * shape.layers + 1));
    if (splits > 1)
        partials = Buffer<float>(area(shape.rows() * shape.heads, splits * partial_width(shape.head_size)));
    logits = Buffer<float>(shape.vocabulary > 0 ? area(padded_batch, padded_vocabulary) : 0);
    if (!fused) return;
    const AttentionBytes needs = fused->bytes();
    kept = Bytes(needs.kept);
    scratch = Bytes(needs.forward);
}

std::size_t ServedPass::Parts::bytes() const {
    std::size_t all = (scales.size() + partials.size() + logits.size() + amaxes.size()) * sizeof(float);
    for (const Bytes* const buffer : {&stream, &x, &qkv_out, &attended, &gated, &kept, &scratch})
        all += buffer->size();
    return all;
}

// which: of the inputs of a pass.
RowTarget ServedPass::Parts::target(int cols, int which) const {
    return {shape.weights, shape.rows(), padded_rows, cols, x.get(), scales.get(), amaxes.get() + which};
}

ServedAttention ServedPass::Parts::attention(const PassModel& model, int layer) const {
    const std::size_t of_layer =
        static_cast<std::size_t>(layer) * area(shape.batch * shape.kv_heads, shape.capacity) *
        static_cast<std::size_t>(shape.head_size) * (shape.cache == PassCache::bf16 ? 2 : 1);
    const PassLayer& of = model.layers[static_cast<std::size_t>(layer)];
    ServedAttention a;
    a.qkv = qkv_out.get(), a.element = shape.stream;
    a.k = at(model.k, of_layer), a.v = at(model.v, of_layer);
    a.k_scales = of.k_scales, a.v_scales = of.v_scales;
    a.cos = model.cos, a.sin = model.sin, a.length = model.length;
    a.out = attended.get(), a.partials = partials.get();
    a.batch = shape.batch, a.tokens = shape.tokens, a.heads = shape.heads, a.kv_heads = shape.kv_heads;
    a.head_size = shape.head_size, a.capacity = shape.capacity, a.cache = shape.cache, a.splits = splits;
    return a;
}

void ServedPass::Parts::attend(const PassModel& model, int layer, cudaStream_t on, unsigned parts) {
    const ServedAttention a = attention(model, layer);
    if (parts & kServedAppends) {
        if (fused) {
            const Shape s{shape.rows(), shape.qkv_rows(), padded_rows, shape.qkv_rows()};
            const Rotary rotary{model.cos, model.sin, shape.tokens, shape.head_size,
                                (shape.heads + shape.kv_heads) * shape.head_size};
            rotate_heads(qkv_out.get(), Element::bf16, s, rotary, Turn::forward, true, on);
        }
        append_heads(a, fused != nullptr, on);
    }
    if (parts & kServedAttention) {
        if (fused)
            fused->forward(qkv_out.get(), attended.get(), {kept.get(), scratch.get()}, on);
        else
            attend_served(a, on);
    }
    if (!(parts & kServedCasts)) return;
    const RowTarget to = target(shape.heads * shape.head_size, 4 * layer + 1);
    if (splits > 1)
        merge_rows(a, to, on);
    else if (fp8())
        cast_rows(attended.get(), to, on);
}

void ServedPass::Parts::layer(const PassModel& model, int number, cudaStream_t on, unsigned parts) {
    const PassLayer& w = model.layers[static_cast<std::size_t>(number)];
    const bool norms = parts & kServedNorms, gemms = parts & kServedGemms;
    if (norms) norm_rows(stream.get(), shape.stream, 1, w.norm_attention, target(shape.d, 4 * number), on);
    if (gemms) multiply(*qkv, x.get(), w.qkv, qkv_out.get(), on);
    attend(model, number, on, parts);
    const void* const given = fp8() || splits > 1 ? x.get() : attended.get();
    if (gemms) multiply(*out, given, w.out, stream.get(), on, true);
    if (norms) norm_rows(stream.get(), shape.stream, 1, w.norm_mlp, target(shape.d, 4 * number + 2), on);
    if (gemms) multiply(*gate_up, x.get(), w.gate_up, gated.get(), on);
    if (parts & kServedGates) gate_rows(gated.get(), shape.stream, target(shape.ffn, 4 * number + 3), on);
    if (gemms) multiply(*down, x.get(), w.down, stream.get(), on, true);
}

void ServedPass::Parts::last(const PassModel& model, cudaStream_t on) {
    RowTarget to = target(shape.d, 4 * shape.layers);
    to.rows = shape.batch, to.padded_rows = padded_batch;
    norm_rows(stream.get(), shape.stream, shape.tokens, model.norm, to, on);
    multiply(*head, x.get(), model.head, logits.get(), on);
}

ServedPass::ServedPass(const PassShape& shape, const Lt& lt, cudaStream_t stream) {
    check_shape(shape);
    parts_ = std::make_unique<Parts>(shape, lt, stream);
}
ServedPass::~ServedPass() = default;
ServedPass::ServedPass(ServedPass&&) noexcept = default;
ServedPass& ServedPass::operator=(ServedPass&&) noexcept = default;

const PassShape& ServedPass::shape() const { return parts_->shape; }
void* ServedPass::stream() const { return parts_->stream.get(); }
const float* ServedPass::logits() const { return parts_->logits.get(); }
std::string_view ServedPass::attention() const { return parts_->fused ? parts_->fused->name() : "own"; }
std::size_t ServedPass::bytes() const { return parts_->bytes(); }

void ServedPass::enqueue(const PassModel& model, cudaStream_t stream, unsigned parts) {
    Parts& p = *parts_;
    if (p.shape.weights == PassWeights::e4m3_tensor)
        check(cudaMemsetAsync(p.amaxes.get(), 0, p.amaxes.size() * sizeof(std::uint32_t), stream),
              "cudaMemsetAsync");
    for (int l = 0; l < p.shape.layers; ++l) p.layer(model, l, stream, parts);
    if (p.head && (parts & kServedHead)) p.last(model, stream);
}

}  // namespace fp8lab::cuda
