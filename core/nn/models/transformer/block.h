// One block of the transformer: attention and feed-forward part, each behind a norm and added to the residual stream.
#pragma once

#include <vector>

#include "core/nn/models/transformer/linear.h"
#include "core/nn/models/transformer/model.h"
#include "core/nn/ops/attention.h"
#include "core/nn/ops/rope.h"
#include "core/nn/tokens/kv_state.h"

namespace fp8lab {

// The first tensors of a block's GEMMs; those of attention are q k v p ds do.
struct BlockTensors {
    TensorId qkv, attention, out, gate_up, down;
};

template <class T>
struct Norm {
    std::vector<T> g, dg;
    Matrix<T> normalised;
    std::vector<T> inverse_rms;
};

template <class T>
class Block {
  public:
    Block(const TransformerShape& shape, const BlockTensors& ids);

    // x (tokens, d), the residual stream, in place; `sequences` of the batch, tokens / context.
    void forward(Matrix<T>& x, std::size_t sequences, const RotaryTable<T>& rotary, GemmCasts<T>& casts);
    // The same for the tokens behind those of the cache, `context` of a sequence at most and `first` of them there: their
    // keys and values are added to it. x (sequences * tokens, d).
    struct Cache {
        typename KvState<T>::Block& rows;
        std::size_t sequences, context, first;
    };
    void decode(Matrix<T>& x, const Cache& cache, const RotaryTable<T>& rotary, GemmCasts<T>& casts);
    // dx, the gradient of the stream, in place; fills the gradients of the parameters.
    void backward(Matrix<T>& dx, const RotaryTable<T>& rotary, GemmCasts<T>& casts);

    Norm<T> norm1, norm2;
    Linear<T> qkv, out, gate_up, down;
    Matrix<T> q, k, v, p, ds, dout;  // of attention, before their casts

  private:
    void attend(std::size_t sequences, const RotaryTable<T>& rotary, GemmCasts<T>& casts);
    void attend_cached(const Cache& cache, const RotaryTable<T>& rotary, GemmCasts<T>& casts);
    // q, k and v of what qkv gave, of tokens that begin at a position, and their casts.
    void project(std::size_t first, std::size_t tokens, const RotaryTable<T>& rotary, GemmCasts<T>& casts);
    void attend_backward(const RotaryTable<T>& rotary, GemmCasts<T>& casts);
    void attention_backward(const RotaryTable<T>& rotary, GemmCasts<T>& casts);  // without its linears
    void normalise_backward(Norm<T>& norm);                                      // dh_ -> dn_
    void feed_forward(GemmCasts<T>& casts, Product<T> product);
    void feed_forward_backward(GemmCasts<T>& casts);

    TransformerShape shape_;
    AttentionShape attention_;
    BlockTensors ids_;
    const Matrix<T>*q_cast_ = nullptr, *k_cast_ = nullptr, *v_cast_ = nullptr, *p_cast_ = nullptr;
    Matrix<T> qkv_, y_, gates_, a_, dh_, dn_, da_, dq_, dk_, dv_;
    bool smooth_ = false;
    std::vector<T> scales_;  // of the channels, with SwigluForm::smooth
    Matrix<T> scaled_w_;     // the weights of down divided by them
};

}  // namespace fp8lab
