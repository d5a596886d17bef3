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
#include "core/base/read_number.h"
#include "core/base/units.h"
#include "core/nn/faults.h"
#include "core/nn/model.h"
#include "core/nn/pictures/digits.h"
#include "core/nn/streams.h"
#include "core/nn/tasks.h"
#include "core/nn/tokens/token_tasks.h"
#include "core/scaling/recipe_lists.h"
#include "core/scaling/side_cast.h"

namespace fp8lab {
namespace {

constexpr std::array kTasks = {Named{TaskKind::teacher, "teacher"}, Named{TaskKind::noise, "noise"},
                               Named{TaskKind::spiral, "spiral"},   Named{TaskKind::digits, "digits"},
                               Named{TaskKind::npy, "npy:X,Y"},     Named{TaskKind::text, "text"},
                               Named{TaskKind::copying, "copying"}, Named{TaskKind::zipf, "zipf"}};
constexpr std::array kActivations = {Named{Activation::tanh, "tanh"}, Named{Activation::gelu, "gelu"},
                                     Named{Activation::relu, "relu"}};
constexpr std::array kSchedules = {Named{Schedule::constant, "constant"}, Named{Schedule::cosine, "cosine"}};
constexpr std::array kOptimizers = {Named{OptimizerKind::adamw, "adamw"}, Named{OptimizerKind::sgd, "sgd"}};
constexpr std::array kLosses = {Named{LossKind::mse, "mse"}, Named{LossKind::cross_entropy, "cross-entropy"}};
constexpr std::array kWeightCaches = {Named{WeightCache::once, "once"}, Named{WeightCache::each, "each"},
                                      Named{WeightCache::stale, "stale"}};
constexpr std::array kAmaxOf = {Named{AmaxOf::max, "max"}, Named{AmaxOf::last, "last"},
                                Named{AmaxOf::each, "each"}};
constexpr std::array<std::string_view, 4> kSumFormats = {"fp32", "bf16", "e4m3", "e5m2"};

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
    std::vector<int> layers = {};
    Activation activation = Activation::tanh;
    LossKind loss = LossKind::mse;
    int batch = 256, steps = 2000;
    double lr = 2e-3;
    bool one_hot = false;
    Schedule schedule = Schedule::constant;
    double beta2 = 0.999, clip = 0;
    int vocabulary = 0;
};

TaskDefaults token_defaults(int vocabulary) {
    return {.loss = LossKind::cross_entropy,
            .batch = 8,
            .steps = 600,
            .lr = 5e-3,
            .one_hot = true,
            .schedule = Schedule::cosine,
            .beta2 = 0.95,
            .clip = 1,
            .vocabulary = vocabulary};
}

TaskDefaults task_defaults(const TrainSpec& spec) {
    switch (spec.task) {
        case TaskKind::teacher:
            return {.layers = {32, 64, 64, 1}};
        case TaskKind::noise:
            return {.layers = {768, 3072, 768}, .activation = Activation::gelu, .batch = 32, .lr = 1e-4};
        case TaskKind::spiral:
            return {.layers = {2, 64, 64, 2}, .loss = LossKind::cross_entropy, .one_hot = true};
        case TaskKind::digits:
            return {.layers = {kDigitPixels, 128, 64, 32, kDigitClasses},
                    .activation = Activation::relu,
                    .loss = LossKind::cross_entropy,
                    .one_hot = true,
                    .schedule = Schedule::cosine};
        case TaskKind::text:
            return token_defaults(static_cast<int>(corpus_of(spec.text_path).symbols.size()));
        case TaskKind::copying:
            return token_defaults(static_cast<int>(CopyingSequences::kSymbols));
        case TaskKind::zipf:
            return token_defaults(spec.vocabulary);
        case TaskKind::npy:
            break;
    }
    const DenseBatch data = load_npy_data(spec.x_path, spec.y_path);
    const bool one_hot = is_one_hot(data.y);
    return {.layers = {static_cast<int>(data.x.cols), 64, 64, static_cast<int>(data.y.cols)},
            .loss = one_hot ? LossKind::cross_entropy : LossKind::mse,
            .one_hot = one_hot};
}

int parse_vocabulary(std::string_view text) {
    int v = 0;
    if (!read_number(text, v) || v < ZipfLanguage::kSmallest || v > ZipfLanguage::kLargest)
        throw usage_error("--task", fmt::format("zipf:V takes a vocabulary of {} to {}, got '{}'",
                                                ZipfLanguage::kSmallest, ZipfLanguage::kLargest, text));
    return v;
}

void set_task(TrainSpec& spec, const std::string& text) {
    constexpr std::string_view kNpy = "npy:", kText = "text:", kZipf = "zipf:";
    if (text.starts_with(kZipf)) {
        spec.task = TaskKind::zipf;
        spec.vocabulary = parse_vocabulary(std::string_view(text).substr(kZipf.size()));
        return;
    }
    if (text.starts_with(kText)) {
        spec.task = TaskKind::text;
        spec.text_path = text.substr(kText.size());
        if (spec.text_path.empty()) throw usage_error("--task", "text:FILE names a file");
        return;
    }
    if (!text.starts_with(kNpy)) {
        spec.task = parse(kTasks, "--task", text);
        if (spec.task == TaskKind::npy) throw usage_error("--task", "npy:X,Y names two files");
        if (spec.task == TaskKind::zipf) spec.vocabulary = ZipfLanguage::kUsual;
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

void check_layers(const TrainSpec& spec, const TaskDefaults& task) {
    constexpr int kWidest = 65536;
    if (spec.layers.size() < 2) throw usage_error("--layers", "at least two sizes, d0,...,dn");
    for (const int size : spec.layers) in_range("--layers", size, 1, kWidest);
    const auto wrong = [&](std::string why) {
        return spec.task == TaskKind::npy ? input_error(spec.x_path, std::move(why))
                                          : usage_error("--layers", std::move(why));
    };
    const bool sizes_fixed =
        spec.task == TaskKind::spiral || spec.task == TaskKind::digits || spec.task == TaskKind::npy;
    if (sizes_fixed &&
        (spec.layers.front() != task.layers.front() || spec.layers.back() != task.layers.back()))
        throw wrong(fmt::format("the data have {} inputs and {} outputs, --layers has {}",
                                task.layers.front(), task.layers.back(), fmt::join(spec.layers, ",")));
    if (spec.loss == LossKind::cross_entropy && !task.one_hot) {
        const std::string why = "cross-entropy needs one-hot targets of two classes or more";
        throw spec.task == TaskKind::npy ? input_error(spec.y_path, why) : usage_error("--loss", why);
    }
}

// Rows of matrices, and these times the heads, are counted in 32 bits.
void check_tokens(const TrainSpec& spec) {
    constexpr std::int64_t kMost = 1 << 20;
    const int context = spec.sizes.at("context");
    const std::int64_t tokens = std::int64_t{spec.batch} * context;
    if (tokens > kMost)
        throw usage_error("--batch", fmt::format("{} sequences of {} tokens are {} a step; the most are {}",
                                                 spec.batch, context, tokens, kMost));
}

// Options without an effect are mistakes, as in a recipe.
void check_accumulation(const TrainSpec& spec, const TrainOptions& options) {
    const Accumulation& a = spec.accumulate;
    if (spec.batch % a.micro_batches != 0)
        throw usage_error("--accumulate", fmt::format("{} micro-batches do not divide a batch of {}",
                                                      a.micro_batches, spec.batch));
    const auto without_effect = [](std::string_view option, std::string_view value, std::string_view why) {
        throw usage_error(std::string(option), fmt::format("{} has no effect {}", value, why));
    };
    constexpr std::string_view kOne = "with --accumulate 1";
    if (a.micro_batches == 1 && a.format != "fp32") without_effect("--accumulate-in", a.format, kOne);
    if (a.micro_batches == 1 && a.weights == WeightCache::each)
        without_effect("--weight-cache", "each", kOne);
    if (options.amax_of.empty()) return;
    if (a.micro_batches == 1 && a.amax != AmaxOf::max) without_effect("--amax-of", options.amax_of, kOne);
    if (std::ranges::none_of(spec.arms, has_delayed_scale))
        without_effect("--amax-of", options.amax_of, "without an arm of delayed scaling");
}

void set_accumulation(TrainSpec& spec, const TrainOptions& options) {
    Accumulation& a = spec.accumulate;
    a.micro_batches = in_range("--accumulate", options.accumulate.value_or(1), 1, kMostMicroBatches);
    if (!options.accumulate_in.empty()) a.format = options.accumulate_in;
    if (std::ranges::find(kSumFormats, a.format) == kSumFormats.end())
        throw usage_error("--accumulate-in",
                          fmt::format("'{}' is none of {}", a.format, fmt::join(kSumFormats, ", ")));
    a.weights = parse_given(kWeightCaches, "--weight-cache", options.weight_cache).value_or(a.weights);
    a.amax = parse_given(kAmaxOf, "--amax-of", options.amax_of).value_or(a.amax);
}

void check_fit(const TrainSpec& spec, const TaskDefaults& task) {
    const ModelEntry& model = find_model(spec.model);
    if (model.tokens != (task.vocabulary > 0))
        throw usage_error("--task",
                          fmt::format("{} is no task of --model {}", to_string(spec.task), spec.model));
    if (spec.loss == LossKind::mse && model.tokens) throw usage_error("--loss", "tokens need cross-entropy");
    if (model.tokens)
        check_tokens(spec);
    else
        check_layers(spec, task);
    model.check(spec);
    const ModelPlan plan = model.plan(spec);
    for (const Recipe& arm : spec.arms) plan.check(arm), check_moments(spec, arm);
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

namespace {

// The options of the model with their defaults. One that belongs to another model is a mistake.
void set_sizes(TrainSpec& spec, const TrainOptions& options) {
    const ModelEntry& model = find_model(spec.model);
    for (const ModelOption& option : model.options) {
        const auto given = options.sizes.find(option.name);
        const int value = given == options.sizes.end() ? option.fallback : given->second;
        spec.sizes[std::string(option.name)] =
            in_range("--" + std::string(option.name), value, option.low, option.high);
    }
    const auto refuse = [&](std::string_view option) {
        throw usage_error("--" + std::string(option), fmt::format("is no option of --model {}", spec.model));
    };
    for (const auto& [name, value] : options.sizes)
        if (!spec.sizes.contains(name)) refuse(name);
    if (!model.tokens) return;
    if (options.layers) refuse("layers");
    if (!options.activation.empty()) refuse("activation");
}

}  // namespace

void check_moments(const TrainSpec& spec, const Recipe& recipe, std::string_view where) {
    if (has_narrow_moments(recipe) && spec.optimizer == OptimizerKind::sgd)
        throw usage_error(std::string(where),
                          fmt::format("recipe {}: m and v have no effect with optimizer sgd", recipe.base));
}

TrainSpec make_train_spec(const TrainOptions& options) {
    TrainSpec spec;
    spec.model = options.model;
    const ModelEntry& model = find_model(spec.model);
    set_sizes(spec, options);
    set_task(spec, options.task.empty() ? std::string(model.task) : options.task);
    spec.arms = parse_recipes(options.recipes, options.recipe_defaults);
    for (const Recipe& arm : spec.arms) check_trains(arm, "--recipe");
    const auto schedule = parse_given(kSchedules, "--schedule", options.schedule);
    spec.optimizer = parse(kOptimizers, "--optimizer", options.optimizer);
    spec.weight_decay = in_range("--weight-decay", options.weight_decay, 0.0, 1e6);
    spec.seed = options.seed;
    spec.init_from = options.init_from, spec.teacher = options.teacher;
    if (!options.poison.empty()) spec.poison = parse_poison(options.poison);
    spec.zero_last = parse_init(options.init);
    set_accumulation(spec, options);
    set_ranks(spec, options);
    // Names are checked before a file is read.
    const auto activation = parse_given(kActivations, "--activation", options.activation);
    const auto loss = parse_given(kLosses, "--loss", options.loss);
    const TaskDefaults task = task_defaults(spec);
    spec.vocabulary = task.vocabulary;
    spec.steps = in_range("--steps", options.steps.value_or(task.steps), 1, 1'000'000'000);
    spec.schedule = schedule.value_or(task.schedule);
    spec.layers = options.layers.value_or(task.layers);
    spec.activation = activation.value_or(task.activation);
    spec.loss = loss.value_or(task.loss);
    spec.batch = in_range("--batch", options.batch.value_or(task.batch), 1, 65536);
    if (!spec.devices.empty()) spec.batch *= spec.ranks.count;
    spec.lr = in_range("--lr", options.lr.value_or(task.lr), 0.0, 1e6);
    constexpr double kBelowOne = 1 - 1e-9;
    spec.beta1 = in_range("--beta1", options.beta1.value_or(spec.beta1), 0.0, kBelowOne);
    spec.beta2 = in_range("--beta2", options.beta2.value_or(task.beta2), 0.0, kBelowOne);
    spec.eps = in_range("--eps", options.eps.value_or(spec.eps), 0.0, 1.0);
    spec.clip = in_range("--clip", options.clip.value_or(task.clip), 0.0, 1e9);
    spec.warmup = in_range("--warmup", options.warmup.value_or(spec.warmup), 0, 1'000'000'000);
    if (!spec.teacher.empty() && spec.loss != LossKind::cross_entropy)
        throw usage_error("--teacher", "its probabilities are targets of cross-entropy; the loss is " +
                                           std::string(to_string(spec.loss)));
    check_fit(spec, task);
    check_faults(spec);
    check_accumulation(spec, options);
    check_ranks(spec, options);
    return spec;
}

namespace {

std::string task_text(const TrainSpec& spec) {
    if (spec.task == TaskKind::npy) return fmt::format("npy:{},{}", spec.x_path, spec.y_path);
    if (!spec.text_path.empty()) return "text:" + spec.text_path;
    if (spec.task == TaskKind::zipf) return fmt::format("zipf:{}", spec.vocabulary);
    return std::string(to_string(spec.task));
}

// What the model has: layers and activation of the MLP, the sizes of another.
std::string model_text(const TrainSpec& spec) {
    if (!find_model(spec.model).tokens)
        return fmt::format("--layers {} --activation {}", fmt::join(spec.layers, ","),
                           to_string(spec.activation));
    std::string text = "--model " + spec.model;
    for (const ModelOption& option : find_model(spec.model).options)
        text += fmt::format(" --{} {}", option.name, option.text(spec.sizes.at(std::string(option.name))));
    return text;
}

// Behind the others, and only where they are not the constants of older versions.
std::string optimizer_text(const TrainSpec& spec) {
    const TrainSpec usual;
    std::string text;
    const auto add = [&](std::string_view name, double value, double before) {
        if (value != before) text += fmt::format(" --{} {}", name, shortest(value));
    };
    add("beta1", spec.beta1, usual.beta1);
    add("beta2", spec.beta2, usual.beta2);
    add("eps", spec.eps, usual.eps);
    add("clip", spec.clip, usual.clip);
    add("warmup", spec.warmup, usual.warmup);
    return text;
}

std::string files_text(const TrainSpec& spec) {
    std::string text;
    if (!spec.init_from.empty()) text += " --init-from " + spec.init_from;
    if (!spec.teacher.empty()) text += " --teacher " + spec.teacher;
    return text;
}

// Only where they are not the defaults.
std::string accumulation_text(const TrainSpec& spec) {
    const Accumulation usual, &a = spec.accumulate;
    std::string text;
    if (a.micro_batches != usual.micro_batches) text += fmt::format(" --accumulate {}", a.micro_batches);
    if (a.format != usual.format) text += " --accumulate-in " + a.format;
    if (a.weights != usual.weights) text += fmt::format(" --weight-cache {}", to_string(a.weights));
    if (a.amax != usual.amax) text += fmt::format(" --amax-of {}", to_string(a.amax));
    return text;
}

}  // namespace

std::string command_line(const TrainSpec& spec) {
    std::vector<std::string> arms;
    for (const Recipe& arm : spec.arms) arms.push_back(recipe_text(arm));
    return fmt::format(
        "--recipe {} --task {} {} --batch {} --steps {} --lr {} --schedule {} "
        "--optimizer {} --weight-decay {} --loss {} --seed {}{}{}{}{}{}",
        fmt::join(arms, ","), task_text(spec), model_text(spec),
        spec.devices.empty() ? spec.batch : spec.batch / spec.ranks.count, spec.steps, shortest(spec.lr),
        to_string(spec.schedule), to_string(spec.optimizer), shortest(spec.weight_decay),
        to_string(spec.loss), spec.seed, optimizer_text(spec), files_text(spec), faults_text(spec),
        accumulation_text(spec), ranks_text(spec.ranks, spec.devices));
}

double learning_rate(const TrainSpec& spec, int step) {
    if (spec.schedule == Schedule::constant) return spec.lr;
    constexpr double kFloor = 0.02;  // of the peak, at the end
    const double t = step, warm_up = std::min(1.0, (t + 1) / std::max(spec.warmup, 1));
    const double cosine = (1 + std::cos(std::numbers::pi * t / spec.steps)) / 2;
    return spec.lr * warm_up * ((1 - kFloor) * cosine + kFloor);
}

std::string_view to_string(TaskKind kind) { return kind == TaskKind::npy ? "npy" : name_in(kTasks, kind); }
std::string_view to_string(Activation kind) { return name_in(kActivations, kind); }
std::string_view to_string(Schedule kind) { return name_in(kSchedules, kind); }
std::string_view to_string(OptimizerKind kind) { return name_in(kOptimizers, kind); }
std::string_view to_string(LossKind kind) { return name_in(kLosses, kind); }
std::string_view to_string(WeightCache kind) { return name_in(kWeightCaches, kind); }
std::string_view to_string(AmaxOf kind) { return name_in(kAmaxOf, kind); }

}  // namespace fp8lab
