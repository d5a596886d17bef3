// A decoder-only model: embedding, blocks, norm, head. What models differ in are their feed-forward parts.
#pragma once

#include "core/nn/models/decoder/block.h"

namespace fp8lab {

template <class T>
class Decoder : public Model<T> {
  public:
    Decoder(const TransformerShape& shape, ModelPlan plan, const MakeFeedForward<T>& part);
    Decoder(const Decoder&) = delete;  // parameters and tensors are pointed to
    Decoder& operator=(const Decoder&) = delete;

    const ModelPlan& plan() const override { return plan_; }
    std::span<const Parameter<T>> parameters() override { return parameters_; }
    std::span<const T> values(TensorId id) const override { return tensors_[id.index]->values; }
    void initialise(std::uint64_t seed) override;
    const Matrix<T>& forward(const Batch& batch, GemmCasts<T>& casts) override;
    const Matrix<T>& decode(const Batch& batch, GemmCasts<T>& casts, KvState<T>& state) override;
    void backward(const Matrix<T>& dy, GemmCasts<T>& casts) override;

  protected:
    const TransformerShape& shape() const { return shape_; }
    std::vector<Block<T>>& blocks() { return blocks_; }
    const Matrix<T>& embedding() const { return embedding_; }

  private:
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
};

// The first tensor of a GEMM of the block (1-based): "1.down.x" of block 1 and ".down.x".
TensorId tensor_of(const ModelPlan& plan, std::size_t block, const std::string& name);

}  // namespace fp8lab
