#include "labs/transformer/model_params.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/nn/models/transformer/model.h"
#include "labs/table/training_rows.h"

namespace fp8lab::transformer {
namespace {

using table::Row;

// Only what is narrower than BF16 has a scope, and layers that are kept wide.
bool narrow(const Recipe& recipe) { return recipe.fwd && width_bits(*recipe.fwd) <= 8; }

std::string_view scope(const Params& p) {
    if (p.attention == "fp8") return p.head == "fp8" ? "all" : "attn";
    return p.head == "fp8" ? "head" : "linears";
}

std::vector<Choice> tensor_choices() {
    std::vector<Choice> choices;
    for (const std::string& name : tensor_names()) choices.push_back({name, name});
    return choices;
}

constexpr int kMostSequences = 64;  // of a batch

bool has_delayed_arm(const Params& p) { return live::any_delayed({p.arm_a, p.arm_b}); }

constexpr const char* kNoBlocks = "Transformer Engine has no FP8 attention with blocks of 128.";

void add_switches(Params& p, std::vector<Row>& out) {
    const std::string why = narrow(parse_recipe(p.arm_b)) ? "" : "Arm B casts nothing to 8 bits or fewer.";
    const table::Adder add{out, false, table::kActsAtNextStep};
    add(choice({.name = "arm_b",
                .label = "Arm B",
                .help = "The experiment, beside arm A; the switches below are for this arm."},
               &p.arm_b, recipe_choices()));
    add(choice({.name = "attention",
                .label = "Attention",
                .te_name = "fp8_dpa",
                .help = "The operands of attention’s two products: BF16, or E4M3 and E5M2 with one scale per "
                        "tensor."},
               &p.attention, {{"bf16", "BF16"}, {"fp8", "FP8"}}))
        .why_not = p.arm_b == "block128" ? kNoBlocks : why;
    add(choice({.name = "head", .label = "LM head", .help = "The linear layer that gives the logits."},
               &p.head, {{"bf16", "BF16"}, {"fp8", "FP8"}}))
        .why_not = why;
    add(choice({.name = "act",
                .label = "SwiGLU",
                .help = "smooth: each channel has a power of two of its own, which the weights of down take "
                        "back. clamp: both factors are limited to 10, which is another function."},
               &p.act, {{"swiglu", "plain"}, {"smooth", "smooth"}, {"clamp", "clamp"}}));
    add.as_it_is(
        choice({.name = "task",
                .label = "Task",
                .help = "text: the next character of this program’s lessons. copying: a sequence that "
                        "repeats, for which attention must form an induction head. A change acts on Reset."},
               &p.task, {{"text", "text"}, {"copying", "copying"}}));
}

void add_arms(Params& p, std::vector<Row>& out) {
    const table::Adder add{out, true, table::kActsAtNextStep}, if_delayed{out, true, table::kActsIfDelayed};
    add(choice({.name = "arm_a", .label = "Arm A", .help = "The reference."}, &p.arm_a, recipe_choices()));
    add(choice({.name = "wide",
                .label = "Kept in BF16",
                .help = "Blocks, or one linear layer, whose operands stay in BF16."},
               &p.wide,
               {{"none", "none"},
                {"first", "first block"},
                {"last", "last block"},
                {"first+last", "both blocks"},
                {"1.down", "1.down"}}));
    std::string* const inputs[] = {&p.fprop_in, &p.dgrad_in, &p.wgrad_in};
    for (std::size_t i = 0; i < table::kGemmInputs.size(); ++i) {
        const table::GemmInputRow& row = table::kGemmInputs[i];
        add(choice(
            {.name = std::string(row.name), .label = std::string(row.label), .help = std::string(row.help)},
            inputs[i], table::input_choices("recipe")));
    }
    table::add_moments(p.moments, out);
    if_delayed(integer({.name = "history",
                        .label = "History",
                        .te_name = "amax_history_len",
                        .unit = "steps",
                        .help = "How many steps an amax stays in the history."},
                       &p.history, 1, 1024, true))
        .shown = parse_recipe(p.arm_b).scale == ScaleSource::delayed;
}

void add_training(Params& p, std::vector<Row>& out) {
    const table::Adder add{out, true, table::kActsOnReset};
    add(integer(
        {.name = "batch", .label = "Batch", .unit = "sequences", .help = "Sequences of 64 tokens per step."},
        &p.batch, 4, kMostSequences, true));
    add.as_it_is(number({.name = "lr",
                         .label = "Learning rate",
                         .help = "The same for both arms. A change acts at the next step."},
                        &p.lr, 1e-5, 1, true));
    add(integer(
        {.name = "seed", .label = "Seed", .help = "The seed of the initial weights and of the batches."},
        &p.seed, 0, 9999));
    live::add_micro_batches(p.micro, kMostSequences, has_delayed_arm(p), out);
    add.as_it_is(integer(
        {.name = "align_step",
         .label = "Aligned after",
         .unit = "steps",
         .help = "After how many steps a channel of SwiGLU is aligned; 0: it is not. The button sets it.",
         .hidden = true},
        &p.align_step, 0, kSteps - 1));
    out.push_back({choice({.name = "tensor",
                           .label = "Selected tensor",
                           .help = "The tensor of the histogram. x: what enters a linear layer, w: its "
                                   "weights, dy: the gradient of its output.",
                           .hidden = true,
                           .looks = true},
                          &p.tensor, tensor_choices())});
    out.push_back({choice({.name = "backend",
                           .label = "Backend",
                           .help = "Where the training runs. Once it has begun, a change acts on Reset.",
                           .hidden = true},
                          &p.backend, {{"auto", "auto"}, {"cpu", "CPU"}, {"cuda", "GPU"}})});
}

}  // namespace

std::string arm_b_text(const Params& p) {
    std::string text = p.arm_b;
    const Recipe base = parse_recipe(p.arm_b);
    if (base.scale == ScaleSource::delayed) text += fmt::format(":history={}", p.history);
    if (narrow(base)) {
        text += fmt::format(":scope={}", scope(p));
        if (p.wide != "none") text += ":wide=" + p.wide;
    }
    if (p.act != "swiglu") text += ":act=" + p.act;
    for (const auto& [key, value] :
         {std::pair{"fprop_in", &p.fprop_in}, {"dgrad_in", &p.dgrad_in}, {"wgrad_in", &p.wgrad_in}})
        if (*value != "recipe") text += fmt::format(":{}={}", key, *value);
    text += table::moment_options(p.moments);
    return recipe_text(parse_recipe(text, {}, "arm_b"));
}

TrainSpec spec_of(const Params& p) {
    TrainOptions options;
    options.model = "transformer";
    options.task = p.task;
    options.batch = p.batch;
    options.lr = p.lr;
    options.steps = kSteps;
    options.seed = static_cast<std::uint64_t>(p.seed);
    options.recipes = p.arm_a + "," + arm_b_text(p);
    live::set_micro_batches(options, p.micro, has_delayed_arm(p));
    return make_train_spec(options);
}

std::vector<Row> rows_of(Params& params) {
    std::vector<Row> all;
    add_switches(params, all);
    add_arms(params, all);
    add_training(params, all);
    return all;
}

const std::vector<std::string>& tensor_names() {
    static const std::vector<std::string> kNames = [] {
        std::vector<std::string> names;
        for (const OperandSpec& tensor : transformer_plan({.blocks = kBlocks, .vocabulary = 2}).tensors)
            names.push_back(tensor.name);
        return names;
    }();
    return kNames;
}

}  // namespace fp8lab::transformer
