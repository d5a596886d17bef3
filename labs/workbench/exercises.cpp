// The judges of the Workbench's exercises, assets/exercises/workbench.json. They hold for any file; the specimens are of
// the shipped samples.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/measured.h"
#include "labs/workbench/model.h"

namespace fp8lab::workbench {
namespace {

bool demands_stay(const State& now, const State& start) {
    for (const std::string_view field :
         {"min_sqnr", "max_underflow", "min_row", "max_bits", "cast_as", "mx_rule"})
        if (now.text(field) != start.text(field)) return false;
    return true;
}
std::vector<std::string> number_cell(double value, const char* unit) {
    return {std::isfinite(value) ? screen_number(value, 3) + unit : std::string("\u2013")};
}

// As the table calls it.
std::string label_of_recipe(const std::string& id) {
    for (const ScanRecipe& recipe : scan_recipes())
        if (recipe.id == id) return recipe.label;
    return id;
}

// ---- W.1
Verdict fewest_bits(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const std::string chosen = now.text("recipe");
    const double family = chosen == "current" || chosen == "e5m2" || chosen == "rowwise" ? 2
                          : chosen == "bf16"                                             ? 3
                          : chosen == "mxfp8" || chosen == "block128"                    ? 1
                                                                                         : 0;
    return measured({.conditions = {{"all demands and the casts as they were: 25 dB, 1 %",
                                     {},
                                     demands_stay(now, trail.start)},
                                    {"1024 elements or more", number_cell(now.number("elements"), ""),
                                     now.number("elements") >= 1024},
                                    {"no recipe that meets them has fewer bits",
                                     {label_of_recipe(chosen)},
                                     chosen == now.text("recommended")}}},
                    family);
}

// ---- W.2
bool near_share(double typed, double pct) {  // as a percentage, or as a share
    return std::fabs(typed - pct) <= 0.1 * pct || std::fabs(100 * typed - pct) <= 0.1 * pct;
}
Verdict zeros_without_loss(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double lost = now.number("lost_l1_pct"), zeros = now.number("underflow_pct_current");
    const bool one_scale = now.text("recipe") == "current", many = zeros >= 10;
    const bool share = one_scale && many && near_share(trail.answered_number("share"), lost);
    const bool common = trail.answered("common") == "attention";
    return measured(
        {.conditions = {{"E4M3, one scale", {label_of_recipe(now.text("recipe"))}, one_scale},
                        {"10 % or more become 0", number_cell(zeros, " %"), many},
                        {"the share of the absolute sum, within a tenth", {trail.answered("share")}, share},
                        {"what the six have in common", {trail.answered("common")}, common}}},
        3);
}

// ---- W.3
Verdict upwards(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const std::string recipe = now.text("recipe");
    const double sqnr = now.number("sqnr_db_" + recipe), zero = now.number("underflow_pct_" + recipe),
                 bits = now.number("bits_" + recipe);
    return {.conditions = {{"8.1 bits or fewer", number_cell(bits, ""), bits <= 8.1},
                           {"25 dB or more", number_cell(sqnr, " dB"), sqnr >= 25},
                           {"20 % or more become 0", number_cell(zero, " %"), zero >= 20}}};
}

// ---- W.4
Verdict before_and_after(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double amax = now.number("kind_amax_log2"), least = now.number("kind_least_log2");
    return {.conditions = {{"a second file is compared", {now.text("compare")}, !now.text("compare").empty()},
                           {"the amax of the kind rose", number_cell(amax, " binades"), amax > 0},
                           {"its smallest value fell by 3 binades or more", number_cell(least, " binades"),
                            least <= -3}}};
}

// ---- W.5
// The first choice under that name; empty: none yet.
std::string first_choice(const Trail& trail, std::string_view name) {
    for (const Step& step : trail.steps)
        for (const Event& event : step.events)
            if (event.kind == Event::Kind::answer && event.name == name) return event.value;
    return {};
}

Verdict which_fault(const Trail& trail, const Prediction*) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kRight = {
        {{"fault_1", "global scale inverse"},
         {"fault_2", "nibbles swapped"},
         {"fault_3", "transposed"},
         {"fault_4", "scale lost"},
         {"fault_5", "scale inverse"},
         {"fault_6", "byte as a number"}}};
    constexpr std::int64_t kEnough = 5;
    const auto right = std::ranges::count_if(
        kRight, [&](const auto& each) { return first_choice(trail, each.first) == each.second; });
    const bool six = trail.now().text("file") == kFaulty;
    return measured(
        {.conditions = {{"5 of 6 first choices are right", {fmt::format("{} of 6", right)}, right >= kEnough},
                        {"the six files are open", {}, six}}},
        2);
}

// ---- W.6
bool is_sample_run(const State& now) { return now.text("run") == kSampleRun; }

Verdict how_long(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double lost = now.number("lost_pct_inp.x"), saturated = now.number("saturated_inp.x");
    const bool delayed = now.text("run_recipe") == kOwnRecipe || now.text("run_recipe") == "delayed";
    return measured(
        {.conditions = {{"delayed scaling of the sample run, margin 0",
                         {now.text("run_recipe")},
                         is_sample_run(now) && delayed && now.number("margin") == 0},
                        {"at most 2 % of inp.x become 0", number_cell(lost, " %"), lost <= 2},
                        {"at most 20 steps saturate", number_cell(saturated, ""), saturated <= 20}}},
        now.text("algo") == "most_recent" ? 1 : now.number("history"));
}

// ---- W.7
Verdict before_the_loss(const Trail& trail, const Prediction*) {
    constexpr double kFirst = 153, kWithin = 12;  // of the sample run, with a history of 64
    const State& now = trail.now();
    const std::string tensor = now.text("run_tensor");
    const double step = now.number("run_step");
    const bool right = is_sample_run(now) && tensor == "b.1.down.x";
    return measured({.conditions = {{"the tensor that becomes ill second", {tensor}, right},
                                    {"its first step, within 12",
                                     {step < 0 ? std::string("\u2013") : screen_number(step)},
                                     right && std::fabs(step - kFirst) <= kWithin}}},
                    3);
}

}  // namespace

std::span<const NamedJudge> Workbench::judges() {
    static constexpr std::array kJudges = {NamedJudge{"fewest_bits", fewest_bits},
                                           NamedJudge{"zeros_without_loss", zeros_without_loss},
                                           NamedJudge{"upwards", upwards},
                                           NamedJudge{"before_and_after", before_and_after},
                                           NamedJudge{"which_fault", which_fault},
                                           NamedJudge{"how_long", how_long},
                                           NamedJudge{"before_the_loss", before_the_loss}};
    return kJudges;
}

}  // namespace fp8lab::workbench
