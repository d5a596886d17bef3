#include "core/nn/models/decoder/block.h"

#include <algorithm>

#include "core/nn/models/decoder/initial_weights.h"
#include "core/nn/models/gemm_span.h"
#include "core/nn/ops/cached_attention.h"
#include "core/nn/ops/columns.h"
#include "core/nn/ops/rms_norm.h"
#include "core/nn/ops/row_products.h"

namespace fp8lab {
namespace {

TensorId plus(TensorId id, int n) { return {static_cast<std::uint16_t>(id.index + n)}; }

template <class T>
void add(Matrix<T>& x, const Matrix<T>& y, GemmCasts<T>& casts) {
    for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += y.values[i];
    casts.round_output(x);
}

template <class T>
void normalise(Norm<T>& norm, const Matrix<T>& x, Matrix<T>& y, GemmCasts<T>& casts) {
    const TraceSpan span("layer", "norm");
    rms_norm(x, norm.g, kRmsEpsilon, norm.normalised, norm.inverse_rms, y);
    casts.round_output(y);
}

}  // namespace

template <class T>
Block<T>::Block(const TransformerShape& shape, const BlockTensors& ids,
                std::unique_ptr<FeedForward<T>> feed_forward_part)
    : qkv(ids.qkv), out(ids.out), feed_forward(std::move(feed_forward_part)), shape_(shape), ids_(ids) {
    for (Norm<T>* norm : {&norm1, &norm2}) norm->g = norm->dg = std::vector<T>(shape.d);
    const std::size_t d = shape.d;
    qkv.w = qkv.dw = Matrix<T>(d + 2 * shape.key_cols(), d);
    out.w = out.dw = Matrix<T>(d, d);
}

template <class T>
void Block<T>::list(std::vector<Parameter<T>>& parameters, std::vector<const Matrix<T>*>& tensors) {
    norm1.list(parameters);
    qkv.list(parameters, tensors);
    tensors.insert(tensors.end(), {&q, &k, &v, &p, &ds, &dout});
    out.list(parameters, tensors);
    norm2.list(parameters);
    feed_forward->list(parameters, tensors);
}

template <class T>
void Block<T>::initialise(const InitialWeights<T>& weights) {
    weights.reads(qkv);
    weights.writes(out);
    feed_forward->initialise(weights);
    for (Norm<T>* norm : {&norm1, &norm2}) norm->g.assign(shape_.d, T{1});
}

template <class T>
void Block<T>::forward(Matrix<T>& x, std::size_t sequences, const RotaryTable<T>& rotary,
                       GemmCasts<T>& casts) {
    normalise(norm1, x, qkv.x, casts);
    attend(sequences, rotary, casts);
    add(x, y_, casts);
    normalise(norm2, x, feed_forward->x(), casts);
    feed_forward->forward(casts, multiply_nt<T>, y_);
    add(x, y_, casts);
}

template <class T>
void Block<T>::decode(Matrix<T>& x, const Cache& cache, const RotaryTable<T>& rotary, GemmCasts<T>& casts) {
    normalise(norm1, x, qkv.x, casts);
    attend_cached(cache, rotary, casts);
    add(x, y_, casts);
    normalise(norm2, x, feed_forward->x(), casts);
    feed_forward->forward(casts, multiply_rows<T>, y_);
    add(x, y_, casts);
}

template <class T>
void Block<T>::project(std::size_t first, std::size_t tokens, const RotaryTable<T>& rotary,
                       GemmCasts<T>& casts) {
    take_columns(qkv_, 0, shape_.d, q);
    take_columns(qkv_, shape_.d, shape_.key_cols(), k);
    take_columns(qkv_, shape_.d + shape_.key_cols(), shape_.key_cols(), v);
    rotate_from(q, rotary, first, tokens);
    rotate_from(k, rotary, first, tokens);
    casts.round_output(q);
    casts.round_output(k);
    q_cast_ = &casts.operand(ids_.attention, Along::cols, q);
    k_cast_ = &casts.operand(plus(ids_.attention, 1), Along::cols, k);
    v_cast_ = &casts.operand(plus(ids_.attention, 2), Along::cols, v);
}

template <class T>
void Block<T>::attend_cached(const Cache& cache, const RotaryTable<T>& rotary, GemmCasts<T>& casts) {
    const CachedShape shape{cache.sequences, cache.context,   cache.first,       qkv.x.rows / cache.sequences,
                            shape_.heads,    shape_.kv_heads, shape_.head_size()};
    qkv.forward(casts, qkv.w, qkv_, multiply_rows<T>);
    project(shape.first, shape.tokens, rotary, casts);
    for (std::size_t r = 0; r < k.rows; ++r) {
        const std::size_t to = r / shape.tokens * shape.context + shape.first + r % shape.tokens;
        std::ranges::copy(k_cast_->row(r), cache.rows.k.row(to).begin());
        std::ranges::copy(v_cast_->row(r), cache.rows.v.row(to).begin());
    }
    cached_probabilities(*q_cast_, cache.rows.k, shape, p);
    cached_output(casts.operand(plus(ids_.attention, 3), Along::cols, p), cache.rows.v, shape, out.x);
    casts.round_output(out.x);
    out.forward(casts, out.w, y_, multiply_rows<T>);
}

template <class T>
void Block<T>::attend(std::size_t sequences, const RotaryTable<T>& rotary, GemmCasts<T>& casts) {
    attention_ = {sequences, qkv.x.rows / sequences, shape_.heads, shape_.kv_heads, shape_.head_size()};
    qkv.forward(casts, qkv.w, qkv_);
    {
        const PassSpan<T> pass(casts, "fprop", ids_.attention);
        project(0, attention_.context, rotary, casts);
        {
            const TraceSpan span("gemm", "GEMM q k^T, softmax");
            attention_probabilities(*q_cast_, *k_cast_, attention_, p);
        }
        p_cast_ = &casts.operand(plus(ids_.attention, 3), Along::cols, p);
        {
            const TraceSpan span("gemm", "GEMM p v");
            attention_output(*p_cast_, *v_cast_, attention_, out.x);
        }
        casts.round_output(out.x);
    }
    out.forward(casts, out.w, y_);
}

template <class T>
void Block<T>::backward(Matrix<T>& dx, const RotaryTable<T>& rotary, GemmCasts<T>& casts) {
    feed_forward->backward(dx, casts, dh_);
    normalise_backward(norm2);
    add(dx, dn_, casts);
    out.dy = dx;
    attend_backward(rotary, casts);
    normalise_backward(norm1);
    add(dx, dn_, casts);
}

template <class T>
void Block<T>::normalise_backward(Norm<T>& norm) {
    const TraceSpan span("layer", "norm backward");
    rms_norm_backward(dh_, norm.normalised, norm.inverse_rms, norm.g, dn_, norm.dg);
}

template <class T>
void Block<T>::attend_backward(const RotaryTable<T>& rotary, GemmCasts<T>& casts) {
    out.backward(casts, dout);
    attention_backward(rotary, casts);
    qkv.backward(casts, dh_);
}

template <class T>
void Block<T>::attention_backward(const RotaryTable<T>& rotary, GemmCasts<T>& casts) {
    const PassSpan<T> pass(casts, "dgrad", ids_.attention);
    const Matrix<T>& dout_cast = casts.operand(plus(ids_.attention, 5), Along::cols, dout);
    {
        const TraceSpan span("gemm", "GEMM dv, dp, softmax");
        attention_value_gradient(*p_cast_, dout_cast, attention_, dv_);
        attention_score_gradient(p, dout_cast, *v_cast_, attention_, ds);
    }
    const Matrix<T>& ds_cast = casts.operand(plus(ids_.attention, 4), Along::cols, ds);
    {
        const TraceSpan span("gemm", "GEMM dq, dk");
        attention_query_gradient(ds_cast, *k_cast_, attention_, dq_);
        attention_key_gradient(ds_cast, *q_cast_, attention_, dk_);
    }
    rotate_back(dq_, rotary);
    rotate_back(dk_, rotary);
    qkv.dy.resize(dq_.rows, shape_.d + 2 * shape_.key_cols());
    put_columns(dq_, 0, qkv.dy);
    put_columns(dk_, shape_.d, qkv.dy);
    put_columns(dv_, shape_.d + shape_.key_cols(), qkv.dy);
    casts.round_output(qkv.dy);
}

template class Block<float>;
template class Block<double>;

}  // namespace fp8lab
