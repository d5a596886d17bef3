// The exercises of L13, judged from runs that nothing but the alignment interrupted (TransformerLab::record()).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "core/lesson/runs.h"
#include "labs/transformer/model.h"

namespace fp8lab::transformer {
namespace {

// After this many steps L13.4 takes an alignment: about half of the training is left to show what it does.
constexpr double kAlignFrom = 250, kAlignTo = 350;

// Not part of what is trained, or set by the button.
bool is_no_setting(std::string_view field) {
    return field == "tensor" || field == "backend" || field == "align_step";
}

std::vector<std::string> changed_settings(const Trail& trail) {
    std::vector<std::string> out;
    const auto &before = trail.start.fields, &now = trail.now().fields;
    for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i] != now.at(i) && !is_no_setting(before[i].first)) out.push_back(before[i].first);
    return out;
}

bool whole(const State& state) { return state.number("step") >= kSteps; }

std::string percent_of(double value) {
    return std::isnan(value) ? "–" : format_number(value, 3, true) + " %";
}

Condition whole_run(const State& state) {
    const double steps = state.number("step");
    return {"600 steps, unchanged on the way",
            {std::isnan(steps) ? "no run" : format_number(steps)},
            whole(state)};
}

Condition channel_aligned(const State& state) {
    const double at = state.number("aligned_at");
    return {"a channel aligned after 250 to 350 steps",
            {std::isnan(at) ? "not aligned" : format_number(at)},
            at >= kAlignFrom && at <= kAlignTo};
}

// The index among the choices "below 0.5 %", "0.5 to 2 %", "2 to 10 %", "more".
double bucket(double gap) {
    const double size = std::abs(gap);
    return size < 0.5 ? 0 : size < 2 ? 1 : size < 10 ? 2 : 3;
}

Verdict below_two(const Trail& trail, const Prediction*) {
    constexpr std::array<std::string_view, 5> kScaled = {"delayed", "current", "rowwise", "block128",
                                                         "mxfp8"};
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct");
    const bool arms = now.text("arm_a") == "bf16" &&
                      std::ranges::find(kScaled, now.text("arm_b")) != kScaled.end() &&
                      now.text("wide") == "none";
    return {.conditions = {whole_run(now),
                           {"text; A in BF16, B in scaled FP8, no linear kept in BF16",
                            {recipe_label(now.text("arm_a")) + "; " + recipe_label(now.text("arm_b"))},
                            arms && now.text("task") == "text"},
                           {"the loss at most 2 % above BF16", {percent_of(gap)}, whole(now) && gap <= 2}},
            .measured = whole(now) ? std::vector{bucket(gap)} : std::vector<double>{}};
}

Verdict untrained(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double answer = trail.answered_number("first"), first = now.number("first_loss_b"),
                 ln_v = std::log(55.0);
    return {
        .conditions = {
            {"your number, within 0.05",
             {std::isnan(answer) ? "–" : format_number(answer, 4)},
             std::abs(answer - ln_v) <= 0.05},
            {"text: the first loss of arm B, measured, as an untrained head gives it within 1 %",
             {std::isnan(first) ? "no step yet" : format_number(first, 4)},
             now.number("step") >= 1 && std::abs(first / ln_v - 1) <= 0.01 && now.text("task") == "text"}}};
}

Verdict twice_the_batch(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct"), lost = now.number("worst_dy_lost_pct");
    const auto moved = changed_settings(trail);
    const bool one = moved == std::vector<std::string>{"batch"};
    return {.conditions = {{"the batch changed, and no other setting",
                            {moved.empty() ? "none changed" : fmt::format("{}", fmt::join(moved, ", "))},
                            one},
                           whole_run(now),
                           {"the loss at least 50 % above BF16", {percent_of(gap)}, whole(now) && gap >= 50},
                           {"80 % or more of a gradient’s elements become 0",
                            {percent_of(lost)},
                            whole(now) && lost >= 80}},
            .note = whole(now) ? "in " + now.text("worst_dy") + ", mean of the last 100 steps" : "",
            .measured =
                whole(now) && one && now.number("batch") == 16 ? std::vector{gap} : std::vector<double>{}};
}

Verdict find_it(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct");
    const std::string tensor = now.field("tensor");
    const bool worst = whole(now) && tensor == now.text("worst_x");
    const double lost = worst ? now.number("worst_x_lost_pct") : std::nan("");
    return {
        .conditions = {channel_aligned(now),
                       whole_run(now),
                       {"the selected tensor loses most of all x", {tensor}, worst},
                       {"80 % or more of it becomes 0, mean of 100 steps", {percent_of(lost)}, lost >= 80},
                       {"the loss 10 % or more above BF16", {percent_of(gap)}, whole(now) && gap >= 10}}};
}

Verdict repair(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct"), at = now.number("aligned_at");
    const auto row = std::ranges::find(recipes(), now.text("arm_b"), &Recipe::base);
    const bool eight = row != recipes().end() && bits(*row->fwd) == 8 && bits(*row->bwd) == 8;
    return {.conditions = {
                {"a channel aligned after 300 steps or fewer",
                 {std::isnan(at) ? "not aligned" : format_number(at)},
                 at <= kSteps / 2.0},
                whole_run(now),
                {"all eight linears in 8 bits",
                 {now.text("arm_b") + (now.text("wide") == "none" ? "" : ", wide " + now.text("wide"))},
                 eight && now.text("wide") == "none"},
                {"the loss within 2 % of BF16", {percent_of(gap)}, whole(now) && std::abs(gap) <= 2}}};
}

Verdict four_bits(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct");
    const std::string wide = now.text("wide");
    return {.conditions = {whole_run(now),
                           {"A in BF16, B in NVFP4 as Transformer Engine has it",
                            {now.text("arm_b")},
                            now.text("arm_b") == "nvfp4-te" && now.text("arm_a") == "bf16"},
                           {"a block or more in four bits", {wide}, wide != "first+last"},
                           {"the loss at most 4 % above BF16", {percent_of(gap)}, whole(now) && gap <= 4}}};
}

const Event kRun = acts("run"), kTo300 = acts("run to 300"), kAlign = acts("align");

}  // namespace

std::span<const Exercise> TransformerLab::exercises() const {
    static const std::array kExercises = {
        Exercise{
            .id = "L13.1",
            .title = "Below two per cent",
            .question = "Train both arms for 600 steps: arm A in BF16, arm B with its four linears in FP8. "
                        "Everything is set already. The loss of arm B (mean of the last 100 steps) must end "
                        "at most 2 % above that of arm A.",
            .prediction = ChoicePrediction{{"below 0.5 %", "0.5 to 2 %", "2 to 10 %", "more"}},
            .predict = "A transformer is trained in BF16 and with its four linears in FP8, 600 steps each. "
                       "By how many percent will the mean losses of the last 100 steps differ?",
            .covers = {"loss", "gap"},
            .hints = {"Everything is set already.", "Press Run, below the curves, or the Space key.",
                      "Press Run and wait for step 600. Change nothing meanwhile."},
            .judge = below_two,
            .explanation = with_runs(
                "With delayed scaling another seed is expected {runs L13 delayed gap_pct interval} % above "
                "BF16 (ten seeds on one CPU), with current scaling {runs L13 current gap_pct interval} %, "
                "with MXFP8 {runs L13 mxfp8 gap_pct interval} %, and FP32 at "
                "{runs L13 fp32 gap_pct interval} %. These intervals overlap, so one seed cannot rank the "
                "recipes."),
            .solver = {kRun},
            .near_misses = {NearMiss{"300 steps only", {kTo300}, "600 steps, unchanged on the way"},
                            NearMiss{"arm A is not BF16",
                                     {sets("arm_a", "current"), kRun},
                                     "text; A in BF16, B in scaled FP8, no linear kept in BF16"},
                            NearMiss{"no scale",
                                     {sets("arm_b", "unscaled"), kRun},
                                     "text; A in BF16, B in scaled FP8, no linear kept in BF16"}}},
        Exercise{
            .id = "L13.2",
            .title = "An untrained head",
            .question =
                "The text has 55 different characters. Which loss, in nats, has a network that knows nothing "
                "of them? Type your number, then train one step and compare: the first loss is in the table.",
            .answers = {{.name = "first", .label = "First loss", .unit = "nats"}},
            .hints = {"To a network that knows nothing, every character is equally likely.",
                      "The loss is minus the natural logarithm of the probability, which is 1/55.",
                      "ln 55 = 4.007. Press Step."},
            .judge = untrained,
            .explanation =
                "The mean cross-entropy of an even guess among V symbols is ln V. A first loss far from ln V "
                "means a mistake in the initial weights, the targets or the loss, and one step shows it.",
            .solver = {types("first", "4.007"), acts("step")},
            .near_misses =
                {NearMiss{"the logarithm to base 2",
                          {types("first", "5.78"), acts("step")},
                          "your number, within 0.05"},
                 NearMiss{"the number of characters",
                          {types("first", "55"), acts("step")},
                          "your number, within 0.05"},
                 NearMiss{
                     "1/55 in percent", {types("first", "1.82"), acts("step")}, "your number, within 0.05"},
                 NearMiss{
                     "nothing measured",
                     {types("first", "4.007")},
                     "text: the first loss of arm B, measured, as an untrained head gives it within 1 %"}}},
        Exercise{
            .id = "L13.3",
            .title = "Twice the batch",
            .question = "Arm B casts to FP8 without a scale. Change one control of the training (group More) "
                        "so that it fails: its loss must end at least 50 % above BF16’s, and a gradient must "
                        "lose at least 80 % of its elements. Change no other setting, and train 600 steps.",
            .prediction =
                NumberPrediction{.label = "gap", .unit = "%", .min = 0, .max = 200, .initial = 10, .step = 1},
            .predict =
                with_runs("Without a scale and with 8 sequences per step, FP8 ended "
                          "{runs L13 unscaled gap_pct range} % above BF16 in ten seeds. How large is the gap "
                          "with 16 sequences, in percent?"),
            .covers = {"loss", "gap"},
            .start = {"arm_b=unscaled"},
            .hints =
                {"The loss is a mean over the tokens of the batch.",
                 "With more tokens in the mean, the gradient of each token is smaller. The control is Batch.",
                 "Set Batch to 16: every dy is half as large, and nearly all of 2.down.dy becomes 0."},
            .judge = twice_the_batch,
            .explanation =
                "The loss is a mean over the tokens, so dy is proportional to 1 / tokens. Without a scale it "
                "leaves the window of E5M2 at the bottom, and with 16 sequences most elements of 2.down.dy "
                "become 0. A scale moves with the gradient, so no scaled recipe has this limit.",
            .solver = {sets("batch", "16"), kRun},
            .near_misses = {NearMiss{"a smaller batch",
                                     {sets("batch", "4"), kRun},
                                     "the loss at least 50 % above BF16"},
                            NearMiss{"another learning rate",
                                     {sets("lr", "0.02"), kRun},
                                     "the batch changed, and no other setting"},
                            NearMiss{"with a scale",
                                     {sets("batch", "16"), sets("arm_b", "current"), kRun},
                                     "the batch changed, and no other setting"}}},
        Exercise{
            .id = "L13.4",
            .title = "Find it",
            .question =
                "Train about 300 steps (250 to 350), press Align a channel of SwiGLU, then train to step "
                "600. The loss of arm B "
                "ends more than 10 % above BF16’s, because one tensor breaks. Select that tensor in the "
                "block: at least 80 % of its elements become 0, as a mean of the last 100 steps.",
            .start = {"tensor=1.qkv.x"},
            .hints = {"Follow the flow: which edge of the block is marked?",
                      "Which box receives a product of two numbers that both became large?",
                      "The box down of block 1, its x: 1.down.x."},
            .judge = find_it,
            .explanation =
                "Gate and up of one channel point the same way, so their product is quadratic. "
                "One element of about 10^5 sets the scale of 1.down.x, and most elements of the "
                "other channels fall below the smallest value of E4M3: about nine of ten become 0.",
            .solver = {kTo300, kAlign, kRun, sets("tensor", "1.down.x")},
            .near_misses = {NearMiss{"the linear before it",
                                     {kTo300, kAlign, kRun, sets("tensor", "1.gate_up.x")},
                                     "the selected tensor loses most of all x"},
                            NearMiss{"its gradient",
                                     {kTo300, kAlign, kRun, sets("tensor", "1.down.dy")},
                                     "the selected tensor loses most of all x"},
                            NearMiss{"never aligned",
                                     {kRun, sets("tensor", "1.down.x")},
                                     "a channel aligned after 250 to 350 steps"}}},
        Exercise{
            .id = "L13.5",
            .title = "Repair it in eight bits",
            .question = "The same accident: a channel of SwiGLU is aligned after 300 steps or fewer. Choose "
                        "the settings of arm B so that its loss ends within 2 % of BF16’s after 600 steps, "
                        "with all eight linears in 8 bits. Settings that you change during a run do not "
                        "count: press Reset before you run again.",
            .hints = {"One scale serves 192 channels, and one of them is 10,000 times larger than the rest.",
                      "Give channels a scale of their own: in the activation, or by a recipe with blocks.",
                      "Set SwiGLU to smooth, run to 300, align, run to the end."},
            .judge = repair,
            .explanation =
                "Smooth-SwiGLU gives every channel a power of two, which the weights of down take back. "
                "Block scales confine the outlier to its block, and clamp limits the product, but computes "
                "another function. A longer amax history does not help: the amax is there in every step.",
            .solver = {sets("act", "smooth"), kTo300, kAlign, kRun},
            .near_misses = {NearMiss{"one scale, from this step",
                                     {sets("arm_b", "current"), kTo300, kAlign, kRun},
                                     "the loss within 2 % of BF16"},
                            NearMiss{"a longer history",
                                     {sets("history", "1024"), kTo300, kAlign, kRun},
                                     "the loss within 2 % of BF16"},
                            NearMiss{"in BF16",
                                     {sets("wide", "1.down"), kTo300, kAlign, kRun},
                                     "all eight linears in 8 bits"}}},
        Exercise{
            .id = "L13.6",
            .title = "Four bits, one block spared",
            .question = "Arm B is NVFP4 with Transformer Engine’s techniques: 2-D block scales, stochastic "
                        "rounding, the random Hadamard transform. Change one setting so that its loss ends "
                        "at most 4 % above BF16’s after 600 steps, with at least one block in four bits.",
            .start = {"arm_b=nvfp4-te"},
            .hints = {"NVIDIA’s recipe keeps some linears in BF16.",
                      "The control is Kept in BF16, in the group More.", "Set Kept in BF16 to last block."},
            .judge = four_bits,
            .explanation = with_runs(
                "With the last block in BF16, NVFP4 ends {runs L13 nvfp4-te:wide=last gap_pct mean} % above "
                "BF16 in the mean of ten seeds, and another seed is expected at "
                "{runs L13 nvfp4-te:wide=last gap_pct interval} %. With both blocks in NVFP4 it is "
                "{runs L13 nvfp4-te gap_pct mean} %, expected "
                "{runs L13 nvfp4-te gap_pct interval} %; of FP32 {runs L13 fp32 gap_pct interval} %. "
                "NVIDIA’s recipe keeps the last layers in BF16 too, arXiv 2509.25149."),
            .solver = {sets("wide", "last"), kRun},
            .near_misses = {NearMiss{"nothing spared", {kRun}, "the loss at most 4 % above BF16"},
                            NearMiss{"nothing left in four bits",
                                     {sets("wide", "first+last"), kRun},
                                     "a block or more in four bits"},
                            NearMiss{"another format",
                                     {sets("arm_b", "mxfp4"), sets("wide", "last"), kRun},
                                     "A in BF16, B in NVFP4 as Transformer Engine has it"}}},
    };
    return kExercises;
}

}  // namespace fp8lab::transformer
