// The exercises of L4.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/window/model.h"

namespace fp8lab::window_lab {

namespace {

bool is(const State& state, std::string_view field, std::string_view value) {
    return state.text(field) == value;
}

// ---- L4.1
bool seed_array(const State& state) { return is(state, "tensor", "decades") && is(state, "file", ""); }
bool in_e4m3(const State& state) { return seed_array(state) && is(state, "format", "e4m3"); }

Verdict six_decades(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool clipped =
        trail.visited([](const State& s) { return in_e4m3(s) && s.number("overflow_pct") > 0; });
    const bool lost =
        trail.visited([](const State& s) { return in_e4m3(s) && s.number("underflow_pct") > 0; });
    const double overflow = now.number("overflow_pct"), underflow = now.number("underflow_pct");
    const bool same = seed_array(now), whole = overflow == 0 && underflow == 0;
    return {.conditions = {{"E4M3: a value saturated", {}, clipped},
                           {"E4M3: a value became 0", {}, lost},
                           {"now none saturates and none becomes 0",
                            {fmt::format("{} % saturate, {} % become 0", screen_number(overflow, 3),
                                         screen_number(underflow, 3))},
                            whole},
                           {"still the seven numbers", {}, same}},
            .measured = same && whole ? std::vector<double>{is(now, "format", "e5m2") ? 1.0 : 2.0}
                                      : std::vector<double>{}};
}

// ---- L4.2
constexpr std::array kSketched = {0, 3, 6, 9};

bool free_headroom_seen(const State& s) {
    return is(s, "tensor", "normal") && is(s, "format", "e4m3") && !is(s, "source", "manual") &&
           s.number("margin") >= 9 && s.number("outliers") == 0 &&
           s.number("sqnr_db") >= s.number("best_sqnr_db") - 0.5;
}

Verdict headroom(const Trail& trail, const Prediction*) {
    const bool free = trail.visited(free_headroom_seen);
    const State& now = trail.now();
    const bool heavy =
        is(now, "tensor", "lognormal") && is(now, "format", "e4m3") && now.number("sigma") >= 3;
    const double lost = now.number("underflow_pct"), least = now.number("least_underflow_pct");
    const double clipped = now.number("overflow_pct");
    std::vector<double> measured;
    if (free) {
        // The start is the Gaussian: its sweep holds the answer.
        for (const char* format : {"e4m3", "int8"})
            for (const int margin : kSketched)
                measured.push_back(
                    trail.start.number(fmt::format("{}.sqnr_db_at_margin_{}", format, margin)));
    }
    return {.conditions = {{"E4M3, a Gaussian without outliers, scale not manual: margin 2^9 or more, within "
                            "0.5 dB of the best",
                            {},
                            free},
                           {"then E4M3, a log-normal tensor, sigma 3 or more", {}, heavy},
                           {"its underflow is within 0.1 percentage points of the least that a margin gives",
                            heavy ? std::vector{screen_number(lost, 3) + " %, least " +
                                                screen_number(least, 3) + " %"}
                                  : std::vector<std::string>{},
                            heavy && lost <= least + 0.1},
                           {"and nothing of it saturates", {screen_number(clipped, 3) + " %"}, clipped == 0}},
            .measured = measured};
}

// ---- L4.3
bool one_gaussian_outlier(const State& s) { return is(s, "tensor", "normal") && s.number("outliers") >= 1; }
double loss_db(const State& s) { return s.number("base_sqnr_db") - s.number("inlier_sqnr_db"); }
bool e4m3_hurt(const State& s) {
    return one_gaussian_outlier(s) && is(s, "format", "e4m3") && is(s, "source", "current") &&
           is(s, "margin", "0") && loss_db(s) >= 3 && loss_db(s) <= 6;
}
bool int8_hurt(const State& s) {
    return one_gaussian_outlier(s) && is(s, "format", "int8") && is(s, "source", "current") &&
           is(s, "margin", "0") && s.number("outlier_ratio") <= 64 && loss_db(s) >= 20;
}

Verdict outlier(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const State* hurt = e4m3_hurt(trail.start) ? &trail.start : nullptr;
    for (const Step& step : trail.steps)
        if (!hurt && e4m3_hurt(step.after)) hurt = &step.after;
    // Only a state of E4M3 is shown: INT8's loss would be beside E4M3's condition.
    const State* shown = hurt ? hurt : is(now, "format", "e4m3") ? &now : nullptr;
    std::vector<std::string> loss;
    if (shown) loss = {screen_number(loss_db(*shown), 3) + " dB"};
    std::vector<double> measured;
    std::string note;
    if (hurt) {
        measured = {hurt->number("outlier_ratio")};
        note = fmt::format("Measured: the first outlier size of yours that cost 3 to 6 dB ({} sigma, {}).",
                           screen_number(measured.front()), loss.front());
    }
    return {
        .conditions =
            {{"E4M3, a Gaussian, scale from the current amax, margin 0: the other elements lose 3 to 6 dB",
              loss, hurt != nullptr},
             {"INT8, the same: they lose 20 dB or more, outlier 64 or less", {}, trail.visited(int8_hurt)}},
        .note = note,
        .measured = measured};
}

// ---- L4.4
Verdict cliff(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool nan_cast = is(now, "format", "e4m3") && is(now, "overflow", "nonsaturate");
    const bool unscaled = is(now, "source", "manual") && now.number("scale") == 1;
    const bool last = now.number("probe_cast") == 448, gone = now.number("probe_next_is_finite") == 0;
    const bool found = nan_cast && unscaled && last && gone;
    return {.conditions = {{"E4M3, casting to NaN, at scale 1", {}, nan_cast && unscaled},
                           {"x becomes 448", {screen_number(now.number("probe_cast"), 3)}, last},
                           {"x + 1 becomes NaN", {screen_number(now.number("probe_next"), 3)}, gone}},
            .measured = found ? std::vector<double>{std::floor(now.number("probe"))} : std::vector<double>{}};
}

// ---- L4.5
Verdict zeros(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool all_zero = is(now, "tensor", "zeros") && is(now, "file", "") && now.number("elements") > 0;
    const double bad = now.number("not_finite"), scale = now.number("scale_used");
    const bool sound = std::isfinite(scale) && scale > 0;
    const bool rule = !is(now, "source", "manual");
    return {.conditions = {{"the tensor is all zero", {}, all_zero},
                           {"its scale comes from its amax", {}, rule},
                           {"and is finite and above 0", {screen_number(scale, 3)}, sound},
                           {"no output is NaN or infinite", {screen_number(bad, 3)}, bad == 0}},
            .measured = all_zero && sound && bad == 0 ? std::vector<double>{1} : std::vector<double>{}};
}

Exercise exercise_six_decades() {
    return {
        .id = "L4.1",
        .title = "Six decades",
        .question =
            "The tensor holds seven numbers from 0.001 to 1000, six decades. While Format is E4M3, show a "
            "Margin at which the largest number saturates, and another Margin at which the smallest becomes "
            "0. Then change one or more controls, but not Tensor, until none of the seven numbers saturates "
            "and none becomes 0.",
        .prediction = ChoicePrediction{{"E4M3", "E5M2", "another one"}},
        .predict =
            "Seven numbers from 0.001 to 1000 are cast with one scale. Which format can hold these six "
            "decades at once, so that none saturates and none becomes 0?",
        .covers = {"window", "numbers"},
        .start = {"tensor=decades"},
        .hints =
            {"How many decades are between the smallest and the largest value of each format?",
             "Margin moves the window: -2 saturates the top, 0 loses the bottom. Then change Format.",
             "E4M3 spans 448 / 2^-9, that is 5.4 decades. E5M2 spans 57344 / 2^-16, that is 9.6 decades."},
        .judge = six_decades,
        .explanation =
            "No scale brings six decades into a window of 5.4. Range comes from exponent bits: E5M2 has "
            "one more, and one mantissa bit less, so its relative error is twice as large.",
        .solver = {sets("margin", "-2"), sets("margin", "0"), sets("format", "e5m2")},
        .near_misses = {
            NearMiss{"the top was never cut off", {sets("format", "e5m2")}, "E4M3: a value saturated"},
            NearMiss{"still E4M3",
                     {sets("margin", "-2"), sets("margin", "0")},
                     "now none saturates and none becomes 0"}}};
}

Exercise exercise_headroom() {
    return {.id = "L4.2",
            .title = "Free headroom",
            .question =
                "Margin leaves powers of two free above the amax (headroom). First, on the Gaussian tensor "
                "(Tensor normal), choose a Margin of 9 or more at which the SQNR is at most 0.5 dB below the "
                "best SQNR that any margin gives. Then choose the log-normal tensor with Sigma 3 and set "
                "Margin so that nothing saturates and the underflow is as small as any margin from 0 on can "
                "make it. Format stays E4M3.",
            .prediction = CurvePrediction{.figure = "margin",
                                          .x = {.label = "margin", .range = Range{-0.5, 9.5}},
                                          .y = {.label = "SQNR dB", .range = Range{0, 45}},
                                          .at = {0, 3, 6, 9},
                                          .lines = {"E4M3", "INT8"},
                                          .initial = 20},
            .predict =
                "A Gaussian tensor is cast with a margin of 0, 3, 6 and 9: that many powers of two stay free "
                "above its amax. Sketch its SQNR in dB at these four margins, first for E4M3, then for INT8.",
            .covers = {"margin"},
            .start = {"tensor=normal"},
            .hints = {"A power of two changes only the exponent of a float. What happens to the mantissa of "
                      "the float?",
                      "The control is Margin. Watch the SQNR of the Gaussian tensor, and the underflow of "
                      "the log-normal tensor.",
                      "On the Gaussian tensor a margin of 9 is as good as 0. On the log-normal tensor with "
                      "Sigma 3, only a margin of 0 has the least underflow."},
            .judge = headroom,
            .explanation =
                "A power of two changes only exponents: relative errors stay the same until elements become "
                "too small for the format. A Gaussian has almost no elements there. A heavy-tailed tensor "
                "has half of its elements there.",
            .solver = {sets("margin", "9"), sets("tensor", "lognormal"), sets("margin", "0")},
            .near_misses = {
                NearMiss{"the margin was left at 9",
                         {sets("margin", "9"), sets("tensor", "lognormal")},
                         "its underflow is within 0.1 percentage points of the least that a margin gives"},
                NearMiss{"no headroom taken on the Gaussian",
                         {sets("margin", "5"), sets("tensor", "lognormal"), sets("margin", "0")},
                         "E4M3, a Gaussian without outliers, scale not manual: margin 2^9 or more, within "
                         "0.5 dB of the best"}}};
}

Exercise exercise_outlier() {
    return {.id = "L4.3",
            .title = "How big an outlier?",
            .question =
                "A Gaussian tensor has one outlier, and its scale comes from the amax, with Margin 0. First, "
                "in E4M3, set Outlier size (in the group More) so that the SQNR of the other elements is 3 "
                "to 6 dB lower than without the outlier. Then choose the Format INT8 and an Outlier size of "
                "at most 64 (in standard deviations, sigma) that lowers the SQNR of the other elements by "
                "20 dB or more.",
            .prediction = NumberPrediction{.label = "outlier size",
                                           .unit = "sigma",
                                           .min = 10,
                                           .max = 1e6,
                                           .initial = 100,
                                           .logarithmic = true},
            .predict =
                "A Gaussian tensor with one outlier is scaled by its amax and cast to E4M3. How many "
                "standard deviations (sigma) large must the outlier be to lower the SQNR of the other "
                "elements by 3 dB or more?",
            .covers = {"numbers", "window"},
            .start = {"tensor=normal", "cols=16384", "outliers=1", "outlier_ratio=64"},
            .hints = {"The outlier makes the scale smaller. When do the elements of a Gaussian become too "
                      "small for E4M3?",
                      "The controls are Outlier size (in the group More), up to a million, and then Format.",
                      "An outlier of 2^15 = 32768 sigma costs the other elements about 4 dB in E4M3. An "
                      "outlier of 64 sigma costs them 24 dB in INT8."},
            .judge = outlier,
            .explanation =
                "INT8’s 255 values are evenly spaced up to the outlier, so few are left for the others. E4M3 "
                "spans 17.8 binades, a Gaussian needs few of them, and the rest is headroom.",
            .solver = {sets("outlier_ratio", "32768"), sets("format", "int8"), sets("outlier_ratio", "64")},
            .near_misses = {NearMiss{"INT8 was not tried",
                                     {sets("outlier_ratio", "32768")},
                                     "INT8, the same: they lose 20 dB or more, outlier 64 or less"},
                            NearMiss{"too large an outlier: 10 dB lost",
                                     {sets("outlier_ratio", "65536"), sets("format", "int8"),
                                      sets("outlier_ratio", "64")},
                                     "E4M3, a Gaussian, scale from the current amax, margin 0: the other "
                                     "elements lose 3 to 6 dB"}}};
}

Exercise exercise_cliff() {
    return {
        .id = "L4.4",
        .title = "The cliff",
        .question =
            "The Format is E4M3, the scale is 1, and the cast rounds to nearest and writes NaN for values "
            "that are too large (Beyond the window: NaN / Inf). Set Number x, beside the lower figure, to a "
            "whole number x that the cast still turns into 448, while it turns x + 1 into NaN. Leave all "
            "other controls as they are.",
        .prediction = NumberPrediction{.label = "x", .min = 400, .max = 520, .initial = 448, .step = 1},
        .predict =
            "448 is the largest value of E4M3, and the cast rounds to nearest. What is the largest number "
            "that still becomes 448?",
        .covers = {"probe"},
        .start = {"source=manual", "scale=1", "overflow=nonsaturate", "probe=100"},
        .hints = {"Rounding to nearest also rounds numbers above 448 down to 448. Up to which number?",
                  "The control is Number x, beside the lower figure: type a number, or use the arrow keys.",
                  "After 448 would come 480. Half way is 464, and the tie goes to the even code, 448."},
        .judge = cliff,
        .explanation =
            "Overflow does not begin at 448 but half a gap further: 464 still rounds to 448. Counting "
            "everything above 448 as saturated also counts values that were only rounded.",
        .solver = {sets("probe", "464")},
        .near_misses = {NearMiss{"448 itself: 449 is still 448", {sets("probe", "448")}, "x + 1 becomes NaN"},
                        NearMiss{"already NaN", {sets("probe", "465")}, "x becomes 448"}}};
}

Exercise exercise_zeros() {
    return {.id = "L4.5",
            .title = "A tensor of zeros",
            .question =
                "All elements of the tensor are 0, so its amax is 0, and the scale 448 / 0 turned every "
                "element into NaN. Choose another rule for this case (Amax of 0, in the group More) so that "
                "the scale is finite and the zeros stay zeros. Tensor stays at zeros, and the scale must "
                "still come from the amax: Scale from must not be manual.",
            .prediction = ChoicePrediction{{"zeros", "NaN", "448"}},
            .predict =
                "All elements of a tensor are 0, so its amax is 0 and its scale is 448 / 0. What does the "
                "cast to E4M3 write for each element?",
            .covers = {"numbers", "window"},
            .start = {"tensor=zeros", "zero=divide"},
            .hints = {"What is 448 / 0, and what is that times 0?",
                      "The control is Amax of 0, in the group More.",
                      "one: a scale of 1, as Transformer Engine. eps: as if amax were 1e-12, as torchao. "
                      "Either passes."},
            .judge = zeros,
            .explanation =
                "448 / 0 is Inf, and 0 times Inf is NaN. One layer whose values are all 0 would turn the "
                "whole step into NaN. Every library has a rule for this case, and the rules differ.",
            .solver = {sets("zero", "eps")},
            .near_misses = {NearMiss{"another tensor", {sets("tensor", "normal")}, "the tensor is all zero"},
                            NearMiss{"a scale by hand is no rule",
                                     {sets("source", "manual")},
                                     "its scale comes from its amax"}}};
}

}  // namespace

std::span<const Exercise> WindowLab::exercises() const {
    static const std::array kExercises = {exercise_six_decades(), exercise_headroom(), exercise_outlier(),
                                          exercise_cliff(), exercise_zeros()};
    return kExercises;
}

}  // namespace fp8lab::window_lab
