// Random operands for the tests of the operations, and how results are compared.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/nn/matrix.h"
#include "core/nn/ops/attention.h"

namespace made {

inline fp8lab::Matrix<double> normal(std::size_t rows, std::size_t cols, std::uint64_t seed,
                                     double sigma = 1) {
    fp8lab::Matrix<double> m(rows, cols);
    fp8lab::Rng rng(seed);
    for (double& v : m.values) v = sigma * static_cast<double>(rng.normal());
    return m;
}

inline std::vector<double> normal_vector(std::size_t n, std::uint64_t seed) {
    return normal(1, n, seed).values;
}

inline fp8lab::Matrix<float> narrow(const fp8lab::Matrix<double>& m) {
    fp8lab::Matrix<float> out(m.rows, m.cols);
    for (std::size_t i = 0; i < m.values.size(); ++i) out.values[i] = static_cast<float>(m.values[i]);
    return out;
}
inline std::vector<float> narrow(const std::vector<double>& v) { return {v.begin(), v.end()}; }

// |got - expected| / |expected|
template <class A, class B>
double relative_error(const std::vector<A>& got, const std::vector<B>& expected) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double e = static_cast<double>(expected[i]), d = static_cast<double>(got[i]) - e;
        difference += d * d;
        norm += e * e;
    }
    return got.size() == expected.size() ? std::sqrt(difference / norm) : HUGE_VAL;
}
template <class A, class B>
double relative_error(const fp8lab::Matrix<A>& got, const fp8lab::Matrix<B>& expected) {
    return got.rows == expected.rows ? relative_error(got.values, expected.values) : HUGE_VAL;
}

// sum of out * weights: a loss whose gradient of `out` is `weights`.
inline double weighted(const fp8lab::Matrix<double>& out, const fp8lab::Matrix<double>& weights) {
    double sum = 0;
    for (std::size_t i = 0; i < out.values.size(); ++i) sum += out.values[i] * weights.values[i];
    return sum;
}

// Central differences of `loss` in every parameter.
inline std::vector<double> differences(std::vector<double>& parameters, const std::function<double()>& loss,
                                       double step = 1e-5) {
    std::vector<double> out(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const double kept = parameters[i];
        parameters[i] = kept + step;
        const double above = loss();
        parameters[i] = kept - step;
        const double below = loss();
        parameters[i] = kept;
        out[i] = (above - below) / (2 * step);
    }
    return out;
}

// One attention, forward and backward, with dout as the output's gradient.
template <class T>
struct Attention {
    fp8lab::AttentionShape shape;
    fp8lab::Matrix<T> q, k, v, dout, p = {}, out = {}, dv = {}, ds = {}, dq = {}, dk = {};

    void forward() {
        attention_probabilities(q, k, shape, p);
        attention_output(p, v, shape, out);
    }
    void backward() {
        attention_value_gradient(p, dout, shape, dv);
        attention_score_gradient(p, dout, v, shape, ds);
        attention_query_gradient(ds, k, shape, dq);
        attention_key_gradient(ds, q, shape, dk);
    }
};

inline Attention<double> attention(const fp8lab::AttentionShape& shape, double sigma = 1) {
    return {shape, normal(shape.rows(), shape.query_cols(), 1, sigma),
            normal(shape.rows(), shape.key_cols(), 2), normal(shape.rows(), shape.key_cols(), 3),
            normal(shape.rows(), shape.query_cols(), 4)};
}
inline Attention<float> narrow(const Attention<double>& a) {
    return {a.shape, narrow(a.q), narrow(a.k), narrow(a.v), narrow(a.dout)};
}

// Heads of their own, pairs and one group; a short odd context and one of two tiles, the second of them cut.
inline const std::vector<fp8lab::AttentionShape> kAttentionShapes = {
    {2, 7, 4, 4, 6}, {2, 7, 4, 2, 6}, {2, 7, 4, 1, 6}, {1, 67, 4, 2, 2}};

inline std::string text_of(const fp8lab::AttentionShape& s) {
    return std::to_string(s.context) + " tokens, " + std::to_string(s.heads) + " heads, " +
           std::to_string(s.kv_heads) + " of keys";
}

}  // namespace made
