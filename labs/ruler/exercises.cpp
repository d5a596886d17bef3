// The judges of L2's exercises, assets/exercises/ruler.json.
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

std::span<const NamedJudge> Ruler::judges() {
    static constexpr std::array kJudges = {NamedJudge{"gap_of_32", gap_of_32}, NamedJudge{"median", median},
                                           NamedJudge{"missed", missed},
                                           NamedJudge{"slide_home", slide_home}};
    return kJudges;
}

}  // namespace fp8lab::ruler
