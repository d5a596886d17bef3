#include "core/inference/methods/awq.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/inference/lowering.h"

namespace fp8lab {
namespace {

constexpr int kExponents = 20;

std::vector<double> mean_sizes(const Matrix<float>& x) {
    std::vector<double> out(x.cols);
    for (std::size_t r = 0; r < x.rows; ++r)
        for (std::size_t c = 0; c < x.cols; ++c) out[c] += std::fabs(static_cast<double>(x.row(r)[c]));
    for (double& m : out) m /= static_cast<double>(x.rows);
    return out;
}

std::vector<float> divisors_of(const std::vector<double>& means, double exponent) {
    constexpr double kSmallest = 1e-4, kAboveZero = 1e-8;
    std::vector<double> s(means.size());
    std::ranges::transform(means, s.begin(),
                           [&](double m) { return std::max(std::pow(m + kAboveZero, exponent), kSmallest); });
    const auto [low, high] = std::ranges::minmax(s);
    const double middle = std::sqrt(low * high);
    std::vector<float> out(s.size());
    std::ranges::transform(s, out.begin(), [&](double v) { return static_cast<float>(v / middle); });
    return out;
}

Matrix<double> widened(const Matrix<float>& m) {
    Matrix<double> out(m.rows, m.cols);
    std::ranges::copy(m.values, out.values.begin());
    return out;
}

// |X D^T|^2 = sum of D H over D, H = X^T X: so that no product has as many rows as x.
double output_error(const Matrix<double>& d, const Matrix<double>& h) {
    Matrix<double> dh;
    multiply_nn(d, h, dh);
    double sum = 0;
    for (std::size_t i = 0; i < d.values.size(); ++i) sum += d.values[i] * dh.values[i];
    return sum;
}

}  // namespace

std::vector<float> awq_divisors(const LowFormat& format, const Matrix<float>& w, const Matrix<float>& x,
                                bool floor) {
    const std::vector<double> means = mean_sizes(x);
    const Matrix<double> wide = widened(x);
    Matrix<double> h, d(w.rows, w.cols);
    multiply_tn(wide, wide, h);
    std::vector<float> best;
    double least = std::numeric_limits<double>::infinity();
    Matrix<float> scaled(w.rows, w.cols);
    for (int i = 0; i < kExponents; ++i) {
        const std::vector<float> s = divisors_of(means, static_cast<double>(i) / kExponents);
        for (std::size_t r = 0; r < w.rows; ++r)
            for (std::size_t c = 0; c < w.cols; ++c) scaled.row(r)[c] = w.row(r)[c] * s[c];
        const Matrix<float> lowered = lowered_weights(scaled, format);
        for (std::size_t r = 0; r < w.rows; ++r)
            for (std::size_t c = 0; c < w.cols; ++c)
                d.row(r)[c] = static_cast<double>(lowered.row(r)[c]) / static_cast<double>(s[c]) -
                              static_cast<double>(w.row(r)[c]);
        const double error = output_error(d, h);
        if (best.empty() || error < least) best = s, least = error;
    }
    if (floor)
        for (std::size_t c = 0; c < best.size(); ++c)
            if (means[c] < static_cast<double>(kAwqFloor)) best[c] = 1;
    return best;
}

}  // namespace fp8lab
