// How far the sum of a gradient over N ranks is from the exact one, for each sum of core/ranks/sums.h.
//
// The gradients are real: dW2 (64 x 64) of the teacher task after 300 of 2,000 steps with recipe current on one rank. Each of
// 1,024 ranks then has 32 rows of its own and casts of its own; N ranks are the first N of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/nn/loss.h"
#include "core/nn/model.h"
#include "core/nn/recipe_casts.h"
#include "core/nn/tasks.h"
#include "core/nn/train_spec.h"

namespace fp8lab::gpus {

inline constexpr int kSumRanks = 1024, kSumRows = 32, kSumStep = 300;
inline constexpr int kSumPlaces = 11;         // 1, 2, 4, ..., 1,024 ranks
inline constexpr const char* kWeight = "w2";  // whose gradient is summed; also that of the table of ranks

struct SumCurve {
    std::string_view id;  // of rank_sums()
    std::array<double, kSumPlaces> error_pct = {}, kept_pct = {};
};
struct Sums {
    int seed = 0;
    std::vector<SumCurve> curves;  // empty: not computed yet; in the order of rank_sums()
    // NaN where it was not computed: more than 1,024 ranks.
    double error_pct(std::string_view sum, int ranks) const;
    double kept_pct(std::string_view sum, int ranks) const;
};

// The training of this lab without its ranks: the teacher task, 32-64-64-1, 256 rows, 2,000 steps, cosine.
TrainSpec task_spec(const std::string& recipe, int seed);

// A model of this task with casts of its own, for one batch after the other.
struct Pass {
    TrainSpec spec;
    std::unique_ptr<Model<float>> model;
    RecipeCasts casts;
    Matrix<float> dy;

    explicit Pass(const TrainSpec& of)
        : spec(of), model(make_model(of)), casts(of.arms.front(), model_plan(of), of.seed) {
        model->initialise(of.seed);
    }
    // Leaves them in model->parameters(); returns the loss.
    double gradients(const Batch& batch, int step) {
        casts.begin_step(step, {});
        const Matrix<float>& y = model->forward(batch, casts);
        const double loss = loss_and_gradient(spec.loss, y, batch, dy).loss;
        model->backward(dy, casts);
        casts.end_step();
        return loss;
    }
};

// The rows of one rank: of parts of `rows` rows each, the one with this number.
inline Batch rows_of(const Batch& batch, std::size_t part, std::size_t rows) {
    const auto& [x, y] = std::get<DenseBatch>(batch);
    DenseBatch out{Matrix<float>(rows, x.cols), Matrix<float>(rows, y.cols)};
    const auto copy = [part](const Matrix<float>& from, Matrix<float>& to) {
        std::copy_n(from.values.begin() + static_cast<std::ptrdiff_t>(part * to.values.size()),
                    to.values.size(), to.values.begin());
    };
    copy(x, out.x), copy(y, out.y);
    return out;
}

// gradients_of(seed)[r]: dW2 of rank r, 4,096 elements.
std::vector<std::vector<float>> gradients_of(int seed);
// Takes about half a second; the newest seed is kept.
Sums sums_of(int seed);

}  // namespace fp8lab::gpus
