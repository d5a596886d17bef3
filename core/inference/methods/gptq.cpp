#include "core/inference/methods/gptq.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/inference/methods/column_cast.h"
#include "core/nn/gemm.h"

namespace fp8lab {
namespace {

using Square = Eigen::MatrixXd;

// H without damping; of an input that is always 0 the diagonal is 1. Products of float32 values are exact in float64.
Square gram_of(const Matrix<float>& x) {
    const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> inputs(
        x.values.data(), static_cast<Eigen::Index>(x.rows), static_cast<Eigen::Index>(x.cols));
    const Square wide = inputs.cast<double>();
    Square h = wide.transpose() * wide;
    for (Eigen::Index j = 0; j < h.rows(); ++j)
        if (h(j, j) == 0) h(j, j) = 1;
    return h;
}

// U of H^-1 = U^T U.
Square upper_factor(Square h, double damp, const std::string& layer) {
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

// The columns of w in the order of their casts.
std::vector<std::size_t> casts_order(const Square& h, ColumnOrder order) {
    std::vector<std::size_t> out(static_cast<std::size_t>(h.rows()));
    std::iota(out.begin(), out.end(), 0);
    if (order == ColumnOrder::act)
        std::ranges::stable_sort(out, std::greater(), [&](std::size_t c) {
            return h(static_cast<Eigen::Index>(c), static_cast<Eigen::Index>(c));
        });
    return out;
}

Square wide_of(const Matrix<float>& w) {
    Square out(static_cast<Eigen::Index>(w.rows), static_cast<Eigen::Index>(w.cols));
    for (std::size_t r = 0; r < w.rows; ++r)
        for (std::size_t c = 0; c < w.cols; ++c)
            out(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(c)) =
                static_cast<double>(w.row(r)[c]);
    return out;
}

Matrix<float> part_of(const Square& columns, std::size_t first, std::size_t count) {
    Matrix<float> out(static_cast<std::size_t>(columns.rows()), count);
    for (std::size_t r = 0; r < out.rows; ++r)
        for (std::size_t k = 0; k < count; ++k)
            out.row(r)[k] = static_cast<float>(
                columns(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(first + k)));
    return out;
}

// The casts of the columns, with the scales of their blocks.
class Casts {
  public:
    // `wide`: w.
    Casts(const LowFormat& format, const Matrix<float>& w, const Square& wide, ColumnOrder order)
        : cols_(w.cols), ahead_(order == ColumnOrder::act) {
        blocks_.emplace_back(format, w);
        width_ = blocks_.front().width();
        if (!ahead_) return;
        while (blocks_.size() * width_ < cols_) blocks_.push_back(blocks_.front());
        for (std::size_t b = 0; b < blocks_.size(); ++b) start(blocks_[b], b * width_, wide);
    }
    // `now`: all columns as they are when column c of w is reached.
    const ColumnCast& at(std::size_t c, const Square& now) {
        if (ahead_) return blocks_[c / width_];
        if (c % width_ == 0) start(blocks_.front(), c, now);
        return blocks_.front();
    }

  private:
    void start(ColumnCast& block, std::size_t first, const Square& columns) const {
        block.start(part_of(columns, first, std::min(width_, cols_ - first)));
    }
    std::vector<ColumnCast> blocks_;  // one for all where scales are computed on the way
    std::size_t cols_, width_ = 0;
    bool ahead_;
};

}  // namespace

ColumnOrder find_column_order(std::string_view name, std::string_view where) {
    return parse_named(kColumnOrders, "order of columns", name, where);
}

Matrix<float> gptq(const LowFormat& format, const Matrix<float>& w, const Matrix<float>& x, double damp,
                   const std::string& layer, ColumnOrder order) {
    if (x.cols != w.cols || x.rows == 0)
        throw usage_error("layer " + layer, fmt::format("GPTQ needs inputs of {} columns", w.cols));
    if (!std::ranges::all_of(x.values, [](float v) { return std::isfinite(v); }))
        throw usage_error("layer " + layer, "GPTQ: an input of the training rows is not finite");
    const BlasUse blas;
    const Square h = gram_of(x);
    const std::vector<std::size_t> columns = casts_order(h, order);
    const Square u = upper_factor(h(columns, columns), damp, layer);
    Square left = wide_of(w);  // what is not cast
    Casts casts(format, w, left, order);
    left = left(Eigen::all, columns).eval();
    Matrix<float> out(w.rows, w.cols);
    std::vector<float> column(w.rows);
    for (std::size_t i = 0; i < w.cols; ++i) {
        const auto j = static_cast<Eigen::Index>(i);
        for (std::size_t r = 0; r < w.rows; ++r)
            column[r] = static_cast<float>(left(static_cast<Eigen::Index>(r), j));
        casts.at(columns[i], left).cast(column);
        Eigen::VectorXd error(left.rows());
        for (std::size_t r = 0; r < w.rows; ++r) {
            out.row(r)[columns[i]] = column[r];
            const auto at = static_cast<Eigen::Index>(r);
            error(at) = (left(at, j) - static_cast<double>(column[r])) / u(j, j);
        }
        const Eigen::Index after = left.cols() - j - 1;
        left.rightCols(after).noalias() -= error * u.row(j).tail(after);
    }
    return out;
}

}  // namespace fp8lab
