#include "core/inference/methods/gptq.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/inference/methods/column_cast.h"
#include "core/nn/blas.h"

namespace fp8lab {
namespace {

using Square = Eigen::MatrixXd;

// H without damping. Products of float32 values are exact in float64.
Square gram_of(const Matrix<float>& x) {
    const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> inputs(
        x.values.data(), static_cast<Eigen::Index>(x.rows), static_cast<Eigen::Index>(x.cols));
    const Square wide = inputs.cast<double>();
    Square h = wide.transpose() * wide;
    return h;
}

// U of H^-1 = U^T U.
Square upper_factor(Square h, double damp, const std::string& layer) {
    for (Eigen::Index j = 0; j < h.rows(); ++j)
        if (h(j, j) == 0) h(j, j) = 1;
    h.diagonal().array() += damp * h.diagonal().mean();
    const Eigen::LLT<Square> factor(h);
    const auto refused = [&] {
        return usage_error("layer " + layer,
                           fmt::format("GPTQ: X^T X with damping {} is not positive definite: more "
                                       "training rows or a larger --damp are needed",
                                       damp));
    };
    if (factor.info() != Eigen::Success) throw refused();
    const Square inverse = factor.solve(Square::Identity(h.rows(), h.cols()));
    const Eigen::LLT<Square> inverse_factor(inverse);
    if (inverse_factor.info() != Eigen::Success || !inverse.allFinite()) throw refused();
    return inverse_factor.matrixL().transpose();
}

}  // namespace

Matrix<float> gptq(const LowFormat& format, const Matrix<float>& w, const Matrix<float>& x, double damp,
                   const std::string& layer) {
    if (x.cols != w.cols || x.rows == 0)
        throw usage_error("layer " + layer, fmt::format("GPTQ needs inputs of {} columns", w.cols));
    if (!std::ranges::all_of(x.values, [](float v) { return std::isfinite(v); }))
        throw usage_error("layer " + layer, "GPTQ: an input of the training rows is not finite");
    const BlasUse blas;
    const Square u = upper_factor(gram_of(x), damp, layer);
    ColumnCast columns(format, w);
    Square left(static_cast<Eigen::Index>(w.rows), static_cast<Eigen::Index>(w.cols));  // what is not cast
    for (std::size_t r = 0; r < w.rows; ++r)
        for (std::size_t c = 0; c < w.cols; ++c)
            left(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(c)) =
                static_cast<double>(w.row(r)[c]);
    Matrix<float> out(w.rows, w.cols);
    std::vector<float> column(w.rows);
    for (std::size_t c = 0; c < w.cols; ++c) {
        const auto j = static_cast<Eigen::Index>(c);
        if (c % columns.width() == 0) {
            Matrix<float> next(w.rows, std::min(columns.width(), w.cols - c));
            for (std::size_t r = 0; r < w.rows; ++r)
                for (std::size_t k = 0; k < next.cols; ++k)
                    next.row(r)[k] = static_cast<float>(
                        left(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(c + k)));
            columns.start(next);
        }
        for (std::size_t r = 0; r < w.rows; ++r)
            column[r] = static_cast<float>(left(static_cast<Eigen::Index>(r), j));
        columns.cast(column);
        Eigen::VectorXd error(left.rows());
        for (std::size_t r = 0; r < w.rows; ++r) {
            out.row(r)[c] = column[r];
            const auto at = static_cast<Eigen::Index>(r);
            error(at) = (left(at, j) - static_cast<double>(column[r])) / u(j, j);
        }
        const Eigen::Index after = left.cols() - j - 1;
        left.rightCols(after).noalias() -= error * u.row(j).tail(after);
    }
    return out;
}

}  // namespace fp8lab
