#include "core/nn/ops/token_loss.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/nn/ops/gate_rows.h"
#include "core/nn/ops/loops.h"

namespace fp8lab {
namespace {

// What one row adds to the loss; the rows are summed in their order.
struct Term {
    double loss = 0;
    bool right = false;
};

// No logit before the target's is as large, and none after it is larger.
template <class T>
bool is_first_largest(const T* logits, std::size_t n, std::size_t target) {
    const T score = logits[target];
    unsigned above = 0;
    for (std::size_t c = 0; c < target; ++c) above += logits[c] >= score;
    for (std::size_t c = target + 1; c < n; ++c) above += logits[c] > score;
    return above == 0;
}

// `powers` receives the softmax's numerators; returns their sum.
template <class T>
T row_term(const T* logits, std::size_t n, std::size_t target, T* powers, Term& term) {
    const T top = largest(logits, n);
    std::copy(logits, logits + n, powers);
    exponential_row(powers, n, top);
    const T total = sum(powers, n);
    term.loss = std::log(static_cast<double>(total)) +
                (static_cast<double>(top) - static_cast<double>(logits[target]));
    term.right = !std::isnan(term.loss) && is_first_largest(logits, n, target);
    return total;
}

// dlogits may be null.
template <class T>
LossValue loss_of_rows(const Matrix<T>& logits, const TokenBatch& batch, Matrix<T>* dlogits) {
    const std::size_t n = logits.cols;
    std::size_t scored = 0;
    for (std::size_t r = 0; r < logits.rows; ++r) scored += batch.is_scored(r);
    const T share = T{1} / static_cast<T>(scored);
    std::vector<Term> terms(logits.rows);
    parallel_for(logits.rows, loop_grain(4 * n), [&](std::size_t begin, std::size_t end) {
        std::vector<T> unused(dlogits ? 0 : n);
        for (std::size_t r = begin; r < end; ++r) {
            T* const out = dlogits ? dlogits->row(r).data() : unused.data();
            if (!batch.is_scored(r)) {
                std::fill(out, out + n, T{0});
                continue;
            }
            const auto target = static_cast<std::size_t>(batch.targets[r]);
            const T total = row_term(logits.row(r).data(), n, target, out, terms[r]);
            if (!dlogits) continue;
            const T inverse = T{1} / total, at_target = (out[target] * inverse - T{1}) * share;
            for (std::size_t c = 0; c < n; ++c) out[c] = out[c] * inverse * share;
            out[target] = at_target;
        }
    });
    if (scored == 0) {
        constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
        return {kNone, kNone};
    }
    double loss = 0, right = 0;
    for (const Term& term : terms) {
        loss += term.loss;
        right += term.right ? 1 : 0;
    }
    return {loss / static_cast<double>(scored), right / static_cast<double>(scored)};
}

}  // namespace

template <class T>
LossValue token_loss(const Matrix<T>& logits, const TokenBatch& batch, Matrix<T>& dlogits) {
    dlogits.resize(logits.rows, logits.cols);
    return loss_of_rows(logits, batch, &dlogits);
}

template <class T>
LossValue token_loss(const Matrix<T>& logits, const TokenBatch& batch) {
    return loss_of_rows<T>(logits, batch, nullptr);
}

template LossValue token_loss(const Matrix<float>&, const TokenBatch&, Matrix<float>&);
template LossValue token_loss(const Matrix<double>&, const TokenBatch&, Matrix<double>&);
template LossValue token_loss(const Matrix<float>&, const TokenBatch&);
template LossValue token_loss(const Matrix<double>&, const TokenBatch&);

}  // namespace fp8lab
