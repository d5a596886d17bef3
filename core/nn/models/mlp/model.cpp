#include "core/nn/models/mlp/model.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>
#include <variant>

#include "core/nn/models/mlp/network.h"
#include "core/nn/models/mlp/tensors.h"

namespace fp8lab {
namespace {

template <class T>
class Mlp final : public Model<T> {
  public:
    explicit Mlp(const TrainSpec& spec)
        : plan_(mlp_plan(spec.layers)), network_(spec.layers, spec.activation) {
        for (Layer<T>& layer : network_.layers()) {
            parameters_.push_back({layer.w.values, layer.dw.values});
            parameters_.push_back({layer.b, layer.db});
        }
    }
    const ModelPlan& plan() const override { return plan_; }
    std::span<const Parameter<T>> parameters() override { return parameters_; }
    void initialise(std::uint64_t seed) override { network_.initialise(seed); }
    const Matrix<T>& forward(const Batch& batch, GemmCasts<T>& casts) override {
        const Matrix<float>& x = std::get<DenseBatch>(batch).x;
        if constexpr (std::is_same_v<T, float>) {
            return network_.forward(x, casts);
        } else {
            x_.resize(x.rows, x.cols);
            std::ranges::copy(x.values, x_.values.begin());
            return network_.forward(x_, casts);
        }
    }
    void backward(const Matrix<T>& dy, GemmCasts<T>& casts) override { network_.backward(dy, casts); }
    std::span<const T> values(TensorId id) const override {
        const MlpTensor tensor(id);
        const Layer<T>& layer = network_.layers()[static_cast<std::size_t>(tensor.layer) - 1];
        switch (tensor.tensor) {
            case TensorClass::x:
                return layer.x.values;
            case TensorClass::w:
                return layer.w.values;
            case TensorClass::dy:
                break;
        }
        return layer.dy.values;
    }

  private:
    ModelPlan plan_;
    Network<T> network_;
    std::vector<Parameter<T>> parameters_;
    Matrix<T> x_;
};

}  // namespace

std::string to_string(MlpTensor id) {
    constexpr std::array kNames = {"x", "w", "dy"};
    return kNames[static_cast<std::size_t>(id.tensor)] + std::to_string(id.layer);
}

ModelPlan mlp_plan(std::span<const int> sizes) {
    ModelPlan plan;
    plan.blocks = static_cast<int>(sizes.size()) - 1;
    for (int l = 1; l <= plan.blocks; ++l) {
        const auto in = static_cast<std::size_t>(sizes[static_cast<std::size_t>(l) - 1]),
                   out = static_cast<std::size_t>(sizes[static_cast<std::size_t>(l)]);
        const std::string w = to_string(MlpTensor{TensorClass::w, l});
        plan.add_linear({.gemm = std::to_string(l),
                         .x = to_string(MlpTensor{TensorClass::x, l}),
                         .w = w,
                         .dy = to_string(MlpTensor{TensorClass::dy, l}),
                         .parameter = w},
                        GemmRole::linear, l, out, in);
        plan.parameters.push_back({"b" + std::to_string(l), {out}});
    }
    return plan;
}

ModelEntry mlp_model() {
    return {.id = "mlp",
            .summary = "multilayer perceptron of --layers with --activation",
            .task = "teacher",
            .plan = [](const TrainSpec& spec) { return mlp_plan(spec.layers); },
            .make = [](const TrainSpec& spec) -> std::unique_ptr<Model<float>> {
                return std::make_unique<Mlp<float>>(spec);
            },
            .make_reference = [](const TrainSpec& spec) -> std::unique_ptr<Model<double>> {
                return std::make_unique<Mlp<double>>(spec);
            }};
}

}  // namespace fp8lab
