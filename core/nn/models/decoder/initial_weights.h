// The weights that a decoder starts from: N(0, 1 / fan_in), those that write to the residual stream divided by
// sqrt(2 blocks) besides. Each matrix has a random stream of its own.
#pragma once

#include <cmath>
#include <type_traits>

#include "core/base/rng.h"
#include "core/nn/models/decoder/linear.h"
#include "core/nn/streams.h"

namespace fp8lab {

template <class T>
class InitialWeights {
  public:
    InitialWeights(std::uint64_t seed, const ModelPlan& plan)
        : seed_(seed), plan_(plan), deep_(std::sqrt(2.0 * static_cast<double>(plan.blocks))) {}

    void draw(Matrix<T>& m, int layer, double sigma) const {
        Rng rng(seed_, stream(Draw::initial_weights, layer));
        if constexpr (std::is_same_v<T, float>)
            rng.fill_normal(m.values, static_cast<float>(sigma));
        else
            for (T& w : m.values) w = sigma * static_cast<T>(rng.normal());
    }
    void draw(Linear<T>& layer, double sigma) const { draw(layer.w, plan_.ordinal(layer.w_id), sigma); }
    void reads(Linear<T>& layer) const { of(layer, 1); }
    void writes(Linear<T>& layer) const { of(layer, deep_); }  // to the residual stream

  private:
    void of(Linear<T>& layer, double divisor) const {
        draw(layer, 1 / (divisor * std::sqrt(static_cast<double>(layer.w.cols))));
    }

    std::uint64_t seed_;
    const ModelPlan& plan_;
    double deep_;
};

}  // namespace fp8lab
