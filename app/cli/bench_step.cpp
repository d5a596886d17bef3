// bench step: one training step of an MLP in every recipe, against the FP32 step, with the FP32 product of
// large matrices as the machine's ceiling. All in turns in one loop; statistics of every tensor are part of a
// step.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "app/cli/bench.h"
#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/nn/matrix.h"

namespace fp8lab::cli {
namespace {

constexpr int kDefaultRepeats = 21;
constexpr std::size_t kCeilingSize =
    1024;  // of the square product: large enough for full speed, done in milliseconds
constexpr std::string_view kReference = "fp32";

std::vector<int> parse_layers(const std::string& text) {
    std::vector<int> sizes;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) {
        if (part.empty() || part.size() > 6 || part.find_first_not_of("0123456789") != std::string::npos)
            throw usage_error("--layers", "'" + text + "' is not d0,...,dn");
        sizes.push_back(std::stoi(part));
    }
    return sizes;
}

TrainSpec spec_for(const BenchOptions& options, int repeats, bool gpu) {
    TrainOptions train;
    train.task = "noise";
    train.recipes = !options.recipe.empty() ? options.recipe
                    : gpu                   ? "bf16,delayed,current"
                                            : "bf16,delayed,current,mxfp8";
    if (!gpu) train.recipes = fmt::format("{},{}", kReference, train.recipes);
    if (!options.layers.empty()) train.layers = parse_layers(options.layers);
    if (options.batch > 0) train.batch = options.batch;
    train.steps = repeats + 1;
    return make_train_spec(train);
}

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

// A GPU times its own launches: warm up, then as many steps as were asked for.
std::vector<ArmCost> measure_on_gpu(Trainer& trainer, int repeats) {
    constexpr int kWarmUp = 40;
    const int call = trainer.steps_per_call();
    for (int done = 0; done < kWarmUp; done += call) trainer.step(call);
    trainer.snapshot();
    for (int launch = 0; launch < repeats && !interrupted(); ++launch) trainer.step(call);
    std::vector<ArmCost> costs;
    for (const ArmSnapshot& arm : trainer.snapshot().arms) costs.push_back(arm.cost.value_or(ArmCost{}));
    return costs;
}

Measured measure(Trainer& trainer, int repeats) {
    Matrix<float> a(kCeilingSize, kCeilingSize), b(kCeilingSize, kCeilingSize), product;
    Rng(1).fill_normal(a.values);
    Rng(2).fill_normal(b.values);
    Measured measured;
    measured.step_ms.resize(trainer.spec().arms.size());
    const auto ceiling = [&] { multiply_nt(a, b, product); };
    ceiling();
    trainer.step();
    trainer.snapshot();  // the first step of both warmed up
    for (int i = 0; i < repeats && !(i > 0 && interrupted()); ++i) {
        measured.ceiling_ms.push_back(time_ms(ceiling));
        trainer.step();
        const Snapshot snapshot = trainer.snapshot();
        for (std::size_t arm = 0; arm < snapshot.arms.size(); ++arm)
            for (const StepRecord& record : snapshot.arms[arm].records)
                measured.step_ms[arm].push_back(record.step_ms);
    }
    return measured;
}

// One line an arm, against the first one.
nlohmann::json bench_step_on_gpu(Trainer& trainer, const DeviceInfo& device, int repeats, bool json) {
    const TrainSpec& spec = trainer.spec();
    const std::vector<ArmCost> costs = measure_on_gpu(trainer, repeats);
    nlohmann::json out = json_header(device, spec.seed);
    out["bench"] = "step";
    out["layers"] = spec.layers;
    out["batch"] = spec.batch;
    if (!json)
        fmt::print("{}\n{:<24}{:>10}{:>10}{:>12}{:>10}{:>10}  inside one step, ms\n", device.name, "recipe",
                   "ms/step", "IQR", "to " + spec.arms[0].name, "TFLOP/s", "GB");
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const ArmCost& c = costs[i];
        const double iqr = c.step_q3_ms - c.step_q1_ms, ratio = c.step_ms / costs[0].step_ms,
                     tflops = c.flop / c.step_ms / 1e9;
        nlohmann::json row = {{"recipe", spec.arms[i].name},
                              {"median_ms", c.step_ms},
                              {"iqr_ms", iqr},
                              {"steps", c.steps},
                              {"ratio_to_first", ratio},
                              {"tflops", tflops},
                              {"memory_bytes", c.memory_bytes}};
        std::string parts;
        for (const auto& [name, ms] : c.parts) {
            row["parts"][name] = ms;
            parts += fmt::format(" {} {}", name, format_number(ms));
        }
        out["arms"].push_back(std::move(row));
        if (!json)
            fmt::print("{:<24}{:>10}{:>10}{:>12}{:>10}{:>10} {}\n", spec.arms[i].name,
                       format_number(c.step_ms), format_number(iqr), format_number(ratio),
                       format_number(tflops), format_number(c.memory_bytes / 1e9), parts);
    }
    return out;
}

}  // namespace

nlohmann::json bench_step(const BenchOptions& options, const Globals&, bool json) {
    const int repeats = options.repeat > 0 ? options.repeat : kDefaultRepeats;
    const ChosenBackend chosen = choose_backend(options.backend);
    const bool gpu = chosen.backend->device().provenance != Provenance::cpu_emulated;
    const TrainSpec spec = spec_for(options, repeats, gpu);
    const auto trainer = chosen.backend->make_trainer(spec);
    if (gpu) return bench_step_on_gpu(*trainer, chosen.backend->device(), repeats, json);
    const Measured measured = measure(*trainer, repeats);
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
