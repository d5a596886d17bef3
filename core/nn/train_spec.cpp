#include "core/nn/train_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

#include "core/base/error.h"
#include "core/base/named.h"
#include "core/base/units.h"
#include "core/nn/tasks.h"

namespace fp8lab {
namespace {

constexpr std::array kTasks = {Named{TaskKind::teacher, "teacher"}, Named{TaskKind::noise, "noise"},
                               Named{TaskKind::spiral, "spiral"}, Named{TaskKind::npy, "npy:X,Y"}};
constexpr std::array kActivations = {Named{Activation::tanh, "tanh"}, Named{Activation::gelu, "gelu"},
                                     Named{Activation::relu, "relu"}};
constexpr std::array kSchedules = {Named{Schedule::constant, "constant"}, Named{Schedule::cosine, "cosine"}};
constexpr std::array kOptimizers = {Named{OptimizerKind::adamw, "adamw"}, Named{OptimizerKind::sgd, "sgd"}};
constexpr std::array kLosses = {Named{LossKind::mse, "mse"}, Named{LossKind::cross_entropy, "cross-entropy"}};

template <class Enum, std::size_t n>
Enum parse(const std::array<Named<Enum>, n>& names, std::string_view option, std::string_view text) {
    return parse_named(names, option.substr(2), text, option);
}

// Empty: left open.
template <class Enum, std::size_t n>
std::optional<Enum> parse_given(const std::array<Named<Enum>, n>& names, std::string_view option,
                                std::string_view text) {
    if (text.empty()) return std::nullopt;
    return parse(names, option, text);
}

// What a task fixes or suggests (cli.md, "Definitions that results depend on"); the
// sizes and the loss of npy come from its files.
struct TaskDefaults {
    std::vector<int> layers;
    Activation activation = Activation::tanh;
    LossKind loss = LossKind::mse;
    int batch = 256;
    double lr = 2e-3;
    bool one_hot = false;
};

TaskDefaults task_defaults(const TrainSpec& spec) {
    switch (spec.task) {
        case TaskKind::teacher:
            return {.layers = {32, 64, 64, 1}};
        case TaskKind::noise:
            return {.layers = {768, 3072, 768}, .activation = Activation::gelu, .batch = 32, .lr = 1e-4};
        case TaskKind::spiral:
            return {.layers = {2, 64, 64, 2}, .loss = LossKind::cross_entropy, .one_hot = true};
        case TaskKind::npy:
            break;
    }
    const DenseBatch data = load_npy_data(spec.x_path, spec.y_path);
    const bool one_hot = is_one_hot(data.y);
    return {.layers = {static_cast<int>(data.x.cols), 64, 64, static_cast<int>(data.y.cols)},
            .loss = one_hot ? LossKind::cross_entropy : LossKind::mse,
            .one_hot = one_hot};
}

void set_task(TrainSpec& spec, const std::string& text) {
    constexpr std::string_view kNpy = "npy:";
    if (!text.starts_with(kNpy)) {
        spec.task = parse(kTasks, "--task", text);
        if (spec.task == TaskKind::npy) throw usage_error("--task", "npy:X,Y names two files");
        return;
    }
    const std::size_t comma = text.find(',');
    if (comma == std::string::npos || comma == kNpy.size() || comma + 1 == text.size())
        throw usage_error("--task", "npy:X,Y takes two files, got '" + text + "'");
    spec.task = TaskKind::npy;
    spec.x_path = text.substr(kNpy.size(), comma - kNpy.size());
    spec.y_path = text.substr(comma + 1);
}

template <class T>
T in_range(std::string_view option, T value, T low, T high) {
    if (value >= low && value <= high) return value;  // NaN is in no range
    throw usage_error(std::string(option), fmt::format("{} is not in {}..{}", value, low, high));
}

void check_fit(const TrainSpec& spec, const TaskDefaults& task) {
    constexpr int kWidest = 65536;
    if (spec.layers.size() < 2) throw usage_error("--layers", "at least two sizes, d0,...,dn");
    for (const int size : spec.layers) in_range("--layers", size, 1, kWidest);
    const auto wrong = [&](std::string why) {
        return spec.task == TaskKind::npy ? input_error(spec.x_path, std::move(why))
                                          : usage_error("--layers", std::move(why));
    };
    for (const Recipe& arm : spec.arms) check_wide(arm, static_cast<int>(spec.layers.size()) - 1);
    const bool sizes_fixed = spec.task == TaskKind::spiral || spec.task == TaskKind::npy;
    if (sizes_fixed &&
        (spec.layers.front() != task.layers.front() || spec.layers.back() != task.layers.back()))
        throw wrong(fmt::format("the data have {} inputs and {} outputs, --layers has {}",
                                task.layers.front(), task.layers.back(), fmt::join(spec.layers, ",")));
    if (spec.loss == LossKind::cross_entropy && !task.one_hot) {
        const std::string why = "cross-entropy needs one-hot targets of two classes or more";
        throw spec.task == TaskKind::npy ? input_error(spec.y_path, why) : usage_error("--loss", why);
    }
}

}  // namespace

std::vector<int> parse_layers(std::string_view text) {
    std::vector<int> sizes;
    const char *at = text.data(), *const end = at + text.size();
    for (;;) {
        const auto [next, failure] = std::from_chars(at, end, sizes.emplace_back());
        if (failure != std::errc{} || (next != end && *next != ','))
            throw usage_error("--layers", fmt::format("'{}' is not d0,...,dn", text));
        if (next == end) return sizes;
        at = next + 1;
    }
}

TrainSpec make_train_spec(const TrainOptions& options) {
    TrainSpec spec;
    set_task(spec, options.task);
    spec.arms = parse_recipes(options.recipes, options.recipe_defaults);
    spec.schedule = parse(kSchedules, "--schedule", options.schedule);
    spec.optimizer = parse(kOptimizers, "--optimizer", options.optimizer);
    spec.steps = in_range("--steps", options.steps, 1, 1'000'000'000);
    spec.weight_decay = in_range("--weight-decay", options.weight_decay, 0.0, 1e6);
    spec.seed = options.seed;
    // Names are checked before a file is read.
    const auto activation = parse_given(kActivations, "--activation", options.activation);
    const auto loss = parse_given(kLosses, "--loss", options.loss);
    const TaskDefaults task = task_defaults(spec);
    spec.layers = options.layers.value_or(task.layers);
    spec.activation = activation.value_or(task.activation);
    spec.loss = loss.value_or(task.loss);
    spec.batch = in_range("--batch", options.batch.value_or(task.batch), 1, 65536);
    spec.lr = in_range("--lr", options.lr.value_or(task.lr), 0.0, 1e6);
    check_fit(spec, task);
    return spec;
}

std::string command_line(const TrainSpec& spec) {
    std::vector<std::string> arms;
    for (const Recipe& arm : spec.arms) arms.push_back(recipe_text(arm));
    const std::string task = spec.task == TaskKind::npy ? fmt::format("npy:{},{}", spec.x_path, spec.y_path)
                                                        : std::string(to_string(spec.task));
    return fmt::format(
        "--recipe {} --task {} --layers {} --activation {} --batch {} --steps {} --lr {} --schedule {} "
        "--optimizer {} --weight-decay {} --loss {} --seed {}",
        fmt::join(arms, ","), task, fmt::join(spec.layers, ","), to_string(spec.activation), spec.batch,
        spec.steps, shortest(spec.lr), to_string(spec.schedule), to_string(spec.optimizer),
        shortest(spec.weight_decay), to_string(spec.loss), spec.seed);
}

double learning_rate(const TrainSpec& spec, int step) {
    if (spec.schedule == Schedule::constant) return spec.lr;
    constexpr int kWarmUp = 100;
    constexpr double kFloor = 0.02;  // of the peak, at the end
    const double t = step, warm_up = std::min(1.0, (t + 1) / kWarmUp);
    const double cosine = (1 + std::cos(std::numbers::pi * t / spec.steps)) / 2;
    return spec.lr * warm_up * ((1 - kFloor) * cosine + kFloor);
}

std::string_view to_string(TaskKind kind) { return kind == TaskKind::npy ? "npy" : name_in(kTasks, kind); }
std::string_view to_string(Activation kind) { return name_in(kActivations, kind); }
std::string_view to_string(Schedule kind) { return name_in(kSchedules, kind); }
std::string_view to_string(OptimizerKind kind) { return name_in(kOptimizers, kind); }
std::string_view to_string(LossKind kind) { return name_in(kLosses, kind); }

}  // namespace fp8lab
