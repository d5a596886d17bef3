// One block of a decoder: attention and feed-forward part, each behind a norm and added to the residual stream.
#pragma once

#include <vector>

#include "core/nn/models/decoder/feed_forward.h"
#include "core/nn/models/decoder/shape.h"
#include "core/nn/ops/attention.h"
#include "core/nn/ops/rope.h"
#include "core/nn/tokens/kv_state.h"

namespace fp8lab {

// The first tensors of a block's GEMMs of attention; those of the attention itself are q k v p ds do.
struct BlockTensors {
    TensorId qkv, attention, out;
};

template <class T>
struct Norm {
    std::vector<T> g, dg;
    Matrix<T> normalised;
    std::vector<T> inverse_rms;

    void list(std::vector<Parameter<T>>& parameters) { parameters.push_back({g, dg}); }
};

template <class T>
class Block {
  public:
    Block(const TransformerShape& shape, const BlockTensors& ids,
          std::unique_ptr<FeedForward<T>> feed_forward);

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

    void list(std::vector<Parameter<T>>& parameters, std::vector<const Matrix<T>*>& tensors);
    void initialise(const InitialWeights<T>& weights);

    Norm<T> norm1, norm2;
    Linear<T> qkv, out;
    std::unique_ptr<FeedForward<T>> feed_forward;
    Matrix<T> q, k, v, p, ds, dout;  // of attention, before their casts

  private:
    void attend(std::size_t sequences, const RotaryTable<T>& rotary, GemmCasts<T>& casts);
    void attend_cached(const Cache& cache, const RotaryTable<T>& rotary, GemmCasts<T>& casts);
    // q, k and v of what qkv gave, of tokens that begin at a position, and their casts.
    void project(std::size_t first, std::size_t tokens, const RotaryTable<T>& rotary, GemmCasts<T>& casts);
    void attend_backward(const RotaryTable<T>& rotary, GemmCasts<T>& casts);
    void attention_backward(const RotaryTable<T>& rotary, GemmCasts<T>& casts);  // without its linears
    void normalise_backward(Norm<T>& norm);                                      // dh_ -> dn_

    TransformerShape shape_;
    AttentionShape attention_;
    BlockTensors ids_;
    const Matrix<T>*q_cast_ = nullptr, *k_cast_ = nullptr, *v_cast_ = nullptr, *p_cast_ = nullptr;
    Matrix<T> qkv_, y_, dh_, dn_, dq_, dk_, dv_;
};

}  // namespace fp8lab
