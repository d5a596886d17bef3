#include "app/cli/validate/report_parts.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/bench/bench_step.h"
#include "app/cli/preparing.h"
#include "app/cli/train/train_report.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/files/memory.h"
#include "core/files/progress_line.h"
#include "core/json/checksum.h"
#include "core/nn/memory/cpu_memory.h"
#include "core/scaling/recipe_lists.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

using Json = nlohmann::json;

constexpr int kSteps = 200;  // the tail is the second half
// A shape that both recordings have, and that is measured in seconds.
constexpr const char* kSpeedLayers = "1024,4096,1024";
constexpr int kSpeedBatch = 4096, kSpeedLaunches = 60;

Json finite_or_null(double value) {
    if (std::isfinite(value)) return value;
    return nullptr;
}

// bf16 first: gaps are against it.
std::string recipes_that_train() {
    std::string out = "bf16";
    for (const RecipeRow& row : recipe_rows())
        if (row.trains && row.recipe.name != "bf16") out += "," + row.recipe.name;
    return out;
}

TrainSpec short_training(const std::string& recipes) {
    TrainOptions options;
    options.steps = kSteps;
    options.recipes = recipes;
    return make_train_spec(options);
}

// Trains to the end; `what` is told.
Snapshot trained(Trainer& trainer, const std::string& what) {
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    while (trainer.steps_done() < kSteps && !trainer.all_stopped()) {
        progress.at(fmt::format("validate: {}, step {} of {}", what, trainer.steps_done(), kSteps));
        end_if_interrupted();
        trainer.step(std::min(trainer.steps_per_call(), kSteps - trainer.steps_done()));
    }
    return trainer.snapshot();
}

// Of every step, as they are printed: a bit that differs is another checksum.
std::string checksum_of(const ArmSnapshot& arm) {
    std::string losses;
    for (const StepRecord& record : arm.records) losses += shortest(record.loss) + "\n";
    return fnv_hash(losses);
}

Json arm_of(const ArmSummary& arm) {
    Json out = {{"recipe", arm.recipe},
                {"steps", arm.steps},
                {"first_loss", finite_or_null(arm.first_loss)},
                {"tail_loss", finite_or_null(arm.tail_loss)},
                {"gap_pct", finite_or_null(arm.gap_pct)},
                {"worst_underflow", nullptr},
                {"step_ms", finite_or_null(arm.median_step_ms)},
                {"first_nonfinite", nullptr}};
    if (!arm.worst_underflow.empty())
        out["worst_underflow"] = {{"tensor", arm.worst_underflow}, {"mean_pct", arm.worst_underflow_pct}};
    if (arm.stopped) out["first_nonfinite"] = {{"step", arm.stopped->step}, {"tensor", arm.stopped->tensor}};
    return out;
}

// One recipe on the GPU beside what the CPU gave.
Json beside_cpu(Backend& gpu, const Json& cpu) {
    const auto recipe = cpu["recipe"].get<std::string>();
    Json out = {
        {"recipe", recipe}, {"cpu_first_loss", cpu["first_loss"]}, {"cpu_tail_loss", cpu["tail_loss"]}};
    try {
        const TrainSpec spec = short_training(recipe);
        const auto trainer = gpu.make_trainer(spec, told_on_stderr());
        TrainReport report(trainer->spec(), gpu.device());
        report.add(trained(*trainer, recipe + " on the GPU"));
        const ArmSummary arm = report.summaries().front();
        out["gpu_first_loss"] = finite_or_null(arm.first_loss);
        out["gpu_tail_loss"] = finite_or_null(arm.tail_loss);
        out["provenance"] = to_string(arm.provenance);
        out["difference_pct"] = nullptr;
        if (out["cpu_tail_loss"].is_number())
            out["difference_pct"] =
                finite_or_null(100 * (arm.tail_loss / out["cpu_tail_loss"].get<double>() - 1));
    } catch (const Error& error) {  // this GPU does not take the recipe; the others are worth comparing
        out["refusal"] = error.what();
    }
    return out;
}

}  // namespace

Json train_recipes() {
    const TrainSpec spec = short_training(recipes_that_train());
    const auto cpu = cpu_backend();
    const auto trainer = cpu->make_trainer(spec);
    const Snapshot end = trained(*trainer, fmt::format("{} recipes", spec.arms.size()));
    TrainReport report(trainer->spec(), cpu->device());
    report.add(end);
    Json out = {{"command_line", command_line(spec)},
                {"steps", kSteps},
                {"tail_steps", kTailSteps},
                {"needed_bytes", cpu_training_bytes(spec)},
                {"arms", Json::array()}};
    const auto arms = report.summaries();
    for (std::size_t i = 0; i < arms.size(); ++i) {
        out["arms"].push_back(arm_of(arms[i]));
        out["arms"].back()["losses_checksum"] = checksum_of(end.arms[i]);
    }
    return out;
}

Json compare_with_cpu(Backend& gpu, const Json& recipes) {
    Json out = {{"compared", true}, {"device", gpu.device().name}, {"arms", Json::array()}};
    for (const Json& arm : recipes["arms"]) out["arms"].push_back(beside_cpu(gpu, arm));
    return out;
}

const Recording* nearest_recording(std::span<const Recording> recordings, const std::string& gpu) {
    const auto same = std::ranges::find_if(recordings, [&](const Recording& recording) {
        return short_gpu_name(recording.gpu) == short_gpu_name(gpu);
    });
    if (same != recordings.end()) return &*same;
    return recordings.empty() ? nullptr : recordings.data();
}

Json compare_speed(Backend& gpu) {
    const BenchOptions shape{.layers = kSpeedLayers,
                             .recipe = "bf16,delayed,current",
                             .batch = kSpeedBatch,
                             .repeat = kSpeedLaunches,
                             .brief = true};
    const Json measured = bench_step_gpu(gpu, shape, true);
    const auto shipped_ones = shipped();
    const Recording* recording = nearest_recording(shipped_ones->recordings, gpu.device().name);
    const std::vector<int> layers = measured["layers"];
    const RecordedStep* step = recording ? recording->step(layers, kSpeedBatch) : nullptr;
    Json out = {{"measured", true}, {"layers", layers}, {"batch", kSpeedBatch}, {"recording", nullptr}};
    if (step)
        out["recording"] = {
            {"gpu", recording->gpu},
            {"date", recording->date},
            {"same_card", short_gpu_name(recording->gpu) == short_gpu_name(gpu.device().name)}};
    for (const Json& arm : measured["arms"]) {
        Json row = {{"recipe", arm["recipe"]}, {"median_ms", arm["median_ms"]},
                    {"iqr_ms", arm["iqr_ms"]}, {"memory_bytes", arm["memory_bytes"]},
                    {"recorded_ms", nullptr},  {"of_recorded", nullptr}};
        const RecordedArm* recorded = step ? step->find(arm["recipe"].get<std::string>()) : nullptr;
        if (recorded) {
            row["recorded_ms"] = recorded->median_ms;
            row["of_recorded"] = arm["median_ms"].get<double>() / recorded->median_ms;
        }
        out["arms"].push_back(std::move(row));
    }
    return out;
}

Json memory_used(const DeviceInfo& device, const Json& recipes) {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    constexpr double kKilobyte = 1024;  // of ru_maxrss
    Json out = {{"free_bytes", free_memory()},
                {"peak_bytes", static_cast<double>(usage.ru_maxrss) * kKilobyte},
                {"recipes_bytes", recipes["needed_bytes"]}};
    if (device.memory_bytes > 0) out["gpu_bytes"] = device.memory_bytes;
    return out;
}

}  // namespace fp8lab::cli
