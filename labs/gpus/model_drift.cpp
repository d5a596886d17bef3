// Copies of the weights without sharding.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "core/formats/codec.h"
#include "core/nn/optimizer.h"
#include "core/nn/streams.h"
#include "core/nn/tasks.h"
#include "core/ranks/sums.h"
#include "core/tensors/inflate.h"
#include "core/threads/ask.h"
#include "labs/gpus/model_sums.h"
#include "labs/gpus/model_training.h"

namespace fp8lab::gpus {
namespace {

constexpr const char* kDriftRecipe = "current:master=none:round_update=stochastic";
constexpr float kHeadroom = 4;   // of the constant scale, as in core/trainer/arm.cpp
constexpr int kDriftTail = 100;  // steps

// One rank: all weights, all moments, and the seed of its dice.
struct Copy {
    Pass pass;
    std::vector<Moments> moments;
    std::vector<float> scales;  // by parameter; 0: kept in FP32
    std::uint64_t dice = 0;

    Copy(const TrainSpec& spec, std::uint64_t seed) : pass(spec), dice(seed) {
        moments.resize(parameters().size());
        for (std::size_t p = 0; p < parameters().size(); ++p) {
            const auto operand = plan().parameters[p].operand;
            const float largest = operand ? amax(parameters()[p].value) : 0;
            scales.push_back(largest > 0 ? 448 / (kHeadroom * largest) : 0);
            if (scales.back() > 0) pass.casts.fix_scale(*operand, scales.back());
        }
        store(Rounding::nearest, 0);
    }
    const ModelPlan& plan() const { return pass.model->plan(); }
    std::span<const Parameter<float>> parameters() { return pass.model->parameters(); }
    void store(Rounding rounding, int step) {
        for (std::size_t p = 0; p < scales.size(); ++p) {
            if (scales[p] == 0) continue;
            const std::span<float> w = parameters()[p].value;
            quantize(find_format("e4m3"), w, w,
                     {.rounding = rounding,
                      .overflow = Overflow::saturate,
                      .scale = scales[p],
                      .seed = dice,
                      .stream = stream(Draw::update, plan().ordinal(*plan().parameters[p].operand), step)});
        }
    }
    void update(int step) {
        const TrainSpec& spec = pass.spec;
        const OptimizerStep how{.lr = learning_rate(spec, step),
                                .step = step,
                                .beta1 = spec.beta1,
                                .beta2 = spec.beta2,
                                .eps = spec.eps};
        for (std::size_t p = 0; p < moments.size(); ++p)
            fp8lab::update(how, parameters()[p].value, parameters()[p].gradient, moments[p]);
        store(Rounding::stochastic, step);
    }
    std::vector<float> weights() {
        std::vector<float> out;
        for (std::size_t p = 0; p < scales.size(); ++p)
            if (scales[p] > 0)
                out.insert(out.end(), parameters()[p].value.begin(), parameters()[p].value.end());
        return out;
    }
};

// The same mean for all: of matrices summed as `sum` says, of biases in FP32.
void share_gradients(std::vector<Copy>& copies, const RankSum& sum) {
    for (std::size_t p = 0; p < copies.front().moments.size(); ++p) {
        std::vector<std::span<const float>> all;
        for (Copy& copy : copies) all.emplace_back(copy.parameters()[p].gradient);
        std::vector<float> mean(all.front().size());
        sum_over_ranks(copies.front().scales[p] > 0 ? sum : find_rank_sum("fp32"), all, mean);
        for (float& g : mean) g /= static_cast<float>(copies.size());
        for (Copy& copy : copies) std::ranges::copy(mean, copy.parameters()[p].gradient.begin());
    }
}

struct Trained {
    std::vector<std::vector<float>> weights;  // by rank
    double tail = 0;
};
Trained train(const DriftSpec& what, bool own_dice) {
    const TrainSpec spec = task_spec(kDriftRecipe, what.seed);
    std::vector<Copy> copies;
    for (int rank = 0; rank < what.ranks; ++rank)
        copies.emplace_back(spec, spec.seed + (own_dice ? static_cast<std::uint64_t>(rank) << 32 : 0));
    const auto task = make_task(spec);
    Batch batch;
    const auto rows = static_cast<std::size_t>(spec.batch / what.ranks);
    std::vector<double> losses;
    for (int step = 0; step < what.steps; ++step) {
        ask_between();
        task->draw(step, batch);
        double loss = 0;
        for (int rank = 0; rank < what.ranks; ++rank) {
            const auto r = static_cast<std::size_t>(rank);
            loss += copies[r].pass.gradients(rows_of(batch, r, rows), step) / what.ranks;
        }
        losses.push_back(loss);
        share_gradients(copies, find_rank_sum(what.sum));
        for (Copy& copy : copies) copy.update(step);
    }
    Trained out;
    for (Copy& copy : copies) out.weights.push_back(copy.weights());
    const auto last = std::span(losses).last(std::min<std::size_t>(losses.size(), kDriftTail));
    out.tail = std::accumulate(last.begin(), last.end(), 0.0) / static_cast<double>(last.size());
    return out;
}

double apart_pct(const std::vector<float>& values, const std::vector<float>& from) {
    Distance distance;
    for (std::size_t i = 0; i < from.size(); ++i)
        distance.add(static_cast<double>(values[i]), static_cast<double>(from[i]));
    return distance.error_pct();
}

double most(const std::vector<DriftCopy>& copies, double DriftCopy::*pct) {
    double out = copies.empty() ? std::numeric_limits<double>::quiet_NaN() : 0;
    for (const DriftCopy& copy : copies) out = std::max(out, copy.*pct);
    return out;
}

}  // namespace

double Drift::most_same_pct() const { return most(copies, &DriftCopy::same_pct); }
double Drift::most_own_pct() const { return most(copies, &DriftCopy::own_pct); }

Drift drift_of(const DriftSpec& spec) {
    Drift out;
    const Trained same = train(spec, false), own = train(spec, true);
    for (std::size_t r = 0; r < own.weights.size(); ++r)
        out.copies.push_back({crc32(std::as_bytes(std::span(same.weights[r]))),
                              crc32(std::as_bytes(std::span(own.weights[r]))),
                              apart_pct(same.weights[r], same.weights[0]),
                              apart_pct(own.weights[r], own.weights[0])});
    out.same_tail = same.tail, out.own_tail = own.tail;
    return out;
}

}  // namespace fp8lab::gpus
