// The exercises of L9. Their times are those of a recording, so that evidence can be judged again on a machine
// without this GPU; the numbers that a solver needs are computed from the recording too.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/speed/model.h"
#include "labs/speed/model_figures.h"

namespace fp8lab::speed {

namespace {

constexpr double kMostIqrPct = 5;          // of the two times that a ratio is made of
constexpr double kWasteTolerance = 0.02;   // percentage points
constexpr double kAmdahlTolerance = 0.02;  // relative
constexpr double kAmdahlRight_pct = 2, kAmdahlWrong_pct = 8;

std::string shown(double value, int digits = 3) {
    return std::isnan(value) ? "\u2013" : screen_number(value, digits);
}

Condition of_recording(const State& now) {
    return {"times of a recording", {now.text("source")}, now.number("recorded") == 1};
}

// ---- L9.1

Verdict where_it_pays(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double m = now.number("m"), wanted = now.number("m_at_1_5");
    const bool layer = now.number("n") == 16384 && now.number("k") == 4096 && now.text("casts") == "x+w";
    const double noise = std::max(now.number("fprop.bf16_iqr_pct"), now.number("fprop.fp8_iqr_pct"));
    const bool below = trail.visited([&](const State& state) {
        return state.number("m") == wanted / 2 && state.number("ratio_with_casts") < 1.5;
    });
    Verdict out{
        .conditions = {of_recording(now),
                       {"N = 16384, K = 4096, casts of x and w", {}, layer},
                       {"with its casts 1.5 times as fast",
                        {shown(now.number("ratio_with_casts"))},
                        now.number("ratio_with_casts") >= 1.5},
                       {"the smallest such M", {shown(m, 5)}, m == wanted},
                       {"at half of it you saw less than 1.5", {}, below},
                       {"interquartile range at most 5 %", {shown(noise, 2) + " %"}, noise <= kMostIqrPct}}};
    if (m == wanted) out.measured = {m};
    return out;
}

// ---- L9.2

// Judges the choices never, small M, large M, small N and K.
Verdict slower_with_casts(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double alone = now.number("fprop.ratio"), with = now.number("ratio_with_casts");
    Verdict out{.conditions = {of_recording(now),
                               {"the GEMM alone at least 1.2 times as fast", {shown(alone)}, alone >= 1.2},
                               {"casts of x and w counted", {now.text("casts")}, now.text("casts") == "x+w"},
                               {"slower than BF16 with its casts", {shown(with)}, with < 1}}};
    if (out.passed()) out.measured = {1};
    return out;
}

// ---- L9.3

bool refused(const State& state) { return state.number("fprop.status") > 0; }

std::string offsets(const State& state) {
    return state.field("m_off") + " " + state.field("n_off") + " " + state.field("k_off");
}

Verdict refusal(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const auto sizes = [](const State& state) {
        return state.field("m") + " " + state.field("n") + " " + state.field("k") + " " + offsets(state);
    };
    const bool was_refused = trail.visited([&](const State& state) {
        return state.field("pad") == "off" && refused(state) && sizes(state) == sizes(now);
    });
    const bool runs = now.field("pad") == "on" && now.number("fprop.status") == 0 && offsets(now) != "0 0 0";
    const double waste = trail.answered_number("waste"), measured = now.number("pad_waste_pct");
    Verdict out{.conditions = {of_recording(now),
                               {"FP8 fprop refused without padding, at these sizes", {}, was_refused},
                               {"the same product runs padded", {now.field("pad")}, runs},
                               {"your waste, right within 0.02 percentage points",
                                {shown(waste, 2) + " %"},
                                runs && std::abs(waste - measured) <= kWasteTolerance}}};
    if (was_refused) out.measured = {2};
    return out;
}

// ---- L9.4

Verdict amdahl_by_hand(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double speedup = trail.answered_number("speedup"), ceiling = trail.answered_number("ceiling");
    const auto right = [](double answer, double truth) {
        return std::abs(answer / truth - 1) <= kAmdahlTolerance;
    };
    return {.conditions = {of_recording(now),
                           {"your speed-up of the step, within 2 %",
                            {shown(speedup)},
                            right(speedup, now.number("amdahl"))},
                           {"your best possible speed-up, within 2 %",
                            {shown(ceiling)},
                            right(ceiling, now.number("amdahl_ceiling"))}},
            .note = now.text("step.layers")};
}

// ---- L9.5

Verdict broken_promise(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const auto size = [](const State& state) {
        return state.field("m") + " " + state.field("n") + " " + state.field("k");
    };
    const bool kept = trail.visited([&](const State& state) {
        return state.text("recipe") == "delayed" && size(state) == size(now) &&
               std::abs(state.number("amdahl_error_pct")) <= kAmdahlRight_pct;
    });
    const double error = now.number("amdahl_error_pct");
    const std::string missing = trail.answered("missing");
    return {.conditions = {of_recording(now),
                           {"delayed scaling on this layer: right within 2 %", {}, kept},
                           {"another recipe, promised at least 8 % too much",
                            {recipe_label(now.text("recipe")) + ", " + shown(error, 2) + " %"},
                            now.text("recipe") != "delayed" && error >= kAmdahlWrong_pct},
                           {"what was left out", {missing}, missing == "casts"}}};
}

// Numbers of the recording that the specimens are made of.
struct Numbers {
    std::string id;
    int enough = 4096;  // m_at_1_5 at N = 16384, K = 4096
    double share = 0, ratio = 0, amdahl = 0, ceiling = 0;
    std::string waste = "0.37";  // 4112 / 4097 - 1, in %
};

Numbers numbers_of(const Outcome& o, const std::string& id) {
    Numbers out{.id = id};
    if (!std::isnan(o.sweep.m_at_1_5)) out.enough = static_cast<int>(o.sweep.m_at_1_5);
    out.share = o.step.share, out.ratio = o.step.ratio;
    out.amdahl = o.step.amdahl, out.ceiling = o.step.ceiling;
    return out;
}

Exercise exercise_pays(const Numbers& r) {
    const std::string enough = std::to_string(r.enough), half = std::to_string(r.enough / 2);
    return {
        .id = "L9.1",
        .title = "Where FP8 pays",
        .question =
            "The layer has N = 16384 and K = 4096. Find the smallest recorded M at which FP8 together "
            "with the casts of x and w is 1.5 times as fast as BF16. Show also, by going there, that "
            "half of this M is not enough.",
        .prediction =
            NumberPrediction{
                .label = "M", .unit = "rows", .min = 16, .max = 32768, .initial = 256, .logarithmic = true},
        .predict = "From how many rows of x on is FP8 with its casts 1.5 times as fast as BF16?",
        .covers = {"lower"},
        .start = {"source=" + r.id, "m=16"},
        .hints = {"Both lines rise with M. Which of them counts the casts?",
                  "The control is M, one tick at a time.",
                  fmt::format("Go to M = {}, then to M = {}.", half, enough)},
        .judge = where_it_pays,
        .explanation =
            "The cast of w costs the same whatever M is, and so does the launch. The GEMM grows with M "
            "until these costs are a small part of it.",
        .solver = {sets("m", half), sets("m", enough)},
        .near_misses = {
            NearMiss{
                "half of it was not looked at", {sets("m", enough)}, "at half of it you saw less than 1.5"},
            NearMiss{"not the smallest M", {sets("m", half), sets("m", "32768")}, "the smallest such M"},
            NearMiss{"the casts were left out",
                     {sets("casts", "none"), sets("m", "16")},
                     "N = 16384, K = 4096, casts of x and w"}}};
}

Exercise exercise_slower(const Numbers& r) {
    return {
        .id = "L9.2",
        .title = "Slower with casts",
        .question =
            "Find a layer whose GEMM alone is at least 1.2 times as fast in FP8 as in BF16, but slower than "
            "BF16 with the casts of x and w.",
        .prediction = ChoicePrediction{{"never", "at a small M", "at a large M", "at small N and K"}},
        .predict = "Where is the GEMM faster in FP8, but not with its casts?",
        .covers = {"lower"},
        .start = {"source=" + r.id},
        .hints = {"What does the cast of w cost, whatever M is?", "The control is M.", "Set M to 128."},
        .judge = slower_with_casts,
        .explanation =
            "Reading w in BF16 and writing it in FP8 moves more bytes than a small GEMM reads. Where the "
            "weights are cast once and used often, as in inference, this cost is gone: set Casts "
            "counted to x.",
        .solver = {sets("m", "128")},
        .near_misses = {NearMiss{"at M = 8192 the casts are a small part",
                                 {sets("m", "8192")},
                                 "slower than BF16 with its casts"},
                        NearMiss{"here the GEMM itself is not 1.2 times as fast",
                                 {sets("n", "3072"), sets("k", "768"), sets("m", "32")},
                                 "the GEMM alone at least 1.2 times as fast"},
                        NearMiss{"the casts were left out",
                                 {sets("m", "128"), sets("casts", "none")},
                                 "casts of x and w counted"}}};
}

Exercise exercise_refused(const Numbers& r) {
    return {
        .id = "L9.3",
        .title = "Refused",
        .question =
            "M, N and K are 4096. Make cuBLASLt refuse the FP8 fprop with one of the buttons \u22121 and +1, "
            "then make the same product run with Pad to 16 (in the group More). How much work does the "
            "padding add, in percent of the product?",
        .prediction =
            ChoicePrediction{{"it runs as fast", "it runs slower", "it is refused", "its numbers are wrong"}},
        .predict =
            "K, the dimension that fprop sums over, becomes 4097. What does cuBLASLt do with the FP8 "
            "product?",
        .covers = {"lower"},
        .start = {"source=" + r.id, "m=4096", "n=4096", "k=4096", "view=align"},
        .answers = {{.name = "waste", .label = "Added work", .unit = "%"}},
        .hints = {"Which dimension does fprop sum over?", "The controls are +1 at K, then Pad to 16.",
                  "4112 / 4097 \u2212 1, in percent."},
        .judge = refusal,
        .explanation =
            "Rows of FP8 operands must begin at multiples of 16 bytes. Padding K = 4097 to 4112 adds 0.37 % "
            "of work; padding a batch of 1 to 16 adds 1500 %.",
        .solver = {sets("k_off", "1"), sets("pad", "on"), types("waste", r.waste)},
        .near_misses = {NearMiss{"padded without a size that is off",
                                 {sets("pad", "on"), types("waste", "0")},
                                 "FP8 fprop refused without padding, at these sizes"},
                        NearMiss{"refused, and left so",
                                 {sets("k_off", "1"), types("waste", r.waste)},
                                 "the same product runs padded"},
                        NearMiss{"the waste of one row in 4096",
                                 {sets("k_off", "1"), sets("pad", "on"), types("waste", "0.02")},
                                 "your waste, right within 0.02 percentage points"}}};
}

Exercise exercise_amdahl(const Numbers& r) {
    const auto two = [](double value) { return fmt::format("{:.2f}", value); };
    return {
        .id = "L9.4",
        .title = "Amdahl by hand",
        .question =
            "Under the two bars are the GEMM share f of the BF16 step and the ratio r of the two GEMM times. "
            "Assume that nothing else in the step becomes faster. How many times as fast is the FP8 step, "
            "and how fast could it be at best, with GEMMs that take no time?",
        .prediction = ChoicePrediction{{"1.2", "1.4", "1.6", "1.9"}},
        .predict =
            "About four fifths of a step are GEMMs, and FP8 makes them 1.9 times as fast. How many times "
            "as fast is the step?",
        .covers = {"step"},
        .start = {"source=" + r.id, "show_amdahl=off"},
        .answers = {{.name = "speedup", .label = "Speed-up of the step", .unit = ""},
                    {.name = "ceiling", .label = "At best", .unit = ""}},
        .hints = {"What does FP8 not touch?", "Amdahl\u2019s law: 1 / (1 \u2212 f + f / r).",
                  fmt::format("f is {:.3f} and r is {:.2f}. For the best case let r be infinite.", r.share,
                              r.ratio)},
        .judge = amdahl_by_hand,
        .explanation =
            "Casts, optimiser and gaps take as long as before. The smaller the share of the GEMMs, the "
            "less a faster GEMM helps.",
        .uncovers = {"show_amdahl=on"},
        .solver = {types("speedup", two(r.amdahl)), types("ceiling", two(r.ceiling))},
        .near_misses = {NearMiss{"the ratio of the GEMMs is not that of the step",
                                 {types("speedup", two(r.ratio)), types("ceiling", two(r.ceiling))},
                                 "your speed-up of the step, within 2 %"},
                        NearMiss{"1 / f is not the ceiling",
                                 {types("speedup", two(r.amdahl)), types("ceiling", two(1 / r.share))},
                                 "your best possible speed-up, within 2 %"},
                        NearMiss{"the ceiling is missing",
                                 {types("speedup", two(r.amdahl))},
                                 "your best possible speed-up, within 2 %"}}};
}

Exercise exercise_promise(const Numbers& r) {
    return {
        .id = "L9.5",
        .title = "The broken promise",
        .question =
            "With delayed scaling, Amdahl\u2019s law is right within 2 % for this layer. Find another recipe "
            "for which it promises a step at least 8 % too fast, and say which part of the step the "
            "promise left out.",
        .prediction = ChoicePrediction{{"current scaling", "one scale per row", "blocks of 128"}},
        .predict =
            "For which recipe does Amdahl\u2019s law, with the GEMMs of that recipe, promise far too much?",
        .covers = {"step"},
        .start = {"source=" + r.id},
        .answers = {{.name = "missing",
                     .label = "Left out",
                     .unit = "",
                     .choices = {"casts", "optimiser", "gaps", "clocks"}}},
        .hints = {"Which part of the lower bar grew?", "The control is Recipe.",
                  "Current scaling reads every tensor twice: once for its amax and once for the cast."},
        .judge = broken_promise,
        .explanation =
            "The law assumes that only the GEMMs change. Current scaling first reads a tensor for its amax "
            "and then casts it, so the casts take longer than those of BF16.",
        .solver = {sets("recipe", "current"), types("missing", "casts")},
        .near_misses = {NearMiss{"blocks of 128: promised too little for this",
                                 {sets("recipe", "block128"), types("missing", "casts")},
                                 "another recipe, promised at least 8 % too much"},
                        NearMiss{"at this size the casts are a small part",
                                 {sets("m", "16384"), sets("n", "32768"), sets("k", "8192"),
                                  sets("recipe", "current"), types("missing", "casts")},
                                 "another recipe, promised at least 8 % too much"},
                        NearMiss{"the optimiser did not grow",
                                 {sets("recipe", "current"), types("missing", "optimiser")},
                                 "what was left out"}}};
}

}  // namespace

std::span<const Exercise> SpeedLab::exercises() const {
    if (recordings_.empty()) return {};
    static const auto kExercises = [] {
        const SpeedLab lab;
        const Numbers numbers = numbers_of(lab.outcome(), lab.params().source);
        return std::array{exercise_pays(numbers), exercise_slower(numbers), exercise_refused(numbers),
                          exercise_amdahl(numbers), exercise_promise(numbers)};
    }();
    return kExercises;
}

}  // namespace fp8lab::speed
