// The parameters of a transformer on the device, in the order of ModelPlan::parameters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/nn/model_plan.h"
#include "core/trainer/checkpoint.h"
#include "kernels/arm/arm_buffers.h"
#include "kernels/optimizer/parameters.h"

namespace fp8lab::cuda {

struct MatrixParameter {
    std::string name;
    Shape shape;
    Parameters master, m, v, gradient;
    std::size_t partials_at = 0;  // of the sums of squares of its gradient
};

struct VectorParameter {  // a gain
    std::string name;
    int count = 0;
    Buffer<float> value, m, v, gradient, before, partials;
    std::size_t partials_at = 0;
};

struct WeightTypes {  // of matrices that a GEMM reads
    Element kept = Element::f32, gradient = Element::f32, m = Element::f32, v = Element::f32;
};

class WeightList {
  public:
    WeightList() = default;
    WeightList(const ModelPlan& plan, const WeightTypes& types, const ArmBuffers& memory);
    MatrixParameter& matrix(std::string_view name);
    VectorParameter& vector(std::string_view name);
    std::vector<MatrixParameter*> matrices();
    std::vector<VectorParameter*> vectors();
    std::size_t square_partials() const { return square_partials_; }  // of all gradients

    std::vector<ParameterCheckpoint> read() const;
    void write(const std::vector<ParameterCheckpoint>& values);
    std::string nonfinite() const;  // matrices that a GEMM reads first; empty: none

  private:
    struct Entry {
        bool read_by_gemm = false;
        std::unique_ptr<MatrixParameter> matrix;
        std::unique_ptr<VectorParameter> vector;
    };
    std::vector<Entry> entries_;
    std::size_t square_partials_ = 0;
};

}  // namespace fp8lab::cuda
