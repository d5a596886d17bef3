// bench step --accumulate K: a step of K micro-batches, in turns with a step of one of them, which has its own update. Both
// have the times that the trainer takes.
#include <fmt/format.h>

#include "app/cli/bench/bench_step.h"
#include "app/cli/preparing.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/files/progress_line.h"

namespace fp8lab::cli {
namespace {

using Json = nlohmann::json;

constexpr int kMicroWarmUp = 10, kMicroRounds = 50;  // unless --repeat says otherwise

struct PartCosts {
    std::vector<ArmCost> whole, part;
};

std::vector<ArmCost> costs_of(Trainer& trainer) {
    std::vector<ArmCost> costs;
    for (const ArmSnapshot& arm : trainer.snapshot().arms) {
        if (!arm.cost) end_if_interrupted("before the first measurement");
        if (!arm.cost) throw Error(ErrorKind::backend, "bench step", "the trainer has no times of its steps");
        costs.push_back(*arm.cost);
    }
    return costs;
}

PartCosts measure_parts(Trainer& whole, Trainer& part, int rounds) {
    ProgressLine progress;
    for (int i = 0; i < kMicroWarmUp + rounds && !interrupted(); ++i) {
        if (progress.due()) progress.at(fmt::format("bench step: {} of {} rounds", i, kMicroWarmUp + rounds));
        whole.step(whole.steps_per_call());
        part.step(part.steps_per_call());
    }
    return {costs_of(whole), costs_of(part)};
}

double part_ms(const ArmCost& cost, std::string_view name) {
    for (const auto& [part, ms] : cost.parts)
        if (part == name) return ms;
    return 0;
}

}  // namespace

Json bench_step_parts(Backend& backend, const BenchOptions& options, bool json) {
    const TrainSpec whole =
        step_spec(options, options.recipe.empty() ? "bf16,delayed" : options.recipe, 1 << 20);
    TrainSpec part = whole;
    part.batch /= options.accumulate;
    part.accumulate = {};
    const auto all = backend.make_trainer(whole, told_on_stderr()),
               one = backend.make_trainer(part, told_on_stderr());
    const Interruptible keeps;
    const PartCosts costs = measure_parts(*all, *one, options.repeat > 0 ? options.repeat : kMicroRounds);
    Json out = json_header(backend.device(), whole.seed);
    out["bench"] = "step";
    out["layers"] = whole.layers;
    out["batch"] = whole.batch;
    out["micro_batches"] = options.accumulate;
    out["arms"] = Json::array();
    if (!json)
        fmt::print("{}\n{:<24}{:>10}{:>22}{:>12}{:>12}{:>10}\n", backend.device().name, "recipe", "ms/step",
                   "of one micro-batch", "its update", "bound", "ratio");
    for (std::size_t i = 0; i < whole.arms.size(); ++i) {
        const double step = costs.whole[i].step_ms, single = costs.part[i].step_ms,
                     update = part_ms(costs.part[i], "optimiser"),
                     bound = options.accumulate * (single - update) + update;
        Json row = {{"recipe", whole.arms[i].name},
                    {"median_ms", step},
                    {"iqr_ms", costs.whole[i].step_q3_ms - costs.whole[i].step_q1_ms},
                    {"micro_batch_ms", single},
                    {"optimiser_ms", update},
                    {"bound_ms", bound},
                    {"ratio_to_bound", step / bound}};
        for (const auto& [name, ms] : costs.whole[i].parts) row["parts_ms"][name] = ms;
        for (const auto& [name, ms] : costs.part[i].parts) row["micro_batch_parts_ms"][name] = ms;
        if (!json)
            fmt::print("{:<24}{:>10}{:>22}{:>12}{:>12}{:>10}\n", whole.arms[i].name, format_number(step),
                       format_number(single), format_number(update), format_number(bound),
                       format_number(step / bound, 4));
        out["arms"].push_back(std::move(row));
    }
    if (!json)
        fmt::print("bound: {} times a micro-batch's step without its update, and one update\n",
                   options.accumulate);
    return out;
}

}  // namespace fp8lab::cli
