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

// No more than three standard errors from the number: what stochastic rounding without a bias gives.
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
                           {"the draws differ, and their mean is the number, within 3 standard errors",
                            {screen_number(of_chosen(now, "rounding", ".mean"))},
                            unbiased(now)}},
            .measured = cost >= 2 ? std::vector{cost} : std::vector<double>{}};
}

Verdict promote(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool same = now.text("experiment") == "dot" && now.text("data") == "uniform" &&
                      now.number("width") == 13 && now.number("k") == 4096;
    const double every = now.number("interval");
    const auto interval = every > 0 ? static_cast<unsigned>(every) : 0U;
    const double error = now.number("promoted.rel_rms"),
                 doubled = now.number("promoted_half_as_often.rel_rms");
    return {
        .conditions = {{"13 bits, 4096 products of one sign", {}, same},
                       {"the interval is a power of two",
                        {std::to_string(interval)},
                        std::has_single_bit(interval)},
                       {"the sum is at most 0.1 % off", {percent(error)}, error <= kTarget},
                       {"twice the interval is more than 0.1 % off", {percent(doubled)}, doubled > kTarget}},
        .measured = same ? std::vector{100 * now.number("narrow.rel_rms")} : std::vector<double>{}};
}

Verdict repair(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double off_grid = of_chosen(now, "rounding", ".tensor_off_grid_pct");
    Verdict out{.conditions = {
                    {"results that are no E4M3 values: 0 %", {screen_number(off_grid) + " %"}, off_grid == 0},
                    {"the draws differ, and their mean is the number, within 3 standard errors",
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
            .question = "Begin with 0, add 1.0 again and again, and round the sum to nearest after each "
                        "addition. In each of the formats E4M3, E5M2, BF16 and FP16 the sum stops growing at "
                        "some value. Enter these four values exactly. You may compute them, or set Added "
                        "each time to 1 and read them from the sums.",
            .prediction =
                NumberPrediction{
                    .label = "the sum stops at", .min = 1, .max = 4096, .initial = 448, .logarithmic = true},
            .predict = "1.0 is added again and again to a sum, and the sum is rounded to nearest in E4M3 "
                       "after each addition. At which value does the sum stop growing?",
            .covers = {"sum", "gaps", "table"},
            .start = {"addend=0.1"},
            .answers =
                {{"e4m3", "E4M3", ""}, {"e5m2", "E5M2", ""}, {"bf16", "BF16", ""}, {"fp16", "FP16", ""}},
            .hints =
                {"Adding 1 has no effect once half the gap from the sum to the next value is 1 or more.",
                 "Set Added each time to 1 and read the sums, or count the mantissa bits of each format.",
                 "With 3 mantissa bits (E4M3) the gap is 2 from 16 on, and the tie goes back to the even "
                 "value: 2^4, 2^3, 2^8, 2^11."},
            .judge = stalls,
            .explanation =
                "E4M3 has 3 mantissa bits, so from 16 on neighbouring values are 2 apart. Adding 1 gives the "
                "middle of two values, and the tie goes to the even mantissa, which is the old sum. This is "
                "far below the format's maximum, 448.",
            .solver = {types("e4m3", "16"), types("e5m2", "8"), types("bf16", "256"), types("fp16", "2048")},
            .near_misses = {NearMiss{"E4M3's largest value instead of its stall",
                                     {types("e4m3", "448"), types("e5m2", "8"), types("bf16", "256"),
                                      types("fp16", "2048")},
                                     "E4M3"},
                            NearMiss{"one answer is missing",
                                     {types("e4m3", "16"), types("e5m2", "8"), types("bf16", "256")},
                                     "FP16"}}},
        Exercise{
            .id = "L7.2",
            .title = "Keep the gradients",
            .question =
                "4096 micro-batches each add a gradient of 0.01 to a running sum, which is rounded "
                "to its format after each addition. The exact result is 40.96. Choose the format of "
                "the running sum (Kept in) so that the result is at most 1 % off. Added each time and "
                "Terms stay as they are.",
            .prediction = NumberPrediction{.label = "sum in E4M3", .min = 0.01, .max = 41, .initial = 20},
            .predict = "4096 gradients of 0.01 are added to a running sum, and the sum is rounded to nearest "
                       "in E4M3 after each addition. Which value does the sum reach instead of 40.96?",
            .covers = {"sum", "table"},
            .start = {"addend=0.01", "format=e4m3"},
            .hints = {"At which sum does each format stop?", "The control is Kept in.",
                      "The sum stops at 32 in FP16. In FP32 a sum of equal addends would stop only after "
                      "about 2^24 additions."},
            .judge = gradients,
            .explanation =
                "The addend stays small, but the sum grows, and the gap between neighbouring values grows "
                "with it. That is why gradients are accumulated in FP32, whatever format they were computed "
                "in.",
            .solver = {sets("format", "fp32")},
            .near_misses =
                {NearMiss{"FP16 stops at 32", {sets("format", "fp16")}, "the sum is off by 1 % at most"},
                 NearMiss{"fewer gradients are another task", {sets("terms", "16")}, "4096 times 0.01"}}},
        Exercise{
            .id = "L7.3",
            .title = "Worse and right",
            .question =
                "Choose a Rounding with two properties. A Gaussian tensor that is cast once with this "
                "rounding loses at least 2 dB of SQNR compared with rounding to nearest. When one number is "
                "rounded again and again with it, the mean of the results is that number, within 3 standard "
                "errors. Set Draws, the number of these roundings, to 10,000 or more.",
            .prediction = NumberPrediction{.label = "SQNR lost", .unit = "dB", .max = 12, .initial = 0},
            .predict = "A Gaussian tensor is cast to E4M3 once, with stochastic rounding. How many dB of "
                       "SQNR does it lose compared with rounding to nearest?",
            .covers = {"table"},
            .start = {"experiment=dice", "draws=100"},
            .hints = {"Which rounding sometimes takes the neighbour that is farther away, on purpose?",
                      "The controls are Rounding and Draws.",
                      "Stochastic with 10,000 draws or more: the tensor loses about 3 dB, and the mean is "
                      "right within a few thousandths."},
            .judge = noisier,
            .explanation =
                "Rounding to nearest has the smaller error in each cast, and the same error every time. "
                "Stochastic rounding doubles the mean squared error and makes the mean error zero; the mean "
                "error is what adds up in a sum.",
            .solver = {sets("rounding", "stochastic"), sets("draws", "20000")},
            .near_misses = {NearMiss{"too few draws to tell",
                                     {sets("rounding", "stochastic"), sets("draws", "1000")},
                                     "10 000 draws or more"},
                            NearMiss{
                                "the notebook's noise is biased",
                                {sets("rounding", "integer"), sets("draws", "20000")},
                                "the draws differ, and their mean is the number, within 3 standard errors"}}},
        Exercise{
            .id = "L7.4",
            .title = "Promote in time",
            .question =
                "The simulation of a tensor core adds 4096 products of one sign in an accumulator that keeps "
                "13 fraction bits and cuts off the rest. After every N products (control Promote every) the "
                "accumulator is added to an FP32 register and starts again from 0. Set Promote every to the "
                "largest power of two at which the sum is at most 0.1 % off the exact one. Products, Length "
                "K "
                "and Fraction bits stay as they are.",
            .prediction =
                NumberPrediction{.label = "lost share of the sum", .unit = "%", .max = 20, .initial = 0},
            .predict = "A tensor core adds 4096 products of one sign in an accumulator that keeps 13 "
                       "fraction bits and cuts off the rest. What percentage of the sum is lost if it is "
                       "never promoted, that is never added to an FP32 register?",
            .covers = {"accumulator", "promotion", "table"},
            .start = {"experiment=dot", "interval=4096"},
            .hints =
                {"Each addition cuts off a part of the last bit of the accumulator, and the last bit is "
                 "worth more as the sum grows.",
                 "The control is Promote every. The lower figure shows the error for every interval.",
                 "An interval of 128 products loses 0.05 % of the sum, an interval of 256 products 0.17 %."},
            .judge = promote,
            .explanation =
                "Between two promotions the accumulator stays small, and so does what is cut off. "
                "DeepSeek-V3 promotes every 128 products. An H200 without fast accumulation has the error of "
                "this model at 128: 0.05 % at K = 4096 (recorded in this lab).",
            .solver = {sets("interval", "128")},
            .near_misses = {NearMiss{"more often than needed",
                                     {sets("interval", "64")},
                                     "twice the interval is more than 0.1 % off"},
                            NearMiss{"not often enough",
                                     {sets("interval", "256")},
                                     "the sum is at most 0.1 % off"}}},
        Exercise{
            .id = "L7.5",
            .title = "Repair the noise",
            .question =
                "At the start Rounding is Notebook’s noise: random noise is added to the number x, "
                "and the result is rounded to a whole number. A published FP8 tutorial calls this "
                "stochastic rounding. Choose another Rounding with two properties: on a Gaussian "
                "tensor all its results are values of E4M3, and the mean of its results for the number "
                "x (17.3 at the start, between two values of E4M3) is x itself, within 3 standard errors.",
            .prediction =
                NumberPrediction{.label = "not values of E4M3", .unit = "%", .max = 100, .initial = 10},
            .predict = "A published FP8 tutorial adds random noise to a number, rounds it to a whole number, "
                       "and calls this stochastic rounding. If it is done to each element of a Gaussian "
                       "tensor, what percentage of the results are not values of E4M3?",
            .covers = {"table"},
            .start = {"experiment=dice", "rounding=integer"},
            .hints = {"How far apart are the values of E4M3 at 17.3, and how large is the noise?",
                      "The control is Rounding.",
                      "The noise must be as large as the gap at the number itself: choose Stochastic."},
            .judge = repair,
            .explanation =
                "Noise of one unit is too small where the gap is 2, and too large where it is 1/8. "
                "Stochastic rounding uses the gap at each number, so that only the two neighbouring values "
                "can result.",
            .solver = {sets("rounding", "stochastic")},
            .near_misses = {NearMiss{
                                "on the grid, but rounded to nearest",
                                {sets("rounding", "nearest")},
                                "the draws differ, and their mean is the number, within 3 standard errors"},
                            NearMiss{
                                "noise of constant size never flips 17.3",
                                {sets("rounding", "constant")},
                                "the draws differ, and their mean is the number, within 3 standard errors"}}},
    };
    return kExercises;
}

}  // namespace fp8lab::adding
