#include "core/nn/models/transformer/model.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/models/transformer/block.h"
#include "core/nn/ops/embedding.h"
#include "core/nn/ops/rms_norm.h"
#include "core/nn/ops/row_products.h"
#include "core/nn/streams.h"
#include "core/threads/trace.h"

namespace fp8lab {
namespace {

constexpr double kHeadSigma = 0.02;

template <class T>
class Transformer final : public Model<T> {
  public:
    explicit Transformer(const TrainSpec& spec)
        : shape_(transformer_shape(spec)),
          plan_(transformer_plan(shape_)),
          rotary_(shape_.context, shape_.head_size()),
          head_(*plan_.find("head.x")) {
        embedding_ = dembedding_ = Matrix<T>(shape_.vocabulary, shape_.d);
        norm_.g = norm_.dg = std::vector<T>(shape_.d);
        if (!shape_.tied) head_.w = Matrix<T>(shape_.vocabulary, shape_.d);
        head_.dw = Matrix<T>(shape_.vocabulary, shape_.d);
        blocks_.reserve(shape_.blocks);  // parameters and tensors are pointed to
        for (std::size_t b = 1; b <= shape_.blocks; ++b) {
            const auto first = [&](const char* name) { return *plan_.find(std::to_string(b) + name); };
            blocks_.emplace_back(shape_, BlockTensors{first(".qkv.x"), first(".attention.q"), first(".out.x"),
                                                      first(".gate_up.x"), first(".down.x")});
        }
        list_parameters();
        list_tensors();
    }

    const ModelPlan& plan() const override { return plan_; }
    std::span<const Parameter<T>> parameters() override { return parameters_; }
    std::span<const T> values(TensorId id) const override { return tensors_[id.index]->values; }
    void initialise(std::uint64_t seed) override;
    const Matrix<T>& forward(const Batch& batch, GemmCasts<T>& casts) override;
    const Matrix<T>& decode(const Batch& batch, GemmCasts<T>& casts, KvState<T>& state) override;
    void backward(const Matrix<T>& dy, GemmCasts<T>& casts) override;
    void align_channel(int token) override;
    void after_update() override;

  private:
    void list_parameters();
    void list_tensors();
    void embed(const TokenBatch& batch, GemmCasts<T>& casts);
    const Matrix<T>& logits(GemmCasts<T>& casts, Product<T> product);
    Matrix<T>& head_weights() { return shape_.tied ? embedding_ : head_.w; }

    TransformerShape shape_;
    ModelPlan plan_;
    RotaryTable<T> rotary_;
    Matrix<T> embedding_, dembedding_;
    std::vector<Block<T>> blocks_;
    Norm<T> norm_;
    Linear<T> head_;
    std::vector<Parameter<T>> parameters_;
    std::vector<const Matrix<T>*> tensors_;
    TokenBatch batch_;
    Matrix<T> x_, dx_, logits_;
    // The aligned channel: what the rows of gate and up and the column of down are held at. Empty: none.
    std::vector<T> held_row_, held_column_;
};

template <class T>
void Transformer<T>::list_parameters() {
    const auto matrix = [&](Matrix<T>& value, Matrix<T>& gradient) {
        parameters_.push_back({value.values, gradient.values});
    };
    const auto gains = [&](Norm<T>& norm) { parameters_.push_back({norm.g, norm.dg}); };
    matrix(embedding_, dembedding_);
    for (Block<T>& block : blocks_) {
        gains(block.norm1);
        matrix(block.qkv.w, block.qkv.dw);
        matrix(block.out.w, block.out.dw);
        gains(block.norm2);
        matrix(block.gate_up.w, block.gate_up.dw);
        matrix(block.down.w, block.down.dw);
    }
    gains(norm_);
    if (!shape_.tied) matrix(head_.w, head_.dw);
}

template <class T>
void Transformer<T>::list_tensors() {
    const auto linear = [&](const Linear<T>& layer) {
        tensors_.insert(tensors_.end(), {&layer.x, &layer.w, &layer.dy});
    };
    for (const Block<T>& b : blocks_) {
        linear(b.qkv);
        tensors_.insert(tensors_.end(), {&b.q, &b.k, &b.v, &b.p, &b.ds, &b.dout});
        linear(b.out);
        linear(b.gate_up);
        linear(b.down);
    }
    tensors_.insert(tensors_.end(), {&head_.x, &head_weights(), &head_.dy});
}

template <class T>
void Transformer<T>::initialise(std::uint64_t seed) {
    const auto draw = [&](Matrix<T>& m, int layer, double sigma) {
        Rng rng(seed, stream(Draw::initial_weights, layer));
        if constexpr (std::is_same_v<T, float>)
            rng.fill_normal(m.values, static_cast<float>(sigma));
        else
            for (T& w : m.values) w = sigma * static_cast<T>(rng.normal());
    };
    const auto weights = [&](Linear<T>& layer, double divisor) {
        draw(layer.w, plan_.ordinal(layer.w_id),
             1 / (divisor * std::sqrt(static_cast<double>(layer.w.cols))));
    };
    const double deep = std::sqrt(2.0 * static_cast<double>(shape_.blocks));
    draw(embedding_, 0, shape_.tied ? kHeadSigma : 1);
    for (Block<T>& b : blocks_) {
        weights(b.qkv, 1);
        weights(b.out, deep);
        weights(b.gate_up, 1);
        weights(b.down, deep);
        for (Norm<T>* norm : {&b.norm1, &b.norm2}) norm->g.assign(shape_.d, T{1});
    }
    norm_.g.assign(shape_.d, T{1});
    if (!shape_.tied) draw(head_.w, plan_.ordinal(head_.w_id), kHeadSigma);
    held_row_.clear();
}

template <class T>
const Matrix<T>& Transformer<T>::forward(const Batch& batch, GemmCasts<T>& casts) {
    batch_ = std::get<TokenBatch>(batch);
    embed(batch_, casts);
    for (Block<T>& block : blocks_) block.forward(x_, batch_.sequences, rotary_, casts);
    return logits(casts, multiply_nt<T>);
}

template <class T>
const Matrix<T>& Transformer<T>::decode(const Batch& batch, GemmCasts<T>& casts, KvState<T>& state) {
    const TokenBatch& tokens = std::get<TokenBatch>(batch);
    if (state.blocks.empty()) {
        const Matrix<T> rows(tokens.sequences * shape_.context, shape_.key_cols());
        state = {0, tokens.sequences, shape_.context, {shape_.blocks, {rows, rows}}};
    }
    if (tokens.sequences != state.sequences || state.context != shape_.context ||
        state.blocks.size() != shape_.blocks || state.blocks.front().k.cols != shape_.key_cols())
        throw usage_error("cache", "is of another model or of another number of sequences");
    if (state.length + tokens.context > shape_.context)
        throw usage_error("cache", fmt::format("has {} of {} tokens: {} more are too many", state.length,
                                               shape_.context, tokens.context));
    embed(tokens, casts);
    for (std::size_t b = 0; b < blocks_.size(); ++b)
        blocks_[b].decode(x_, {state.blocks[b], state.sequences, state.context, state.length}, rotary_,
                          casts);
    state.length += tokens.context;
    return logits(casts, multiply_rows<T>);
}

template <class T>
void Transformer<T>::embed(const TokenBatch& batch, GemmCasts<T>& casts) {
    const TraceSpan span("layer", "embedding");
    gather(embedding_, batch.tokens, x_);
    if (batch.factor != 1)
        for (T& value : x_.values) value *= static_cast<T>(batch.factor);
    casts.round_output(x_);
}

template <class T>
const Matrix<T>& Transformer<T>::logits(GemmCasts<T>& casts, Product<T> product) {
    {
        const TraceSpan span("layer", "norm");
        rms_norm(x_, norm_.g, kRmsEpsilon, norm_.normalised, norm_.inverse_rms, head_.x);
        casts.round_output(head_.x);
    }
    head_.forward(casts, head_weights(), logits_, product);
    return logits_;
}

template <class T>
void Transformer<T>::backward(const Matrix<T>& dy, GemmCasts<T>& casts) {
    head_.dy = dy;
    casts.round_output(head_.dy);
    Matrix<T> dh;
    head_.backward(casts, head_weights(), dh);
    {
        const TraceSpan span("layer", "norm backward");
        rms_norm_backward(dh, norm_.normalised, norm_.inverse_rms, norm_.g, dx_, norm_.dg);
        casts.round_output(dx_);
    }
    for (std::size_t b = blocks_.size(); b-- > 0;) blocks_[b].backward(dx_, rotary_, casts);
    if (batch_.factor != 1)
        for (T& value : dx_.values) value *= static_cast<T>(batch_.factor);
    const TraceSpan span("layer", "embedding backward");
    gather_backward(dx_, batch_.tokens, shape_.vocabulary, dembedding_);
    if (shape_.tied)
        for (std::size_t i = 0; i < dembedding_.values.size(); ++i)
            dembedding_.values[i] += head_.dw.values[i];
    if (held_row_.empty()) return;
    Block<T>& block = blocks_.front();  // held weights: no gradient, in the norm of all gradients neither
    std::ranges::fill(block.gate_up.dw.row(0), T{0});
    std::ranges::fill(block.gate_up.dw.row(shape_.ffn), T{0});
    for (std::size_t r = 0; r < shape_.d; ++r) block.down.dw.row(r)[0] = 0;
}

template <class T>
void Transformer<T>::align_channel(int token) {
    constexpr double kLength = 300;
    if (!held_row_.empty()) return;
    Block<T>& block = blocks_.front();
    const auto embedding = embedding_.row(static_cast<std::size_t>(token));
    std::vector<T> direction(shape_.d);  // of the token behind the norm, were the stream its embedding alone
    T squares = 0, length = 0, along = 0;
    for (std::size_t i = 0; i < shape_.d; ++i) {
        direction[i] = embedding[i] * block.norm2.g[i];
        squares += embedding[i] * embedding[i];
        length += direction[i] * direction[i];
    }
    const T rms = std::sqrt(squares / static_cast<T>(shape_.d));
    length = std::sqrt(length);
    for (T& value : direction) {
        along += value / rms * (value / length);
        value *= static_cast<T>(kLength) / length;
    }
    const T product = (static_cast<T>(kLength) * along) * (static_cast<T>(kLength) * along);
    held_row_ = direction;
    held_column_.resize(shape_.d);
    for (std::size_t r = 0; r < shape_.d; ++r) held_column_[r] = block.down.w.row(r)[0] / product;
    after_update();
}

template <class T>
void Transformer<T>::after_update() {
    if (held_row_.empty()) return;
    Block<T>& block = blocks_.front();
    std::ranges::copy(held_row_, block.gate_up.w.row(0).begin());
    std::ranges::copy(held_row_, block.gate_up.w.row(shape_.ffn).begin());
    for (std::size_t r = 0; r < shape_.d; ++r) block.down.w.row(r)[0] = held_column_[r];
}

constexpr std::array kOptions = {
    ModelOption{"d", "width of the residual stream", 64, 2, 16384},
    ModelOption{"blocks", "transformer blocks", 2, 1, 96},
    ModelOption{"heads", "heads of attention; divides d", 4, 1, 256},
    ModelOption{"kv-heads", "heads of K and V, a divisor of heads; 0: as many as heads", 0, 0, 256},
    ModelOption{"ffn", "width of the feed-forward part", 192, 1, 65536},
    ModelOption{"context", "tokens of a sequence", 64, 8, 4096},
    ModelOption{"tie", "1: the head reads the embedding; 0: it has weights of its own", 0, 0, 1},
};

}  // namespace

ModelEntry transformer_model() {
    return {.id = "transformer",
            .summary = "decoder-only transformer with RMSNorm, RoPE and SwiGLU",
            .task = "text",
            .tokens = true,
            .options = kOptions,
            .check = [](const TrainSpec& spec) { transformer_shape(spec); },
            .plan = [](const TrainSpec& spec) { return transformer_plan(transformer_shape(spec)); },
            .make = [](const TrainSpec& spec) -> std::unique_ptr<Model<float>> {
                return std::make_unique<Transformer<float>>(spec);
            },
            .make_reference = [](const TrainSpec& spec) -> std::unique_ptr<Model<double>> {
                return std::make_unique<Transformer<double>>(spec);
            }};
}

}  // namespace fp8lab
