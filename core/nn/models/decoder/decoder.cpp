#include "core/nn/models/decoder/decoder.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/nn/models/decoder/initial_weights.h"
#include "core/nn/ops/embedding.h"
#include "core/nn/ops/rms_norm.h"
#include "core/nn/ops/row_products.h"
#include "core/threads/trace.h"

namespace fp8lab {
namespace {

constexpr double kHeadSigma = 0.02;

}  // namespace

TensorId tensor_of(const ModelPlan& plan, std::size_t block, const std::string& name) {
    return *plan.find(std::to_string(block) + name);
}

template <class T>
Decoder<T>::Decoder(const TransformerShape& shape, ModelPlan plan, const MakeFeedForward<T>& part)
    : shape_(shape),
      plan_(std::move(plan)),
      rotary_(shape_.context, shape_.head_size()),
      head_(*plan_.find("head.x")) {
    embedding_ = dembedding_ = Matrix<T>(shape_.vocabulary, shape_.d);
    norm_.g = norm_.dg = std::vector<T>(shape_.d);
    if (!shape_.tied) head_.w = Matrix<T>(shape_.vocabulary, shape_.d);
    head_.dw = Matrix<T>(shape_.vocabulary, shape_.d);
    blocks_.reserve(shape_.blocks);  // parameters and tensors are pointed to
    for (std::size_t b = 1; b <= shape_.blocks; ++b)
        blocks_.emplace_back(shape_,
                             BlockTensors{tensor_of(plan_, b, ".qkv.x"), tensor_of(plan_, b, ".attention.q"),
                                          tensor_of(plan_, b, ".out.x")},
                             part(plan_, b));
    parameters_.push_back({embedding_.values, dembedding_.values});
    for (Block<T>& block : blocks_) block.list(parameters_, tensors_);
    norm_.list(parameters_);
    if (!shape_.tied) parameters_.push_back({head_.w.values, head_.dw.values});
    tensors_.insert(tensors_.end(), {&head_.x, &head_weights(), &head_.dy});
}

template <class T>
void Decoder<T>::initialise(std::uint64_t seed) {
    const InitialWeights<T> weights(seed, plan_);
    weights.draw(embedding_, 0, shape_.tied ? kHeadSigma : 1);
    for (Block<T>& block : blocks_) block.initialise(weights);
    norm_.g.assign(shape_.d, T{1});
    if (!shape_.tied) weights.draw(head_, kHeadSigma);
}

template <class T>
const Matrix<T>& Decoder<T>::forward(const Batch& batch, GemmCasts<T>& casts) {
    batch_ = std::get<TokenBatch>(batch);
    embed(batch_, casts);
    for (Block<T>& block : blocks_) block.forward(x_, batch_.sequences, rotary_, casts);
    return logits(casts, multiply_nt<T>);
}

template <class T>
const Matrix<T>& Decoder<T>::decode(const Batch& batch, GemmCasts<T>& casts, KvState<T>& state) {
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
void Decoder<T>::embed(const TokenBatch& batch, GemmCasts<T>& casts) {
    const TraceSpan span("layer", "embedding");
    gather(embedding_, batch.tokens, x_);
    if (batch.factor != 1)
        for (T& value : x_.values) value *= static_cast<T>(batch.factor);
    casts.round_output(x_);
}

template <class T>
const Matrix<T>& Decoder<T>::logits(GemmCasts<T>& casts, Product<T> product) {
    {
        const TraceSpan span("layer", "norm");
        rms_norm(x_, norm_.g, kRmsEpsilon, norm_.normalised, norm_.inverse_rms, head_.x);
        casts.round_output(head_.x);
    }
    head_.forward(casts, head_weights(), logits_, product);
    return logits_;
}

template <class T>
void Decoder<T>::backward(const Matrix<T>& dy, GemmCasts<T>& casts) {
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
}

template class Decoder<float>;
template class Decoder<double>;

}  // namespace fp8lab
