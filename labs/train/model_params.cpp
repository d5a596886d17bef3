#include "labs/train/model_params.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "labs/table/training_rows.h"

namespace fp8lab::train {
namespace {

using table::Row;

// Both tasks of this lab have three linear layers (cli.md, "Definitions that results depend on").
constexpr std::array<std::string_view, 9> kTensors = {"x1",  "w1", "dy1", "x2", "w2",
                                                      "dy2", "x3", "w3",  "dy3"};
constexpr int kMostRows = 32768;  // of a batch

constexpr std::array<TensorClass, 3> kClasses = {TensorClass::x, TensorClass::w, TensorClass::dy};

constexpr std::array<Size, 4> kSizes = {
    {{kCpuSize, 768, 32}, {"1024", 1024, 4096}, {"4096", 4096, 8192}, {"8192", 8192, 16384}}};

bool delayed(const Params& params) { return parse_recipe(params.arm_b).scale == ScaleSource::delayed; }
bool has_delayed_arm(const Params& p) { return live::any_delayed({p.arm_a, p.arm_b, p.arm_c}); }
// Of weights between updates. A control that is as it was leaves the word to the options.
void apply_master(Recipe& recipe, const Params& params) {
    if (params.round_update != "nearest") recipe.round_update = Rounding::stochastic;
    if (params.master != "fp32")
        recipe.master = params.master == "bf16" ? MasterWeights::bf16 : MasterWeights::none;
}

bool narrow(const Recipe& recipe) { return recipe.fwd && width_bits(*recipe.fwd) <= 8; }

// Arm B's settings, each where the recipe has such a thing: a recipe without a history keeps its own text.
void apply_settings(Recipe& recipe, const Params& params) {
    if (recipe.scale == ScaleSource::delayed) {
        recipe.history = params.history;
        recipe.margin = params.margin;
        // An average or a percentile is in the options.
        if (params.algo == "most_recent") {
            if (recipe.algo == AmaxAlgo::ema || recipe.amax_percentile > 0)
                throw usage_error("options", "algo and the control Algorithm cannot both choose the amax");
            recipe.algo = AmaxAlgo::most_recent;
        }
        recipe.interval = params.interval;
    }
    apply_master(recipe, params);
    if (!narrow(recipe)) return;
    if (is_fp8(*recipe.fwd) && params.fwd != "recipe") recipe.fwd = &find_format(params.fwd);
    if (is_fp8(*recipe.bwd) && params.bwd != "recipe") recipe.bwd = &find_format(params.bwd);
    if (params.round != "recipe") {
        recipe.round = recipe.round_bwd =
            params.round == "nearest" ? Rounding::nearest : Rounding::stochastic;
    }
    recipe.overflow = params.overflow == "saturate" ? Overflow::saturate : Overflow::nonsaturate;
}

std::vector<Choice> fp8_choices() {
    return format_choices([](const FormatInfo& f) { return f.trains && is_fp8(f); },
                          {{"recipe", "Recipe's"}});
}

std::vector<Choice> tensor_choices() {
    std::vector<Choice> choices;
    for (const std::string_view name : kTensors) choices.push_back({std::string(name), std::string(name)});
    return choices;
}

constexpr const char* kNotDelayed =
    "History, margin and algorithm are settings of delayed scaling. Arm B does not use it.";

void add_arms(Params& p, std::vector<Row>& out) {
    const bool scaled = delayed(p);
    const table::Adder add{out, false, table::kActsAtNextStep}, if_delayed{out, false, table::kActsIfDelayed};
    add(choice({.name = "arm_a", .label = "Arm A", .help = "The reference."}, &p.arm_a, recipe_choices()));
    add(choice(
        {.name = "arm_b", .label = "Arm B", .help = "The experiment; the settings below are for this arm."},
        &p.arm_b, recipe_choices()));
    add(number({.name = "lr", .label = "Learning rate", .help = "The same for all arms."}, &p.lr, 1e-5, 1,
               true))
        .note = scaled ? "" : kNotDelayed;
    if_delayed(integer({.name = "history",
                        .label = "History",
                        .te_name = "amax_history_len",
                        .unit = "steps",
                        .help = "How many steps an amax stays in the history."},
                       &p.history, 1, 1024, true))
        .shown = scaled;
    if_delayed(
        integer({.name = "margin",
                 .label = "Margin",
                 .te_name = "margin",
                 .help = "Powers of two that stay free above the amax: scale = max * 2^-margin / amax."},
                &p.margin, -4, 8))
        .shown = scaled;
    if_delayed(
        choice({.name = "algo",
                .label = "Algorithm",
                .te_name = "amax_compute_algo",
                .help = "The scale is computed from the largest amax of the history, or from the newest."},
               &p.algo, {{"max", "max"}, {"most_recent", "most recent"}}))
        .shown = scaled;
    add.as_it_is(choice({.name = "tensor",
                         .label = "Show tensor",
                         .help = "The tensor of the histogram on the right. x: a layer's input, w: its "
                                 "weights, dy: the gradient of its output.",
                         .hidden = true,
                         .looks = true},
                        &p.tensor, tensor_choices()));
}

void add_casts(Params& p, std::vector<Row>& out) {
    const table::Adder add{out, true, table::kActsAtNextStep}, if_delayed{out, true, table::kActsIfDelayed};
    add(choice({.name = "fwd",
                .label = "Format of x and w",
                .te_name = "fp8_format",
                .help = "The forward format of arm B."},
               &p.fwd, fp8_choices()));
    add(choice({.name = "bwd",
                .label = "Format of dy",
                .te_name = "fp8_format",
                .help = "The backward format of arm B."},
               &p.bwd, fp8_choices()));
    add(choice({.name = "round", .label = "Rounding", .help = "The rounding of every cast in arm B."},
               &p.round, {{"recipe", "Recipe's"}, {"nearest", "nearest"}, {"stochastic", "stochastic"}}));
    add(choice(
        {.name = "overflow",
         .label = "Overflow",
         .help = "What a value above the format's largest becomes: that largest value, or Inf or NaN."},
        &p.overflow, {{"saturate", "saturate"}, {"nonsaturate", "Inf or NaN"}}));
    add(choice(
        {.name = "master",
         .label = "Master weights",
         .help = "FP32: FP32 weights beside the copy that GEMMs read. BF16: the weights are BF16 numbers. "
                 "none: the E4M3 codes are the weights."},
        &p.master, {{"fp32", "FP32"}, {"bf16", "BF16"}, {"none", "none"}}));
    add(choice({.name = "round_update",
                .label = "Weight update",
                .help = "How the update is rounded where there are no FP32 master weights."},
               &p.round_update, {{"nearest", "nearest"}, {"stochastic", "stochastic"}}));
    add(text({.name = "options",
              .label = "Options of the recipe",
              .help = "What else arm B’s recipe takes, joined by colons: w2d=1:rht=1."},
             &p.options));
    if_delayed(integer({.name = "interval",
                        .label = "Interval",
                        .te_name = "interval",
                        .unit = "steps",
                        .help = "The scale is recomputed after this many steps."},
                       &p.interval, 1, 256, true))
        .shown = delayed(p);
}

std::vector<Choice> size_choices() {
    std::vector<Choice> choices;
    for (const Size& size : sizes()) choices.push_back({std::string(size.id), size.label()});
    return choices;
}

void add_training(Params& p, std::vector<Row>& out) {
    const table::Adder add{out, true, table::kActsOnReset};
    add(choice({.name = "backend",
                .label = "Backend",
                .help = "Where the training runs; auto: on the GPU if there is one."},
               &p.backend, {{"auto", "auto"}, {"cpu", "CPU"}, {"cuda", "GPU"}}));
    add(choice({.name = "task",
                .label = "Task",
                .help = "teacher: regression on the outputs of a fixed network. spiral: classification of "
                        "two spirals, with a picture of the boundary. noise: random data through a wider "
                        "network with GELU, far slower."},
               &p.task, {{"teacher", "teacher"}, {"spiral", "spiral"}, {"noise", "noise"}}));
    add(choice({.name = "size",
                .label = "Size",
                .help = "The layers of the task noise. Those above 768 need the GPU."},
               &p.size, size_choices()))
        .shown = p.task == "noise";
    add.as_it_is(choice({.name = "arm_c",
                         .label = "Arm C",
                         .help = "A third recipe beside the two. Adding or removing it acts on Reset."},
                        &p.arm_c, recipe_choices({{"none", "None"}})));
    add(choice({.name = "schedule", .label = "Schedule", .help = "The schedule of the learning rate."},
               &p.schedule, {{"constant", "constant"}, {"cosine", "cosine"}}));
    add(integer({.name = "steps", .label = "Steps", .help = "The length of the training."}, &p.steps, 10,
                100000, true));
    add(integer({.name = "batch", .label = "Batch", .help = "Samples per step."}, &p.batch, 1, kMostRows,
                true));
    add(integer(
        {.name = "seed", .label = "Seed", .help = "The seed of the initial weights and of the batches."},
        &p.seed, 0, 9999));
    live::add_micro_batches(p.micro, kMostRows, has_delayed_arm(p), out);
    out.push_back(
        {number({.name = "speed_limit",
                 .label = "Speed",
                 .unit = "steps/s",
                 .help = "The most steps per second in a window, so that there is time to change a control; "
                         "0: no limit. run and train have no limit. A change acts at once.",
                 .hidden = true,
                 .looks = true},
                &p.speed_limit, 0, 1000)});
}

}  // namespace

std::string Size::label() const { return fmt::format("{0}-{1}-{0}, batch {2}", width, 4 * width, batch); }
std::span<const Size> sizes() { return kSizes; }

std::vector<Recipe> arms_of(const Params& params) {
    const std::string b = params.arm_b + (params.options.empty() ? "" : ":" + params.options);
    std::vector<Recipe> arms = {parse_recipe(params.arm_a), parse_recipe(b, {}, "options")};
    apply_settings(arms[1], params);
    if (params.arm_c != "none") arms.push_back(parse_recipe(params.arm_c));
    for (Recipe& arm : arms) arm.name = recipe_text(arm);
    return arms;
}

TrainSpec spec_of(const Params& params) {
    TrainOptions options;
    options.task = params.task;
    options.batch = params.batch;
    options.lr = params.lr;
    options.steps = params.steps;
    options.schedule = params.schedule;
    options.seed = static_cast<std::uint64_t>(params.seed);
    if (params.task == "noise") {
        const int width = std::ranges::find(kSizes, params.size, &Size::id)->width;
        options.layers = {width, 4 * width, width};
    }
    std::vector<Recipe> arms = arms_of(params);
    options.recipes = arms[0].name;
    for (std::size_t i = 1; i < arms.size(); ++i) options.recipes += "," + arms[i].name;
    live::set_micro_batches(options, params.micro, has_delayed_arm(params));
    TrainSpec spec = make_train_spec(options);
    spec.arms = std::move(arms);
    return spec;
}

std::vector<Row> rows_of(Params& params) {
    std::vector<Row> all;
    add_arms(params, all);
    add_casts(params, all);
    add_training(params, all);
    return all;
}

void check_cpu(const TrainSpec& spec) {
    if (spec.task == TaskKind::noise && spec.layers.front() != kSizes.front().width)
        throw Error(ErrorKind::backend, fmt::format("Size {}", fmt::join(spec.layers, "-")),
                    "is offered on the GPU only. Choose another size, or the GPU as backend.");
}

MlpTensor shown_tensor(const Params& params) {
    const auto index =
        static_cast<std::size_t>(std::ranges::find(kTensors, params.tensor) - kTensors.begin());
    return {kClasses.at(index % 3), static_cast<int>(index / 3) + 1};
}

}  // namespace fp8lab::train
