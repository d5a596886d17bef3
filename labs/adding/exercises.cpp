// The exercises of L7.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "core/base/units.h"
#include "labs/adding/model.h"

namespace fp8lab::adding {

namespace {

constexpr double kTarget = 0.001;  // of L7.4

std::string percent(double ratio) { return format_number(100 * ratio, 2, true) + " %"; }

// A metric of the chosen rounding or format.
double of_chosen(const State& state, const char* field, const char* metric) {
    return state.number(state.text(field) + metric);
}

Verdict stalls(const Trail& trail, const Prediction*) {
    Verdict out;
    for (const char* name : {"e4m3", "e5m2", "bf16", "fp16"}) {
        const double typed = trail.answered_number(name);
        out.conditions.push_back({std::string(find_format(name).label),
                                  {std::isnan(typed) ? "" : screen_number(typed)},
                                  typed == stall_of(find_format(name), 0, 1)});
    }
    if (out.passed()) out.measured = {stall_of(find_format("e4m3"), 0, 1)};
    return out;
}

Verdict gradients(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double error = of_chosen(now, "format", ".error_pct");
    const bool same =
        now.text("experiment") == "sum" && now.number("addend") == 0.01 && now.number("terms") == 4096;
    return {.conditions = {{"4096 times 0.01", {}, same},
                           {"the sum is off by 1 % at most",
                            {screen_number(error) + " %"},
                            std::abs(error) <= 1}},
            .measured = same ? std::vector{now.number("e4m3.sum")} : std::vector<double>{}};
}

// Within three standard errors of the number, as unbiased rounding is.
bool unbiased(const State& state) {
    const double bias = of_chosen(state, "rounding", ".mean") - state.number("x");
    return of_chosen(state, "rounding", ".deviation") > 0 &&
           std::abs(bias) <= 3 * of_chosen(state, "rounding", ".standard_error");
}

Verdict noisier(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double cost = now.number("nearest.tensor_sqnr_db") - of_chosen(now, "rounding", ".tensor_sqnr_db");
    return {.conditions = {{"a tensor loses 2 dB or more", {screen_number(cost) + " dB"}, cost >= 2},
                           {"10 000 draws or more",
                            {screen_number(now.number("draws"))},
                            now.number("draws") >= 10000},
                           {"their mean is the number, within 3 standard errors",
                            {screen_number(of_chosen(now, "rounding", ".mean"))},
                            unbiased(now)}},
            .measured = cost >= 2 ? std::vector{cost} : std::vector<double>{}};
}

Verdict promote(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool same = now.text("experiment") == "dot" && now.text("data") == "uniform" &&
                      now.number("width") == 13 && now.number("k") == 4096;
    const auto interval = static_cast<unsigned>(now.number("interval"));
    const double error = now.number("promoted.rel_rms"),
                 doubled = now.number("promoted_half_as_often.rel_rms");
    return {.conditions = {{"13 bits, 4096 products of one sign", {}, same},
                           {"a power of two", {std::to_string(interval)}, std::has_single_bit(interval)},
                           {"0.1 % lost at most", {percent(error)}, error <= kTarget},
                           {"half as often would lose more", {percent(doubled)}, doubled > kTarget}},
            .measured = same ? std::vector{100 * now.number("narrow.rel_rms")} : std::vector<double>{}};
}

Verdict repair(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double off_grid = of_chosen(now, "rounding", ".tensor_off_grid_pct");
    Verdict out{
        .conditions = {{"results that are no E4M3 values", {screen_number(off_grid) + " %"}, off_grid == 0},
                       {"the mean of the draws is the number",
                        {screen_number(of_chosen(now, "rounding", ".mean"))},
                        unbiased(now)}}};
    out.measured = {now.number("integer.tensor_off_grid_pct")};
    return out;
}

}  // namespace

std::span<const Exercise> AddingLab::exercises() const {
    static const std::array kExercises = {
        Exercise{
            .id = "L7.1",
            .title = "Where it stops",
            .question = "Add 1.0 again and again, rounding to nearest. At which sum does each format stop?",
            .prediction =
                NumberPrediction{
                    .label = "stops at", .min = 1, .max = 4096, .initial = 448, .logarithmic = true},
            .predict = "Adding 1.0 for ever in E4M3 stops at ...",
            .start = {"addend=0.1"},
            .answers =
                {{"e4m3", "E4M3", ""}, {"e5m2", "E5M2", ""}, {"bf16", "BF16", ""}, {"fp16", "FP16", ""}},
            .hints = {"Half the gap to the next value must be smaller than 1.",
                      "Added each time: 1. Read the sums, or count mantissa bits.",
                      "With M mantissa bits the gap from 2^(M + 1) on is 2, and the tie goes back: 2^4, 2^3, "
                      "2^8, 2^11."},
            .judge = stalls,
            .explanation =
                "From 2^(M + 1) on the values are 2 apart. Adding 1 lands in the middle, the tie goes to the "
                "even mantissa, which is where the sum stands. Far below the format's maximum.",
            .solver = {types("e4m3", "16"), types("e5m2", "8"), types("bf16", "256"), types("fp16", "2048")},
            .near_misses = {NearMiss{"E4M3's largest value instead of its stall",
                                     {types("e4m3", "448"), types("e5m2", "8"), types("bf16", "256"),
                                      types("fp16", "2048")}},
                            NearMiss{"one answer is missing",
                                     {types("e4m3", "16"), types("e5m2", "8"), types("bf16", "256")}}}},
        Exercise{
            .id = "L7.2",
            .title = "Keep the gradients",
            .question = "4096 micro-batches each bring a gradient of 0.01. Make their sum right within 1 %.",
            .prediction = NumberPrediction{.label = "sum", .min = 0.01, .max = 41, .initial = 20},
            .predict = "What is left of 40.96 when the sum is kept in E4M3?",
            .start = {"addend=0.01", "format=e4m3"},
            .hints = {"Where does each accumulator stop?", "Kept in.",
                      "FP16 stops at 32. FP32 has room for 2^24 of them."},
            .judge = gradients,
            .explanation = "What is added stays small, the sum grows, and with it its gap. So gradients are "
                           "accumulated in "
                           "FP32, whatever format they were computed in.",
            .solver = {sets("format", "fp32")},
            .near_misses = {NearMiss{"FP16 stops at 32", {sets("format", "fp16")}},
                            NearMiss{"fewer gradients are another task", {sets("terms", "16")}}}},
        Exercise{
            .id = "L7.3",
            .title = "Worse and right",
            .question = "Round so that a single cast of a tensor loses at least 2 dB against nearest, and "
                        "the mean of "
                        "10 000 draws is still the number.",
            .prediction = NumberPrediction{.label = "cost", .unit = "dB", .max = 12, .initial = 0},
            .predict = "How many dB does stochastic rounding cost a tensor that is cast once?",
            .start = {"experiment=dice", "draws=100"},
            .hints = {"Which rounding goes the wrong way on purpose, now and then?", "Rounding and Draws.",
                      "Stochastic, 10 000 draws or more: about 3 dB, and a mean within a few thousandths."},
            .judge = noisier,
            .explanation =
                "Nearest has the smaller error each time and the same one every time. Stochastic rounding "
                "doubles the squared error and removes its mean, which is what a sum keeps.",
            .solver = {sets("rounding", "stochastic"), sets("draws", "20000")},
            .near_misses = {NearMiss{"too few draws to tell",
                                     {sets("rounding", "stochastic"), sets("draws", "1000")}},
                            NearMiss{"the notebook's noise is biased",
                                     {sets("rounding", "integer"), sets("draws", "20000")}}}},
        Exercise{
            .id = "L7.4",
            .title = "Promote in time",
            .question = "A tensor core adds 4096 products of one sign in 13 fraction bits. Find the largest "
                        "promotion "
                        "interval, a power of two, that loses at most 0.1 %.",
            .prediction = NumberPrediction{.label = "lost", .unit = "%", .max = 20, .initial = 0},
            .predict = "How much does the sum lose if it is never promoted?",
            .start = {"experiment=dot", "interval=4096"},
            .hints = {"Each cut takes a share of the last bit, and the last bit grows with the sum.",
                      "Promote every. The lower figure is the sweep.", "128 loses 0.05 %, 256 loses 0.17 %."},
            .judge = promote,
            .explanation = "Between two promotions the accumulator stays small, and so does what is cut off. "
                           "128 is what "
                           "DeepSeek-V3 and cuBLASLt without fast accumulation use.",
            .solver = {sets("interval", "128")},
            .near_misses = {NearMiss{"more often than needed", {sets("interval", "64")}},
                            NearMiss{"not often enough", {sets("interval", "256")}}}},
        Exercise{
            .id = "L7.5",
            .title = "Repair the dice",
            .question = "The notebook rounds x + noise to whole numbers. Choose dice whose results are all "
                        "E4M3 values "
                        "and whose mean is the number.",
            .prediction = NumberPrediction{.label = "off the grid", .unit = "%", .max = 100, .initial = 10},
            .predict = "What share of the notebook's results are no E4M3 values?",
            .start = {"experiment=dice", "rounding=integer"},
            .hints = {"How far apart are E4M3's values at 17.3, and how large is the noise?", "Rounding.",
                      "The noise must be as large as the gap at the number itself: Stochastic."},
            .judge = repair,
            .explanation =
                "Noise of one unit is too small where the gap is 2 and too large where it is 1/8. Stochastic "
                "rounding takes the gap at each number, so that it hits its two neighbours only.",
            .solver = {sets("rounding", "stochastic")},
            .near_misses = {NearMiss{"on the grid, but without dice", {sets("rounding", "nearest")}},
                            NearMiss{"noise of constant size never flips 17.3",
                                     {sets("rounding", "constant")}}}},
    };
    return kExercises;
}

}  // namespace fp8lab::adding
