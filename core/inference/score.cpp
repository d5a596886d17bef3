#include "core/inference/score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/base/error.h"

namespace fp8lab {
namespace {

// log of the softmax of a row, in float64.
void log_softmax(std::span<const float> row, std::span<double> out) {
    const auto top = static_cast<double>(*std::ranges::max_element(row));
    double sum = 0;
    for (const float v : row) sum += std::exp(static_cast<double>(v) - top);
    const double shift = top + std::log(sum);
    for (std::size_t c = 0; c < row.size(); ++c) out[c] = static_cast<double>(row[c]) - shift;
}

// Adds row r's sum_c p_c (log p_c - log q_c). `log_q`: room for a row.
void add_divergence(const Reference& reference, const Matrix<float>& y, std::size_t r,
                    std::span<double> log_q, double& sum) {
    log_softmax(y.row(r), log_q);
    for (std::size_t c = 0; c < y.cols; ++c) {
        const double log_p = reference.log_p[r * y.cols + c];
        sum += std::exp(log_p) * (log_p - log_q[c]);
    }
}

double relative_error(const Reference& reference, const Matrix<float>& y) {
    double sum = 0;
    for (std::size_t i = 0; i < y.values.size(); ++i) {
        const double d = static_cast<double>(y.values[i]) - static_cast<double>(reference.y.values[i]);
        sum += d * d;
    }
    return sum / reference.size;
}

}  // namespace

std::vector<int> answers_of(const Matrix<float>& y) {
    std::vector<int> out;
    for (std::size_t r = 0; r < y.rows; ++r)
        out.push_back(static_cast<int>(std::ranges::max_element(y.row(r)) - y.row(r).begin()));
    return out;
}

double accuracy_pct_of(const std::vector<int>& answers, const std::vector<int>& right) {
    if (right.empty()) return std::numeric_limits<double>::quiet_NaN();
    std::size_t hits = 0;
    for (std::size_t r = 0; r < right.size(); ++r) hits += answers[r] == right[r];
    return 100 * static_cast<double>(hits) / static_cast<double>(right.size());
}

std::vector<double> margins_of(const Matrix<float>& logits) {
    std::vector<double> out, row(logits.cols);
    for (std::size_t r = 0; r < logits.rows; ++r) {
        log_softmax(logits.row(r), row);
        std::ranges::partial_sort(row, row.begin() + std::min<std::ptrdiff_t>(2, std::ssize(row)),
                                  std::greater<>());
        out.push_back(std::exp(row[0]) - (row.size() > 1 ? std::exp(row[1]) : 0));
    }
    return out;
}

Reference reference_of(Matrix<float> y, bool classifies, const Matrix<float>& targets) {
    Reference out{std::move(y), classifies};
    for (const float v : out.y.values) out.size += static_cast<double>(v) * static_cast<double>(v);
    if (!classifies) return out;
    out.answers = answers_of(out.y);
    if (!targets.values.empty()) {
        if (targets.rows != out.y.rows || targets.cols != out.y.cols)
            throw usage_error("targets", "must have the shape of the outputs");
        out.right = answers_of(targets);
    }
    out.log_p.resize(out.y.values.size());
    for (std::size_t r = 0; r < out.y.rows; ++r)
        log_softmax(std::as_const(out.y).row(r), std::span(out.log_p).subspan(r * out.y.cols, out.y.cols));
    return out;
}

double divergence_of(const Reference& reference, const Matrix<float>& y) {
    if (!reference.classifies) return relative_error(reference, y);
    double sum = 0;
    std::vector<double> log_q(y.cols);
    for (std::size_t r = 0; r < y.rows; ++r) add_divergence(reference, y, r, log_q, sum);
    return sum / static_cast<double>(y.rows);
}

std::vector<double> row_divergences_of(const Reference& reference, const Matrix<float>& y) {
    std::vector<double> out(y.rows), log_q(y.cols);
    for (std::size_t r = 0; r < y.rows; ++r) add_divergence(reference, y, r, log_q, out[r]);
    return out;
}

Score score_of(const Reference& reference, const Matrix<float>& y) {
    Score out{.divergence = divergence_of(reference, y)};
    double sum = 0, size = 0;
    for (std::size_t i = 0; i < y.values.size(); ++i) {
        const double d =
            std::fabs(static_cast<double>(y.values[i]) - static_cast<double>(reference.y.values[i]));
        sum += d;
        size += std::fabs(static_cast<double>(reference.y.values[i]));
        out.max_abs = std::max(out.max_abs, d);
    }
    out.mean_abs = sum / static_cast<double>(y.values.size());
    out.relative_pct = 100 * sum / size;
    out.accuracy_pct = std::numeric_limits<double>::quiet_NaN();
    if (!reference.classifies) return out;
    const std::vector<int> answers = answers_of(y);
    out.accuracy_pct = accuracy_pct_of(answers, reference.right);
    for (std::size_t r = 0; r < answers.size(); ++r) out.changed += answers[r] != reference.answers[r];
    return out;
}

}  // namespace fp8lab
