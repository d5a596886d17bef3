#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "app/cli/bench/bench_step.h"
#include "app/cli/preparing.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/files/progress_line.h"

namespace fp8lab::cli {
namespace {

using Json = nlohmann::json;

constexpr int kProduct = 8192;  // of the square product that is the ceiling
constexpr int kProductRepeats = 20;
constexpr int kWarmUp = 40;     // launches: clocks, caches and the breakdown of a step come in them
constexpr int kLaunches = 200;  // unless --repeat says otherwise
constexpr double kMost_s = 15, kMostSweep_s = 3;  // a large shape gets fewer launches, never fewer than:
constexpr int kFewest = 20;
constexpr int kSliderRounds = 10, kSliderChanges = 10;  // a round

double tflops(double flop, double ms) { return ms > 0 ? flop / ms / 1e9 : 0; }

// Throws Error{backend} where the trainer has measured nothing.
std::vector<ArmCost> measure(Trainer& trainer, int launches, double most_s) {
    const int call = trainer.steps_per_call();
    ProgressLine progress;
    int done = 0;
    const auto launch = [&] {
        if (progress.due())
            progress.at(
                fmt::format("bench step: {} of {} launches", done, std::min(kWarmUp, launches) + launches));
        trainer.step(call);
        ++done;
    };
    for (int i = 0; i < std::min(kWarmUp, launches) && !interrupted(); ++i) launch();
    trainer.snapshot();
    const auto start = std::chrono::steady_clock::now();
    const auto late = [&] {
        return std::chrono::steady_clock::now() - start > std::chrono::duration<double>(most_s);
    };
    for (int i = 0; i < launches && !interrupted() && !(i >= kFewest && late()); ++i) launch();
    std::vector<ArmCost> costs;
    for (const ArmSnapshot& arm : trainer.snapshot().arms) {
        if (!arm.cost) end_if_interrupted("before the first measurement");
        if (!arm.cost) throw Error(ErrorKind::backend, "bench step", "the trainer has no times of its steps");
        costs.push_back(*arm.cost);
    }
    return costs;
}

// The cost of moving the history and margin sliders: rounds with a change before every launch alternate with rounds
// without one. The cost shows in the time of the whole, not in that of a step. null: no arm has delayed scaling, or a
// signal came first.
Json measure_sliders(Trainer& trainer, int graphs_before) {
    const auto delayed = std::ranges::find(trainer.spec().arms, ScaleSource::delayed, &Recipe::scale);
    if (delayed == trainer.spec().arms.end()) return nullptr;
    const int arm = static_cast<int>(delayed - trainer.spec().arms.begin());
    std::vector<double> still, moving;
    int changes = 0;
    for (int round = 0; round < 2 * kSliderRounds && !interrupted(); ++round) {
        const bool moves = round % 2 == 1;
        (moves ? moving : still).push_back(time_ms([&] {
            for (int i = 0; i < kSliderChanges; ++i) {
                if (moves && i % 2 == 0) trainer.set(SetHistory{arm, 1 + (37 * i + round) % 64});
                if (moves && i % 2 == 1) trainer.set(SetMargin{arm, (i + round) % 3});
                changes += moves ? 1 : 0;
                trainer.step(trainer.steps_per_call());
            }
            trainer.snapshot();  // waits for the card
        }));
    }
    if (moving.empty()) return nullptr;  // a signal came before there was anything to compare
    const double ratio = summarize(moving).median_ms / summarize(still).median_ms;
    return {{"changes", changes},
            {"ratio", ratio},
            {"graphs_captured",
             trainer.snapshot().arms[static_cast<std::size_t>(arm)].cost->graphs - graphs_before}};
}

struct Ceilings {
    Json lines = Json::array();
    double best_tflops = 0;
};

Ceilings measure_ceilings(Backend& backend, bool json) {
    Ceilings ceilings;
    for (const Timed& line : backend.time_products({kProduct, kProduct, kProduct}, kProductRepeats)) {
        Json row = {{"what", line.name}};
        if (!line.refusal.empty()) {
            row["refusal"] = line.refusal;
            ceilings.lines.push_back(std::move(row));
            continue;
        }
        const double speed = tflops(line.flop, line.median_ms);
        ceilings.best_tflops = std::max(ceilings.best_tflops, speed);
        row["median_ms"] = line.median_ms;
        row["iqr_ms"] = line.q3_ms - line.q1_ms;
        row["repeats"] = line.repeats;
        row["tflops"] = speed;
        if (!line.kernel.empty()) row["kernel"] = line.kernel;
        ceilings.lines.push_back(std::move(row));
        if (!json)
            fmt::print("product {0}x{0}x{0}, {1}: {2} ms, {3} TFLOP/s\n", kProduct, line.name,
                       format_number(line.median_ms), format_number(speed));
    }
    return ceilings;
}

// The arm that others are compared with: bf16 where there is one.
std::size_t reference_arm(const TrainSpec& spec) {
    const auto bf16 = std::ranges::find(spec.arms, "bf16", &Recipe::base);
    return bf16 == spec.arms.end() ? 0 : static_cast<std::size_t>(bf16 - spec.arms.begin());
}

Json arm_row(const ArmCost& cost, const std::string& recipe, const ArmCost& reference, double ceiling) {
    const double speed = tflops(cost.flop, cost.step_ms);
    Json row = {{"recipe", recipe},
                {"median_ms", cost.step_ms},
                {"q1_ms", cost.step_q1_ms},
                {"q3_ms", cost.step_q3_ms},
                {"iqr_ms", cost.step_q3_ms - cost.step_q1_ms},
                {"steps", cost.steps},
                {"flop", cost.flop},
                {"tflops", speed},
                {"ratio_to_reference", cost.step_ms / reference.step_ms},
                {"memory_bytes", cost.memory_bytes},
                {"graphs", cost.graphs},
                {"parts_ms", Json::object()}};
    if (ceiling > 0) row["ratio_to_ceiling"] = speed / ceiling;
    for (const auto& [name, ms] : cost.parts) row["parts_ms"][name] = ms;
    return row;
}

void print_arm(const ArmCost& cost, const Json& row) {
    std::string parts;
    for (const auto& [name, ms] : cost.parts)
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, format_number(ms, 3));
    const std::string of_ceiling = row.contains("ratio_to_ceiling")
                                       ? fmt::format("{:.1f}%", 100 * row["ratio_to_ceiling"].get<double>())
                                       : "-";
    fmt::print("{:<24}{:>10}{:>10}{:>10}{:>10}{:>12}{:>10}  {}\n", row["recipe"].get<std::string>(),
               format_number(cost.step_ms), format_number(cost.step_q3_ms - cost.step_q1_ms, 2),
               format_number(row["ratio_to_reference"].get<double>(), 3),
               format_number(row["tflops"].get<double>()), of_ceiling,
               format_bytes(static_cast<std::uint64_t>(cost.memory_bytes)), parts);
}

// ---- sweep ----

constexpr std::array kWidths = {256, 512, 1024, 2048, 4096};
constexpr std::array kBatches = {32, 512, 4096, 8192};

struct Point {
    int width, batch;
    std::vector<ArmCost> costs;  // BF16, FP8
    std::string refusal;         // why there is none
    double speedup() const { return refusal.empty() ? costs[0].step_ms / costs[1].step_ms : 0; }
};

Point measure_point(Backend& backend, int width, int batch, int launches) {
    Point point{width, batch, {}, {}};
    const BenchOptions shape{.layers = fmt::format("{0},{1},{0}", width, 4 * width), .batch = batch};
    try {
        const auto trainer =
            backend.make_trainer(step_spec(shape, "bf16,delayed", 1 << 20), told_on_stderr());
        point.costs = measure(*trainer, launches, kMostSweep_s);
    } catch (const Error& error) {  // too large for this card: the other sizes are worth measuring
        point.refusal = error.what();
    }
    return point;
}

// Those that were measured until a signal came.
std::vector<Point> measure_points(Backend& backend, int launches) {
    const Interruptible keeps;
    std::vector<Point> points;
    try {
        for (const int batch : kBatches) {
            for (const int width : kWidths) {
                end_if_interrupted();
                tell(fmt::format("D={}, batch {}", width, batch));
                points.push_back(measure_point(backend, width, batch, launches));
            }
        }
    } catch (const Interrupted&) {
        return points;
    }
    return points;
}

Json point_row(const Point& point) {
    Json row = {{"width", point.width}, {"batch", point.batch}};
    if (!point.refusal.empty()) {
        row["refusal"] = point.refusal;
        return row;
    }
    row["speedup"] = point.speedup();
    for (std::size_t arm = 0; arm < 2; ++arm) {
        const std::string name = arm == 0 ? "bf16" : "fp8";
        row[name + "_ms"] = point.costs[arm].step_ms;
        row[name + "_iqr_ms"] = point.costs[arm].step_q3_ms - point.costs[arm].step_q1_ms;
    }
    return row;
}

// The smallest width at which FP8 is faster; null where it never is.
Json crossover(const std::vector<Point>& points, int batch) {
    for (const Point& point : points)
        if (point.batch == batch && point.speedup() > 1) return point.width;
    return nullptr;
}

void print_sweep(const std::vector<Point>& points) {
    fmt::print("FP8 (delayed) against BF16, layers D-4D-D: times as fast\n{:>8}", "batch");
    for (const int width : kWidths) fmt::print("{:>10}", fmt::format("D={}", width));
    fmt::print("   FP8 is faster from\n");
    for (const int batch : kBatches) {
        fmt::print("{:>8}", batch);
        for (const Point& point : points)
            if (point.batch == batch)
                fmt::print("{:>10}", point.refusal.empty() ? fmt::format("{:.2f}", point.speedup()) : "-");
        const Json from = crossover(points, batch);
        fmt::print("   {}\n", from.is_null() ? "none of these" : fmt::format("D={}", from.get<int>()));
    }
    for (const Point& point : points)
        if (!point.refusal.empty())
            fmt::print("D={}, batch {}: {}\n", point.width, point.batch, point.refusal);
}

}  // namespace

Json bench_step_gpu(Backend& backend, const BenchOptions& options, bool json) {
    const int launches = options.repeat > 0 ? options.repeat : kLaunches;
    const std::string usual = options.state == "fp32" ? "bf16,delayed,current" : "bf16";
    const std::string recipes = options.recipe.empty() ? usual : options.recipe;
    const TrainSpec spec = step_spec(options, recipes, 1 << 20);
    const DeviceInfo device = backend.device();
    if (!json) fmt::print("{}\n", device.name);
    const Ceilings ceilings = options.brief ? Ceilings() : measure_ceilings(backend, json);
    const auto trainer = backend.make_trainer(spec, told_on_stderr());
    const Interruptible keeps;
    const std::vector<ArmCost> costs = measure(*trainer, launches, kMost_s);
    const auto snapshot = trainer->snapshot();
    const Json sliders = options.brief ? Json() : measure_sliders(*trainer, costs.back().graphs);
    const std::size_t reference = reference_arm(spec);
    Json out = json_header(device, spec.seed);
    out["bench"] = "step";
    out["layers"] = spec.layers;
    out["batch"] = spec.batch;
    out["state"] = options.state;
    out["reference"] = spec.arms[reference].name;
    out["arms"] = Json::array();
    if (!options.brief) out["ceilings"] = ceilings.lines, out["sliders"] = sliders;
    if (const std::string note = trainer->note(); !note.empty()) out["note"] = note;
    if (!json)
        fmt::print("{:<24}{:>10}{:>10}{:>10}{:>10}{:>12}{:>10}  inside one step, ms\n", "recipe", "ms/step",
                   "IQR", fmt::format("to {}", spec.arms[reference].base), "TFLOP/s", "of ceiling", "memory");
    for (std::size_t arm = 0; arm < costs.size(); ++arm) {
        Json row = arm_row(costs[arm], spec.arms[arm].name, costs[reference], ceilings.best_tflops);
        row["provenance"] = to_string(snapshot.arms[arm].provenance);
        if (!json) print_arm(costs[arm], row);
        out["arms"].push_back(std::move(row));
    }
    if (!json && !trainer->note().empty()) fmt::print("{}\n", trainer->note());
    if (!json && !sliders.is_null())
        fmt::print("{} changes of history and margin: {} times the time without, {} graphs captured\n",
                   sliders["changes"].get<int>(), format_number(sliders["ratio"].get<double>()),
                   sliders["graphs_captured"].get<int>());
    return out;
}

Json sweep_step(Backend& backend, const BenchOptions& options, bool json) {
    if (!options.layers.empty() || options.batch > 0 || !options.recipe.empty() || options.state != "fp32")
        throw usage_error("bench step --sweep", "chooses layers, batch, recipes and state itself");
    const std::vector<Point> points =
        measure_points(backend, options.repeat > 0 ? options.repeat : kLaunches);
    Json out = json_header(backend.device(), 1);
    out["bench"] = "step-sweep";
    out["recipes"] = {"bf16", "delayed"};
    out["points"] = Json::array();
    out["crossover"] = Json::array();
    for (const Point& point : points) out["points"].push_back(point_row(point));
    for (const int batch : kBatches)
        out["crossover"].push_back({{"batch", batch}, {"width", crossover(points, batch)}});
    if (!json) print_sweep(points);
    return out;
}

}  // namespace fp8lab::cli
