// The exercises of L12.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/four/model.h"

namespace fp8lab::four {
namespace {

bool says(const State& s, std::string_view name, std::string_view word) { return s.text(name) == word; }
std::vector<std::string> decibels(double value) { return {db_text(value) + " dB"}; }
std::vector<std::string> percent(double value, int decimals) { return {pct_text(value, decimals) + " %"}; }

bool same_tensor(const State& a, const State& b) {
    for (const std::string_view name : {"tensor", "seed", "sigma", "file"})
        if (a.text(name) != b.text(name)) return false;
    return true;
}

// ---- L12.1
bool rotated_with(const State& s, std::string_view format) {
    return says(s, "rht", "on") && says(s, "rounding", "nearest") && says(s, "format", format);
}
bool hurts(const State& s) {
    return rotated_with(s, "nvfp4") && s.number("nvfp4.rht.sqnr_db") <= s.number("nvfp4.plain.sqnr_db") - 2;
}
bool helps(const State& s) {
    return rotated_with(s, "mxfp4") && s.number("mxfp4.rht.sqnr_db") >= s.number("mxfp4.plain.sqnr_db") + 2;
}

Verdict help_and_harm(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double costs = now.number("nvfp4.plain.sqnr_db") - now.number("nvfp4.rht.sqnr_db"),
                 gives = now.number("mxfp4.rht.sqnr_db") - now.number("mxfp4.plain.sqnr_db");
    const bool harmed = trail.visited([&](const State& s) { return hurts(s) && same_tensor(s, now); });
    const bool helped = trail.visited([&](const State& s) { return helps(s) && same_tensor(s, now); });
    return {.conditions = {{"NVFP4, rotated, to nearest: at least 2 dB below its SQNR as it is",
                            decibels(costs), harmed},
                           {"MXFP4 on this tensor, rotated, to nearest: at least 2 dB above", decibels(gives),
                            helped}},
            .measured = harmed && helped ? std::vector<double>{2} : std::vector<double>{}};
}

// ---- L12.2
Verdict both_ways(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double differ = now.number("w.copies_differ_pct"), bits = now.number("bits"),
                 scales = now.number("scales");
    const bool done = says(now, "format", "nvfp4") && differ == 0 && bits <= 4.6 && scales > 1;
    return {
        .conditions = {{"NVFP4", {}, says(now, "format", "nvfp4")},
                       {"elements of W and of its copy that differ: none", percent(differ, 1), differ == 0},
                       {"4.6 bits per element or less, and more than one scale",
                        {fmt::format("{} bits", screen_number(bits))},
                        bits <= 4.6 && scales > 1}},
        .measured = done ? std::vector<double>{now.number("w.square_costs_db")} : std::vector<double>{}};
}

// ---- L12.3
Verdict sixteen(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double mean = now.number("mean_db"), nearest = now.number("nearest_db"), one = now.number("one_db");
    const bool stochastic = says(now, "rounding", "stochastic");
    const bool done = stochastic && now.number("casts") == 16 && mean >= nearest + 5;
    return {
        .conditions = {{"stochastic rounding", {now.text("rounding")}, stochastic},
                       {"16 casts", {fmt::format("{:.0f}", now.number("casts"))}, now.number("casts") == 16},
                       {"their mean has 5 dB more than rounding to nearest",
                        {fmt::format("{} against {} dB", db_text(mean), db_text(nearest))},
                        mean >= nearest + 5}},
        .measured = done ? std::vector<double>{one > nearest ? 0.0 : 1.0} : std::vector<double>{}};
}

// ---- L12.4
bool loaded(const State& s) {
    return says(s, "rht", "off") && says(s, "rounding", "stochastic") && says(s, "format", "nvfp4") &&
           s.number("nvfp4.sr.gain_pct") < -0.6;
}

Verdict dice_are_loaded(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool seen = trail.visited([&](const State& s) { return loaded(s) && same_tensor(s, now); });
    const double plain = now.number("nvfp4.sr.gain_pct"), turned = now.number("nvfp4.sr_rht.gain_pct");
    const bool better = seen && says(now, "rounding", "stochastic") && says(now, "format", "nvfp4") &&
                        says(now, "rht", "on") && turned > -0.35;
    return {.conditions = {{"NVFP4, stochastic, without the rotation: a mean gain below −0.6 %",
                            percent(plain, 2), seen},
                           {"the same tensor in NVFP4, stochastic, rotated: above −0.35 %",
                            percent(turned, 2), better}},
            .measured = better ? std::vector<double>{1} : std::vector<double>{}};
}

// ---- L12.5
Verdict one_hand(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double left = now.number("dw.one_operand_db"), answer = trail.answered_number("db");
    const bool seen = trail.visited([](const State& s) { return says(s, "rht", "on"); });
    const bool right = std::fabs(answer - left) <= 1;
    return {.conditions = {{"the rotation was on", {}, seen},
                           {"the SQNR of dW, within 1 dB", {trail.answered("db")}, right}},
            .note = right ? fmt::format("One rotated: {} dB. Both: {}. None: {}.", db_text(left),
                                        db_text(now.number("dw.rht_db")), db_text(now.number("dw.plain_db")))
                          : std::string(),
            .measured = right ? std::vector<double>{left} : std::vector<double>{}};
}

// ---- L12.6
Verdict by_hand(const Trail& trail, const Prediction*) {
    // 3.1 x 448 / 10 = 138.88 is between 128 and 144 of E4M3; 144 x 10 / 2688 = 0.5357, times 6.
    constexpr double kScale = 144, kBack = -3.214;
    const double scale = trail.answered_number("code_scale"), back = trail.answered_number("back");
    return {
        .conditions = {
            {"the E4M3 scale", {trail.answered("code_scale")}, scale == kScale},
            {"what −3.1 becomes, within 0.002", {trail.answered("back")}, std::fabs(back - kBack) <= 0.002}}};
}

Exercise exercise_help() {
    return {
        .id = "L12.1",
        .title = "Help and harm",
        .question =
            "Show on one and the same tensor that the rotation costs one format at least 2 dB and gives the "
            "other at least 2 dB. Choose Tensor, switch Random Hadamard on, and cast the tensor with both "
            "formats, rounded to nearest.",
        .prediction = ChoicePrediction{{"helps both", "hurts both", "helps MXFP4, hurts NVFP4",
                                        "helps NVFP4, hurts MXFP4"}},
        .predict =
            "One channel in 16 is 30 times as large as the others. What does the rotation do to the SQNR?",
        .covers = {"tiles", "data"},
        .conditions_answer = true,
        .start = {"tensor=normal", "rht=off"},
        .hints = {"Where is the energy of a block before the rotation, and where after it?",
                  "Tensor. Then compare the rows of the figure on the lower left.",
                  "1 of 16 columns × 30, Random Hadamard on, then the other format."},
        .judge = help_and_harm,
        .explanation =
            "In NVFP4 an outlier is the amax of its 16 elements. The others become 0 and cost little, and "
            "the "
            "outlier itself is cast well. The rotation spreads it over 16 elements of similar size, where "
            "each has E2M1’s error. MXFP4 has a coarser scale and 32 elements, so it gains.",
        .solver = {sets("tensor", "outlier_channel"), sets("rht", "on"), sets("format", "mxfp4")},
        .near_misses = {NearMiss{"a Gaussian tensor is a Gaussian tensor after the rotation",
                                 {sets("rht", "on"), sets("format", "mxfp4")},
                                 "NVFP4, rotated, to nearest: at least 2 dB below its SQNR as it is"},
                        NearMiss{"SwiGLU h: NVFP4 loses 1 dB only",
                                 {sets("tensor", "swiglu_h"), sets("rht", "on"), sets("format", "mxfp4")},
                                 "NVFP4, rotated, to nearest: at least 2 dB below its SQNR as it is"},
                        NearMiss{"one format alone",
                                 {sets("tensor", "outlier_channel"), sets("rht", "on")},
                                 "MXFP4 on this tensor, rotated, to nearest: at least 2 dB above"}}};
}

Exercise exercise_both_ways() {
    return {
        .id = "L12.2",
        .title = "Same matrix both ways",
        .question =
            "fprop reads W, and dgrad reads W transposed. Each has blocks along its own K dimension. Make "
            "both "
            "read the same numbers in NVFP4, at 4.6 bits per element or less.",
        .prediction = NumberPrediction{"it costs", "dB", 0, 6, 3, false, 0.1},
        .predict = "How many dB of W’s SQNR does it cost if both GEMMs read the same numbers?",
        .covers = {"tiles"},
        .start = {"tensor=normal", "rht=off"},
        .hints = {"Which 16 elements share a scale in W, and which 16 in its transpose?",
                  "Scale shared by. The table under the headline counts the elements that differ.", "16×16."},
        .judge = both_ways,
        .explanation =
            "A block of 16×16 is the same set of elements in W and in its transpose. Its 256 elements share "
            "one "
            "scale, so each is cast a little worse. The stored scales still take 8 bits per 16 elements.",
        .solver = {sets("block", "16x16")},
        .near_misses = {NearMiss{"4 or 6 chooses between two scales of the same row",
                                 {sets("target", "4or6")},
                                 "elements of W and of its copy that differ: none"},
                        NearMiss{"powers of two: 6 % still differ", {sets("format", "mxfp4")}, "NVFP4"},
                        NearMiss{"the rotation is not for weights",
                                 {sets("rht", "on")},
                                 "elements of W and of its copy that differ: none"}}};
}

Exercise exercise_sixteen() {
    return {.id = "L12.3",
            .title = "Sixteen micro-batches",
            .question =
                "A gradient is cast in each of 16 micro-batches, and the 16 results are averaged. Reach at "
                "least 5 dB more "
                "than rounding to nearest gives.",
            .prediction = ChoicePrediction{{"better", "worse", "the same"}},
            .predict = "Is a single stochastic cast better or worse than a cast to nearest, in SQNR?",
            .covers = {"mean"},
            .start = {"tensor=swiglu_h", "rht=off", "casts=1"},
            .hints = {"What do 16 equal errors add up to?", "Rounding, and behind More: Casts averaged.",
                      "stochastic, 16."},
            .judge = sixteen,
            .explanation =
                "Rounding to nearest makes the same error in every cast. Stochastic rounding makes larger "
                "errors, but "
                "independent ones: the mean of 16 has about 1/16 of their power, 12 dB less noise.",
            .solver = {sets("rounding", "stochastic"), sets("casts", "16")},
            .near_misses = {
                NearMiss{"one cast is worse than nearest", {sets("rounding", "stochastic")}, "16 casts"},
                NearMiss{"four casts", {sets("rounding", "stochastic"), sets("casts", "4")}, "16 casts"},
                NearMiss{"16 equal casts", {sets("casts", "16")}, "stochastic rounding"}}};
}

Exercise exercise_loaded() {
    return {
        .id = "L12.4",
        .title = "Stochastic, but biased",
        .question =
            "Stochastic rounding is unbiased, but not here. Find a tensor whose mean gain in NVFP4 is below "
            "−0.6 % without "
            "the rotation, with stochastic rounding. Then bring its gain above −0.35 % without leaving "
            "NVFP4. The "
            "gains are in the figure on the lower right.",
        .prediction = ChoicePrediction{{"exact", "too small", "too large"}},
        .predict =
            "Many stochastic NVFP4 casts of one tensor are averaged. Is the mean exact, too small or too "
            "large?",
        .covers = {"mean"},
        .start = {"tensor=normal", "rht=off", "rounding=stochastic"},
        .hints =
            {"Whose rounding is not random?",
             "The scale’s: half of the blocks have a scale that was rounded down, and their amax saturates.",
             "SwiGLU h, then Random Hadamard on: the saturated element carries less of its block."},
        .judge = dice_are_loaded,
        .explanation =
            "The E4M3 scale of a block is rounded to nearest. Where it is rounded down, the amax lies above "
            "6 units and "
            "becomes 6 in every cast. Stochastic rounding cannot repair that. After the rotation the amax "
            "carries less of the "
            "block’s "
            "energy, so less is lost.",
        .solver = {sets("tensor", "swiglu_h"), sets("rht", "on")},
        .near_misses = {NearMiss{"a Gaussian tensor never loses so much",
                                 {sets("rht", "on")},
                                 "NVFP4, stochastic, without the rotation: a mean gain below −0.6 %"},
                        NearMiss{"another format",
                                 {sets("tensor", "swiglu_h"), sets("format", "mxfp4"), sets("rht", "on")},
                                 "the same tensor in NVFP4, stochastic, rotated: above −0.35 %"},
                        NearMiss{"another scale helps, but not enough",
                                 {sets("tensor", "swiglu_h"), sets("target", "4or6")},
                                 "the same tensor in NVFP4, stochastic, rotated: above −0.35 %"}}};
}

Exercise exercise_one_hand() {
    return {.id = "L12.5",
            .title = "One hand only",
            .question =
                "wgrad computes dW = dy^T x over 4,096 tokens. Both operands are cast to NVFP4, but only dy "
                "is rotated. How "
                "many dB of SQNR are left? Answer within 1 dB.",
            .prediction = NumberPrediction{"left", "dB", -20, 20, 10, false, 0.5},
            .predict = "dy is rotated and x is not. How many dB of SQNR does dW keep?",
            .covers = {"mean"},
            .answers = {{"db", "SQNR of dW", "dB"}},
            .hints = {"H H^T is the identity only if both operands bring one of the two.",
                      "Press F6: the words of the figure on the lower right end with these numbers.",
                      "Below 0 dB: there is more noise than signal."},
            .judge = one_hand,
            .explanation =
                "dy^T H^T H x = dy^T x needs both rotations. With one of them the product is another matrix, "
                "whose noise "
                "is larger than the gradient itself.",
            .solver = {types("db", "-3")},
            .near_misses = {
                NearMiss{"both rotated", {types("db", "17.3")}, "the SQNR of dW, within 1 dB"},
                NearMiss{"none rotated", {types("db", "17.8")}, "the SQNR of dW, within 1 dB"},
                NearMiss{"as much noise as signal", {types("db", "0")}, "the SQNR of dW, within 1 dB"}}};
}

Exercise exercise_by_hand() {
    return {
        .id = "L12.6",
        .title = "One block by hand",
        .question =
            "A tensor has the amax 10, and one NVFP4 block of it has the amax 3.1. Which E4M3 scale does "
            "the block get? The "
            "largest element of the block is −3.1: what does it become?",
        .answers = {{"code_scale", "E4M3 scale", ""}, {"back", "−3.1 becomes", ""}},
        .hints = {"The block’s amax × 448 / the tensor’s amax is 138.88.",
                  "Between 128 and 256 the E4M3 values are 16 apart, so 138.88 goes to 128 "
                  "or 144. One unit is that scale × 10 / 2688; 2688 = 448 × 6, the largest scale times the "
                  "largest code.",
                  "Divide −3.1 by the unit, round to an E2M1 value, and multiply by the unit."},
        .judge = by_hand,
        .explanation =
            "3.1 × 448 / 10 = 138.88 rounds to 144. One unit is 144 × 10 / 2688 = 0.5357, so −3.1 is "
            "−5.79 units and becomes "
            "−6: −3.214. The scale was rounded up, so the element became larger.",
        .solver = {types("code_scale", "144"), types("back", "-3.214")},
        .near_misses = {NearMiss{"the scale is not rounded",
                                 {types("code_scale", "138.88"), types("back", "-3.1")},
                                 "the E4M3 scale"},
                        NearMiss{"136 is no E4M3 value",
                                 {types("code_scale", "136"), types("back", "-3.036")},
                                 "the E4M3 scale"},
                        NearMiss{"the element is not rounded",
                                 {types("code_scale", "144"), types("back", "-3.1")},
                                 "what −3.1 becomes, within 0.002"}}};
}

}  // namespace

std::span<const Exercise> FourLab::exercises() const {
    static const std::array kExercises = {exercise_help(),   exercise_both_ways(), exercise_sixteen(),
                                          exercise_loaded(), exercise_one_hand(),  exercise_by_hand()};
    return kExercises;
}

}  // namespace fp8lab::four
