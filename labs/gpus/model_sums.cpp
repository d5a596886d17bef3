#include "labs/gpus/model_sums.h"

#include <algorithm>
#include <bit>
#include <mutex>

#include "core/nn/optimizer.h"
#include "core/ranks/sums.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"

namespace fp8lab::gpus {
namespace {

constexpr const char* kRecipe = "current";

void train(Pass& pass) {
    const auto task = make_task(pass.spec);
    std::vector<Moments> moments(pass.model->parameters().size());
    Batch batch;
    for (int step = 0; step < kSumStep; ++step) {
        ask_between();
        task->draw(step, batch);
        pass.gradients(batch, step);
        const OptimizerStep how{.lr = learning_rate(pass.spec, step),
                                .step = step,
                                .beta1 = pass.spec.beta1,
                                .beta2 = pass.spec.beta2,
                                .eps = pass.spec.eps};
        for (std::size_t p = 0; p < moments.size(); ++p) {
            const Parameter<float>& parameter = pass.model->parameters()[p];
            update(how, parameter.value, parameter.gradient, moments[p]);
        }
    }
}

std::size_t place_of(int ranks) {
    return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(ranks)) - 1);
}

double at(const Sums& sums, std::string_view sum, int ranks,
          const std::array<double, kSumPlaces> SumCurve::*values) {
    const auto curve = std::ranges::find(sums.curves, sum, &SumCurve::id);
    if (curve == sums.curves.end() || ranks > kSumRanks) return std::numeric_limits<double>::quiet_NaN();
    return ((*curve).*values).at(place_of(ranks));
}

Sums compute(int seed) {
    const std::vector<std::vector<float>> gradients = gradients_of(seed);
    std::vector<std::span<const float>> views(gradients.begin(), gradients.end());
    Sums out{seed, {}};
    for (const RankSum& sum : rank_sums()) out.curves.push_back({.id = sum.id});
    const std::size_t tasks = out.curves.size() * kSumPlaces;
    parallel_for(tasks, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            // The largest first: the last ones are short.
            const std::size_t place = kSumPlaces - 1 - i / out.curves.size();
            SumCurve& curve = out.curves[i % out.curves.size()];
            const auto ranks = std::span(views).first(std::size_t{1} << place);
            std::vector<float> total(gradients.front().size());
            sum_over_ranks(find_rank_sum(curve.id), ranks, total);
            const Distance distance = distance_of_sum(total, ranks);
            curve.error_pct.at(place) = distance.error_pct(), curve.kept_pct.at(place) = distance.kept_pct();
        }
    });
    return out;
}

}  // namespace

double Sums::error_pct(std::string_view sum, int ranks) const {
    return at(*this, sum, ranks, &SumCurve::error_pct);
}
double Sums::kept_pct(std::string_view sum, int ranks) const {
    return at(*this, sum, ranks, &SumCurve::kept_pct);
}

TrainSpec task_spec(const std::string& recipe, int seed) {
    TrainOptions options;
    options.recipes = recipe;
    options.schedule = "cosine";
    options.seed = static_cast<std::uint64_t>(seed);
    return make_train_spec(options);
}

std::vector<std::vector<float>> gradients_of(int seed) {
    const TrainSpec spec = task_spec(kRecipe, seed);
    Pass trained(spec);
    train(trained);
    TrainSpec wide = spec;
    wide.batch = kSumRanks * kSumRows;
    Batch all;
    make_task(wide)->draw(kSumStep, all);
    const ModelPlan plan = model_plan(spec);
    const auto weight = static_cast<std::size_t>(
        std::ranges::find(plan.parameters, kWeight, &ParameterSpec::name) - plan.parameters.begin());
    std::vector<std::vector<float>> out;
    for (std::size_t rank = 0; rank < kSumRanks; ++rank) {
        ask_between();
        trained.gradients(rows_of(all, rank, kSumRows), kSumStep);
        const std::span<const float> gradient = trained.model->parameters()[weight].gradient;
        out.emplace_back(gradient.begin(), gradient.end());
    }
    return out;
}

Sums sums_of(int seed) {
    static std::mutex mutex;
    static Sums kept;
    {
        const std::lock_guard lock(mutex);
        if (kept.seed == seed && !kept.curves.empty()) return kept;
    }
    Sums out = compute(seed);
    const std::lock_guard lock(mutex);
    return kept = out;
}

}  // namespace fp8lab::gpus
