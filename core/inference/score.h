// How far the outputs of a lowered network are from those in FP32.
#pragma once

#include <vector>

#include "core/nn/matrix.h"
#include "core/nn/tasks.h"

namespace fp8lab {

// The outputs in FP32 and what is computed from them once.
struct Reference {
    Matrix<float> y;                 // (rows, outputs)
    bool classifies = true;          // y are logits
    std::vector<int> answers = {};   // the largest output of each row
    std::vector<int> right = {};     // by the targets; empty: not known
    std::vector<double> log_p = {};  // log softmax of y
    double size = 0;                 // sum y^2
};
// `targets`: one-hot (rows, outputs), or empty.
Reference reference_of(Matrix<float> y, bool classifies, const Matrix<float>& targets);

struct Score {
    // Networks that classify: mean over the rows of sum_c p_c (log p_c - log q_c) in nats, p the softmax in FP32, q the
    // lowered one's, as in llama.cpp's --kl-divergence. Others: sum (y - y_fp32)^2 / sum y_fp32^2.
    double divergence = 0;
    double accuracy_pct = 0;  // NaN where the right answers are not known
    int changed = 0;          // answers that differ from FP32's
    // Differences of the outputs: mean and largest |y - y_fp32|, and the mean divided by the mean of |y_fp32|.
    double mean_abs = 0, max_abs = 0, relative_pct = 0;
};
Score score_of(const Reference& reference, const Matrix<float>& y);
double divergence_of(const Reference& reference, const Matrix<float>& y);  // only that
// The same row by row, of a network that classifies: their mean is divergence_of().
std::vector<double> row_divergences_of(const Reference& reference, const Matrix<float>& y);

// The index of each row's largest output; the first of equal ones.
std::vector<int> answers_of(const Matrix<float>& y);
double accuracy_pct_of(const std::vector<int>& answers, const std::vector<int>& right);
// p1 - p2 of each row: the two largest probabilities.
std::vector<double> margins_of(const Matrix<float>& logits);

}  // namespace fp8lab
