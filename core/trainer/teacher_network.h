// Distillation (Hinton et al., arXiv 1503.02531, at temperature 1): a trained network of the same model tells the targets.
#pragma once

#include <memory>

#include "core/nn/loss.h"
#include "core/nn/model.h"

namespace fp8lab {

class TeacherNetwork {
  public:
    // Reads TrainSpec::teacher. Throws as load_weights(): it must have the model's shapes. SwiGLU has the form of the recipe
    // that it was trained in.
    explicit TeacherNetwork(const TrainSpec& spec);

    // y: the outputs for the batch. With p the softmax of the teacher's outputs, in FP32, and q that of y: the mean over
    // the rows of -sum p ln q, over tokens those that are scored, and dy its gradient (q - p) / rows. The accuracy is that
    // of the labels. Not smaller than the mean entropy of p.
    LossValue loss_and_gradient(const Matrix<float>& y, const Batch& batch, Matrix<float>& dy);

  private:
    std::unique_ptr<Model<float>> model_;
    SwigluForm swiglu_ = SwigluForm::plain;
    std::vector<float> p_;  // of one row
};

}  // namespace fp8lab
