// bench step: one training step of an MLP in every recipe, compared with the FP32 step. The machine's ceiling is
// the FP32 product of large matrices. One loop runs them all alternately; statistics of every tensor are part of a
// step.
#include "app/cli/bench/bench_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "app/cli/train/train_options.h"
#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/files/progress_line.h"
#include "core/nn/matrix.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

constexpr int kStepRepeats = 21;
constexpr std::size_t kCeilingSize =
    1024;  // of the square product: large enough for full speed, done in milliseconds
constexpr std::string_view kReference = "fp32";

// fprop and wgrad of every layer, dgrad of all but the first.
double flop_per_step(const TrainSpec& spec) {
    double flop = 0;
    for (std::size_t l = 0; l + 1 < spec.layers.size(); ++l)
        flop += (l == 0 ? 4.0 : 6.0) * spec.batch * spec.layers[l] * spec.layers[l + 1];
    return flop;
}

struct Measured {
    std::vector<std::vector<double>> step_ms;  // by arm
    std::vector<double> ceiling_ms;
};

// A trainer for each arm, so that each is measured alone. The batches are the same: the seed is.
std::vector<std::unique_ptr<Trainer>> trainer_per_arm(Backend& backend, const TrainSpec& spec) {
    std::vector<std::unique_ptr<Trainer>> trainers;
    for (const Recipe& arm : spec.arms) {
        TrainSpec alone = spec;
        alone.arms = {arm};
        trainers.push_back(backend.make_trainer(alone));
    }
    return trainers;
}

// Only whole rounds count, so that every arm has the same number of measurements.
Measured measure(std::span<const std::unique_ptr<Trainer>> trainers, int repeats) {
    Matrix<float> a(kCeilingSize, kCeilingSize), b(kCeilingSize, kCeilingSize), product;
    Rng(1).fill_normal(a.values);
    Rng(2).fill_normal(b.values);
    Measured measured;
    measured.step_ms.resize(trainers.size());
    const auto ceiling = [&] { multiply_nt(a, b, product); };
    ProgressLine progress;
    const auto step_all = [&] {
        const AskBetween ask(progress.asker());
        for (const auto& trainer : trainers) trainer->step();
    };
    ceiling();
    progress.at("bench step: the first round warms up");
    step_all();
    for (const auto& trainer : trainers) trainer->snapshot();
    const Interruptible keeps;
    for (int i = 0; i < repeats; ++i) {
        progress.at(fmt::format("bench step: {} of {} rounds", i, repeats));
        const double ceiling_ms = time_ms(ceiling);
        try {
            step_all();
        } catch (const Interrupted&) {
        }
        if (interrupted()) break;
        measured.ceiling_ms.push_back(ceiling_ms);
        for (std::size_t arm = 0; arm < trainers.size(); ++arm) {
            const Snapshot snapshot = trainers[arm]->snapshot();
            for (const StepRecord& record : snapshot.arms.front().records)
                measured.step_ms[arm].push_back(record.step_ms);
        }
    }
    if (measured.ceiling_ms.empty()) end_if_interrupted("before the first measurement");
    return measured;
}

void check_device_options(const BenchOptions& options) {
    if (!options.devices.empty() && (options.sweep || options.brief || options.accumulate > 1))
        throw usage_error("bench step --devices", "takes no --sweep, --brief or --accumulate");
}

}  // namespace

TrainSpec step_spec(const BenchOptions& options, const std::string& recipes, int steps) {
    TrainOptions train;
    train.task = "noise";
    train.recipes = recipes;
    if (!options.layers.empty()) train.layers = parse_layers(options.layers);
    if (options.batch > 0) train.batch = options.batch;
    train.steps = steps;
    train.accumulate = options.accumulate;
    train.accumulate_in = options.accumulate_in;
    set_devices(train, options);
    TrainSpec spec = make_train_spec(train);
    if (options.state != "fp32" && options.state != "bf16")
        throw usage_error("--state", "'" + options.state + "' is neither fp32 nor bf16");
    if (options.state == "bf16") spec.state = StateType::bf16;
    return spec;
}

// The step of one GPU and that of all in one call: weak scaling is the ratio.
nlohmann::json bench_step_devices(Backend& backend, const BenchOptions& options, bool json) {
    const std::string recipes = options.recipe.empty() ? "bf16,delayed" : options.recipe;
    std::vector<int> layers;
    nlohmann::json out = time_devices(
        backend, options,
        [&](const BenchOptions& of) {
            TrainSpec spec = step_spec(of, recipes, 1 << 20);
            layers = spec.layers;
            return spec;
        },
        json);
    out["bench"] = "ddp";
    out["layers"] = layers;
    return out;
}

nlohmann::json bench_step(const BenchOptions& options, const Globals&, bool json) {
    check_device_options(options);
    if (!options.devices.empty()) return bench_step_devices(*first_backend(options).backend, options, json);
    const ChosenBackend chosen = choose_backend(options.backend);
    const bool gpu = chosen.backend->device().provenance != Provenance::cpu_emulated;
    if (options.sweep && !gpu)
        throw Error(ErrorKind::backend, "bench step --sweep",
                    "looks for the size at which FP8 becomes faster, which needs a GPU. " + chosen.reason);
    if (options.sweep) return sweep_step(*chosen.backend, options, json);
    if (options.brief && !gpu)
        throw Error(ErrorKind::backend, "bench step --brief",
                    chosen.reason.empty() ? "measures a GPU; the backend here is the CPU"
                                          : "measures a GPU. " + chosen.reason);
    if (options.accumulate > 1 && !gpu)
        throw Error(ErrorKind::backend, "bench step --accumulate",
                    chosen.reason.empty() ? "measures a GPU; the backend here is the CPU"
                                          : "measures a GPU. " + chosen.reason);
    if (options.accumulate > 1) return bench_step_parts(*chosen.backend, options, json);
    if (gpu) return bench_step_gpu(*chosen.backend, options, json);
    const int repeats = options.repeat > 0 ? options.repeat : kStepRepeats;
    const std::string recipes = options.recipe.empty() ? "bf16,delayed,current,mxfp8" : options.recipe;
    const TrainSpec spec = step_spec(options, fmt::format("{},{}", kReference, recipes), repeats + 1);
    const Measured measured = measure(trainer_per_arm(*chosen.backend, spec), repeats);
    const DeviceInfo device = chosen.backend->device();
    const Timing ceiling = summarize(measured.ceiling_ms), reference = summarize(measured.step_ms[0]);
    const auto gflops = [](double flop, const Timing& timing) { return flop / timing.median_ms / 1e6; };
    const double peak = gflops(2.0 * kCeilingSize * kCeilingSize * kCeilingSize, ceiling),
                 flop = flop_per_step(spec);

    nlohmann::json out = json_header(device, spec.seed);
    out["bench"] = "step";
    out["layers"] = spec.layers;
    out["batch"] = spec.batch;
    out["flop"] = flop;
    out["ceiling"] = to_json(ceiling);
    out["ceiling"]["what"] = fmt::format("FP32 product of two {0}x{0} matrices", kCeilingSize);
    out["ceiling"]["gflops"] = peak;
    if (!json)
        fmt::print("{}\nFP32 product {}x{}x{}: {} GFLOP/s\n{:<24}{:>10}{:>10}{:>10}{:>10}{:>12}\n",
                   device.name, kCeilingSize, kCeilingSize, kCeilingSize, format_number(peak), "recipe",
                   "ms/step", "IQR", "to fp32", "GFLOP/s", "of ceiling");
    for (std::size_t arm = 0; arm < spec.arms.size(); ++arm) {
        const Timing timing = summarize(measured.step_ms[arm]);
        nlohmann::json row = to_json(timing);
        const double ratio = timing.median_ms / reference.median_ms, speed = gflops(flop, timing);
        row["recipe"] = spec.arms[arm].name;
        row["ratio_to_fp32"] = ratio;
        row["gflops"] = speed;
        row["ratio_to_ceiling"] = speed / peak;
        out["arms"].push_back(std::move(row));
        if (!json)
            fmt::print("{:<24}{:>10}{:>10}{:>10}{:>10}{:>11.1f}%\n", spec.arms[arm].name,
                       format_number(timing.median_ms), format_number(timing.q3_ms - timing.q1_ms),
                       format_number(ratio), format_number(speed), 100 * speed / peak);
    }
    return out;
}

}  // namespace fp8lab::cli
