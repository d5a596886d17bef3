// The usual feed-forward part: down act(gate_up x), act one of the forms SwigluForm.
#pragma once

#include "core/nn/models/decoder/feed_forward.h"

namespace fp8lab {

template <class T>
class GatedMlp final : public FeedForward<T> {
  public:
    // The first tensors of its two GEMMs.
    GatedMlp(std::size_t d, std::size_t ffn, TensorId gate_up_id, TensorId down_id);

    Matrix<T>& x() override { return gate_up.x; }
    void forward(GemmCasts<T>& casts, Product<T> product, Matrix<T>& y) override;
    void backward(const Matrix<T>& dy, GemmCasts<T>& casts, Matrix<T>& dx) override;
    void list(std::vector<Parameter<T>>& parameters, std::vector<const Matrix<T>*>& tensors) override;
    void initialise(const InitialWeights<T>& weights) override;

    Linear<T> gate_up, down;

  private:
    Matrix<T> gates_, a_, da_;
    bool smooth_ = false;
    std::vector<T> scales_;  // of the channels, with SwigluForm::smooth
    Matrix<T> scaled_w_;     // the weights of down divided by them
};

// "b.gate_up" and "b.down" of the plan, or with a prefix "e0." "b.e0.gate_up".
void plan_gated_mlp(ModelPlan& plan, int block, const std::string& prefix, std::size_t d, std::size_t ffn);

}  // namespace fp8lab
