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
                           {"the interval has three marks or more", {count_text(marks)}, marks >= 3}},
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
                       {"not on the notebook\u2019s grid", {}, own && !notebook_has_it}}};
}

Verdict slide_home(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double normal = now.number("e4m3.normal_pct"), overflow = now.number("e4m3.overflow_pct");
    const auto percent = [](double value) { return format_number(value, 4, true) + " %"; };
    const bool same_tensor = now.text("tensor") == "normal" && now.text("file").empty() &&
                             now.text("size") == trail.start.text("size");
    return {.conditions = {{"still the same tensor", {}, same_tensor},
                           {"99.9 % or more among the normals", {percent(normal)}, normal >= 99.9},
                           {"nothing saturated", {percent(overflow)}, overflow == 0}},
            .note = "scale " + format_number(now.number("scale"))};
}

}  // namespace

std::span<const Exercise> Ruler::exercises() {
    static const std::array kExercises = {
        Exercise{
            .id = "L2.1",
            .title = "Gaps of 32",
            .question = "The marks on the ruler are the values of E4M3. Find a part of the ruler in which "
                        "every gap between neighbouring marks is 32. Drag the two knobs under the ruler so "
                        "that the interval between them lies inside this part and contains at least three "
                        "marks. Ruler stays E4M3 and Scale stays 1.",
            .start = {"tensor=none"},
            .hints = {"The gap doubles with every power of two. Where is the gap 16?",
                      "The two knobs under the ruler are the two ends of the interval.",
                      "From 256 on the marks are 256, 288, 320 ... 448. Set the interval from 256 to 448."},
            .judge = gap_of_32,
            .explanation =
                "Each power of two is followed by 8 equal gaps up to the next one, so the gap is 1/8 of that "
                "power: 32 from 256 on. It is the largest gap of the format.",
            .solver = {sets("brush_lo", "256"), sets("brush_hi", "448")},
            .near_misses = {NearMiss{"reaches into the gaps of 16",
                                     {sets("brush_lo", "200"), sets("brush_hi", "448")},
                                     "every gap is 32"},
                            NearMiss{"another format\u2019s gaps of 32",
                                     {sets("first", "e5m2")},
                                     "E4M3 is the ruler, scale 1"}}},
        Exercise{
            .id = "L2.2",
            .title = "The middle value",
            .question = "E4M3 has 126 positive values. Drag the two knobs under the ruler so that the "
                        "interval between the knobs contains exactly the 63 smallest of them. The left knob "
                        "must be at or below the smallest value. Ruler stays E4M3 and Scale stays 1.",
            .prediction = NumberPrediction{.label = "half the values are below",
                                           .min = 0.01,
                                           .max = 448,
                                           .initial = 224,
                                           .logarithmic = true},
            .predict = "Below which number is half of the 126 positive values of E4M3?",
            .covers = {"ruler"},
            .start = {"tensor=none"},
            .hints = {"Count by powers of two: each has 8 values, and 7 more values are below the first "
                      "power of two.",
                      "Drag the left knob to 0, then the right knob. With Axis set to log this is easier.",
                      "7 subnormals and 7 × 8 normals are 63: everything below 2."},
            .judge = median,
            .explanation =
                "Each power of two has the same number of values, however wide it is. So half of the values "
                "are below 2, and the last 7 cover everything from 256 to 448.",
            .solver = {sets("brush_lo", "0"), sets("brush_hi", "2")},
            .near_misses = {NearMiss{"half the range, not half the values",
                                     {sets("brush_lo", "0"), sets("brush_hi", "224")},
                                     "it holds 63 of the 126 marks"},
                            NearMiss{"63 values, but the upper ones",
                                     {sets("brush_lo", "2"), sets("brush_hi", "450")},
                                     "the interval starts before the first mark"}}},
        Exercise{
            .id = "L2.3",
            .title = "What the notebook missed",
            .question = "A widely used FP8 notebook (a published Jupyter notebook) rounds to multiples of "
                        "1/8 and calls the result E4M3. Switch on Notebook’s fixed point (in the group More) "
                        "to show the marks of the notebook beside those of E4M3. Then enter a value between "
                        "0 and 1 that E4M3 can represent exactly and the grid of the notebook cannot.",
            .start = {"tensor=none"},
            .answers = {Answer{.name = "value", .label = "A value that the notebook misses", .unit = {}}},
            .hints = {"The notebook’s marks are evenly spaced: multiples of 1/8.",
                      "Switch on Notebook’s fixed point in the group More. Then look left of 1, with Axis "
                      "set to log.",
                      "From 0.25 on the gap of E4M3 is 1/32: 9/32 = 0.28125 is no multiple of 1/8."},
            .judge = missed,
            .explanation =
                "round(8x) / 8 has the same gap everywhere. A float’s gaps shrink with the value, so 48 of "
                "E4M3’s 126 positive values, all below 1, are not on the notebook’s grid.",
            .solver = {sets("fixed_point", "on"), types("value", "9/32")},
            .near_misses = {NearMiss{"the notebook has it as well",
                                     {sets("fixed_point", "on"), types("value", "0.625")},
                                     "not on the notebook’s grid"},
                            NearMiss{"E4M3 cannot represent it either",
                                     {sets("fixed_point", "on"), types("value", "0.3")},
                                     "a value of E4M3 between 0 and 1"}}},
        Exercise{
            .id = "L2.4",
            .title = "Slide it home",
            .question = "The tensor is Gaussian and as small as a gradient: its standard deviation is 0.001. "
                        "Set Scale, or drag the ruler by its handle, so that after scaling at least 99.9 % "
                        "of the elements are in the range of E4M3’s normal values and none saturates. Tensor "
                        "and Size stay as they are.",
            .start = {"tensor=normal", "size=0.001"},
            .hints = {"The tensor’s largest value is about 0.004. Which scale brings it near 448?",
                      "Use the handle on the ruler, or the control Scale.",
                      "With Scale 64,000 the largest element of the tensor becomes about 270."},
            .judge = slide_home,
            .explanation =
                "E4M3’s normal range, from 2^-6 to 448, spans nearly 15 binades, and a Gaussian needs about "
                "12 of them: there is room, if the scale puts the tensor there.",
            .solver = {sets("scale", "64000")},
            .near_misses = {NearMiss{"too far left: too many subnormals",
                                     {sets("scale", "4000")},
                                     "99.9 % or more among the normals"},
                            NearMiss{"too far right: the largest saturate",
                                     {sets("scale", "200000")},
                                     "nothing saturated"}}},
    };
    return kExercises;
}

}  // namespace fp8lab::ruler
