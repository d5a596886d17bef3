// The exercises of L2.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "core/formats/codec.h"
#include "labs/ruler/model.h"

namespace fp8lab::ruler {

namespace {

std::string count_text(double count) { return std::isnan(count) ? "\u2013" : format_number(count); }

// E4M3 as the first ruler, not stretched.
bool plain_e4m3(const State& state) { return state.text("first") == "e4m3" && state.number("scale") == 1; }

std::string brush_text(const State& state) {
    return fmt::format("from {} to below {}", format_number(state.number("brush_lo")),
                       format_number(state.number("brush_hi")));
}

Verdict gap_of_32(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double least = now.number("e4m3.interval_min_gap"), most = now.number("e4m3.interval_max_gap");
    const double marks = now.number("e4m3.interval_values");
    const std::string gaps =
        least == most ? count_text(least) : count_text(least) + " to " + count_text(most);
    return {.conditions = {{"E4M3 is the ruler, scale 1", {}, plain_e4m3(now)},
                           {"every gap is 32", {gaps}, least == 32 && most == 32},
                           {"over three marks or more", {count_text(marks)}, marks >= 3}},
            .note = brush_text(now)};
}

Verdict median(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double inside = now.number("e4m3.interval_values");
    const bool from_first = now.number("brush_lo") <= 0x1p-9, half = from_first && inside == 63;
    const bool plain = plain_e4m3(now);
    return {
        .conditions = {{"E4M3 is the ruler, scale 1", {}, plain},
                       {"the interval starts before the first mark", {}, from_first},
                       {"it holds 63 of the 126 marks", {count_text(inside)}, inside == 63}},
        .note = brush_text(now),
        .measured = plain && half ? std::vector{now.number("e4m3.half_lies_below")} : std::vector<double>{}};
}

Verdict missed(const Trail& trail, const Prediction*) {
    const FormatInfo& e4m3 = find_format("e4m3");
    const double value = trail.answered_number("value");
    const bool own = value > 0 && value < 1 &&
                     static_cast<double>(decode(e4m3, encode(e4m3, static_cast<float>(value)))) == value;
    const bool notebook_has_it = std::floor(8 * value) == 8 * value;
    const std::string typed = std::isnan(value) ? "\u2013" : format_number(value);
    return {
        .conditions = {{"the notebook\u2019s marks are drawn", {}, trail.now().text("fixed_point") == "on"},
                       {"a value of E4M3 between 0 and 1", {typed}, own},
                       {"no mark of the notebook\u2019s", {}, own && !notebook_has_it}}};
}

Verdict slide_home(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double normal = now.number("e4m3.normal_pct"), overflow = now.number("e4m3.overflow_pct");
    const auto percent = [](double value) { return format_number(value, 4, true) + " %"; };
    const bool same_tensor = now.text("tensor") == "normal" && now.text("size") == trail.start.text("size");
    return {.conditions = {{"still the same tensor", {}, same_tensor},
                           {"99.9 % or more among the normals", {percent(normal)}, normal >= 99.9},
                           {"nothing saturated", {percent(overflow)}, overflow == 0}},
            .note = "scale " + format_number(now.number("scale"))};
}

}  // namespace

std::span<const Exercise> RulerLab::exercises() const {
    static const std::array kExercises = {
        Exercise{
            .id = "L2.1",
            .title = "Gaps of 32",
            .question =
                "Find a stretch of E4M3\u2019s ruler in which every gap is 32, and hold the interval to it.",
            .start = {"tensor=none"},
            .hints = {"The gap doubles with every power of two. Where is it 16?",
                      "The two knobs under the ruler: both ends of the interval.",
                      "From 256 on: 256, 288, 320 ... 448. Interval from 256 to 448."},
            .judge = gap_of_32,
            .explanation =
                "Between two powers of two lie 8 values of E4M3, so the gap is 1/8 of the power below: 32 "
                "from 256 on. It is the largest gap the format has.",
            .solver = {sets("brush_lo", "256"), sets("brush_hi", "448")},
            .near_misses = {NearMiss{"reaches into the gaps of 16",
                                     {sets("brush_lo", "200"), sets("brush_hi", "448")}},
                            NearMiss{"another format\u2019s gaps of 32", {sets("first", "e5m2")}}}},
        Exercise{
            .id = "L2.2",
            .title = "The middle value",
            .question = "Hold the interval to the lower half of E4M3\u2019s positive values: 63 of the 126.",
            .prediction =
                NumberPrediction{
                    .label = "half lies below", .min = 0.01, .max = 448, .initial = 224, .logarithmic = true},
            .predict = "Half of all positive E4M3 numbers lie below which number?",
            .start = {"tensor=none"},
            .hints = {"Count by powers of two: each holds 8, and 7 more lie below the first.",
                      "Left knob to 0, then the right one. On the log axis it is easier.",
                      "7 subnormals and 7 \u00d7 8 normals are 63: everything below 2."},
            .judge = median,
            .explanation =
                "Codes are dealt out by exponent, not by size. Half of them lie below 2, and the last 7 "
                "cover everything from 256 to 448.",
            .solver = {sets("brush_lo", "0"), sets("brush_hi", "2")},
            .near_misses = {NearMiss{"half the range, not half the values",
                                     {sets("brush_lo", "0"), sets("brush_hi", "224")}},
                            NearMiss{"63 values, but the upper ones",
                                     {sets("brush_lo", "2"), sets("brush_hi", "450")}}}},
        Exercise{
            .id = "L2.3",
            .title = "What the notebook missed",
            .question = "Lay the notebook\u2019s marks beside E4M3\u2019s and name a value between 0 and 1 "
                        "that E4M3 has and "
                        "the notebook has not.",
            .start = {"tensor=none"},
            .answers = {Answer{.name = "value", .label = "A value it missed", .unit = {}}},
            .hints = {"The notebook\u2019s marks are even: multiples of 1/8.",
                      "More: Notebook\u2019s fixed point. Then look left of 1, on the log axis.",
                      "From 0.25 on the gap of E4M3 is 1/32: 9/32 = 0.28125 is no multiple of 1/8."},
            .judge = missed,
            .explanation =
                "round(8x) / 8 has the same gap everywhere. A float\u2019s gaps shrink with the value, so 48 "
                "of E4M3\u2019s 126 values, all below 1, are no marks of the notebook\u2019s.",
            .solver = {sets("fixed_point", "on"), types("value", "9/32")},
            .near_misses = {NearMiss{"the notebook has it as well",
                                     {sets("fixed_point", "on"), types("value", "0.625")}},
                            NearMiss{"E4M3 has not got it either",
                                     {sets("fixed_point", "on"), types("value", "0.3")}}}},
        Exercise{.id = "L2.4",
                 .title = "Slide it home",
                 .question = "The tensor is as small as a gradient. Slide the ruler until at least 99.9 % of "
                             "it lies among "
                             "the normal values and nothing saturates.",
                 .start = {"tensor=normal", "size=0.001"},
                 .hints = {"The tensor ends near 0.004. Where should the ruler\u2019s end at 448 lie?",
                           "The handle under the ruler, or Scale.",
                           "Scale 64,000 puts the tensor\u2019s largest value near 270."},
                 .judge = slide_home,
                 .explanation =
                     "The ruler spans nearly 15 binades between its first normal value and its end, and a "
                     "Gaussian needs about 12 of them: there is room, if the scale puts it there.",
                 .solver = {sets("scale", "64000")},
                 .near_misses = {NearMiss{"too far left: too many subnormals", {sets("scale", "4000")}},
                                 NearMiss{"too far right: the largest saturate", {sets("scale", "200000")}}}},
    };
    return kExercises;
}

}  // namespace fp8lab::ruler
