// The judges of L16's exercises, assets/exercises/clinic.json. They read who is behind a letter from the data: whatever the deal,
// a case is that of its disease.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "labs/clinic/model.h"
#include "labs/measured.h"

namespace fp8lab::clinic {
namespace {

std::size_t place_of(const State& s) { return kLetters.find(s.text("case").substr(0, 1)); }
Disease disease_of(const State& s, std::size_t place) {
    return dealt(static_cast<int>(s.number("deal"))).at(place);
}
bool is_case(const State& s, Disease disease) {
    const std::size_t place = place_of(s);
    return place < kLetters.size() && disease_of(s, place) == disease;
}
std::string name_at(const char* name, std::size_t place) {
    return fmt::format("{}_{}", name, small_letter(place));
}
bool cured_at(const State& s, std::size_t place) {  // and not revealed
    return s.number(name_at("cured", place)) == 1 && s.text(name_at("revealed", place)) != "on";
}
bool cured(const Trail& trail, Disease disease) {
    return trail.visited([&](const State& s) {
        for (std::size_t place = 0; place < kLetters.size(); ++place)
            if (disease_of(s, place) == disease) return cured_at(s, place);
        return false;
    });
}
std::string yes_no(bool met) { return met ? "cured" : "–"; }
Condition condition_of(const Trail& trail, Disease disease, const char* words) {
    const bool met = cured(trail, disease);
    return {words, {yes_no(met)}, met};
}

// ---- L16.1
Verdict first_aid(const Trail& trail, const Prediction*) {
    constexpr double kX = 1;  // of the choices: the operands of a product
    return measured(
        {.conditions = {condition_of(trail, Disease::nan_overflow,
                                     "the run that ends in step 1 or 2 is cured"),
                        condition_of(trail, Disease::zero_scale, "the run that ends in step 0 is cured")}},
        kX);
}

// ---- L16.2
bool only_the_loss(const State& s) {
    return is_case(s, Disease::small_gradients) && s.number("rerun_gap_pct") <= kCuredPct &&
           s.number("rerun_worst_underflow_pct") > kCuredUnderflowPct;
}
Verdict symptom(const Trail& trail, const Prediction*) {
    bool first = false, then = false;
    std::string gap = "–", lost = "–";
    for (const Step& step : trail.steps) {
        const State& s = step.after;
        if (!first && only_the_loss(s)) {
            first = true;
            gap = fmt::format("{:.1f} %", s.number("rerun_gap_pct"));
            lost = fmt::format("{:.0f} %", s.number("rerun_worst_underflow_pct"));
        } else if (first && is_case(s, Disease::small_gradients) && s.number("cured") == 1) {
            then = true;
        }
    }
    return {.conditions = {{"the loss within 8 % of healthy, and still 1 % and more of a tensor becomes 0",
                            {first ? gap + ", " + lost : "–"},
                            first},
                           {"the same case cured, after that", {yes_no(then)}, then}}};
}

// ---- L16.3
Verdict quiet_ones(const Trail& trail, const Prediction*) {
    constexpr double kEnd = 2;  // of the eight cases
    return measured(
        {.conditions = {condition_of(trail, Disease::no_master, "the run whose weights stand still is cured"),
                        condition_of(trail, Disease::few_bits, "the run that is coarse in x and w is cured"),
                        condition_of(trail, Disease::narrow_sum, "the run whose products are off is cured")}},
        kEnd);
}

// ---- L16.4
Verdict not_fp8(const Trail& trail, const Prediction*) {
    constexpr double kNear = 1.1, kBoth = 2;
    const auto near = [&](const State& s) {
        return is_case(s, Disease::high_rate) && s.number("cured") == 1 &&
               s.number("rerun_twin_ratio") <= kNear;
    };
    const State& now = trail.now();
    const double ratio = now.number("rerun_twin_ratio");
    return measured(
        {.conditions = {condition_of(trail, Disease::high_rate, "the run whose twin is as sick is cured"),
                        {"its twin ends within 10 % of healthy",
                         {std::isnan(ratio) ? "–" : fmt::format("{:.2f}×", ratio)},
                         trail.visited(near)}}},
        kBoth);
}

// ---- L16.5
struct Round {
    int cured = 0, first_right = 0;
    bool revealed = false;
};
Round round_of(const Trail& trail) {
    Round out;
    const int deal = static_cast<int>(trail.now().number("deal"));
    for (std::size_t place = 0; place < kLetters.size(); ++place) {
        const std::string said = name_at("first", place), revealed = name_at("revealed", place);
        std::string first;  // of all that the trail has: undo takes the field back, and not this
        bool is_cured = false, was_revealed = false;
        for (const Step& step : trail.steps) {
            const State& s = step.after;
            if (static_cast<int>(s.number("deal")) != deal) {  // another deal is another round
                first.clear(), is_cured = was_revealed = false;
                continue;
            }
            if (first.empty() && s.text(said) != "none") first = s.text(said);
            was_revealed = was_revealed || s.text(revealed) == "on";
            is_cured = is_cured || (!was_revealed && cured_at(s, place));
        }
        out.cured += is_cured;
        out.first_right += first == info_of(dealt(deal).at(place)).diagnosis;
        out.revealed = out.revealed || was_revealed;
    }
    return out;
}
Verdict six_of_eight(const Trail& trail, const Prediction*) {
    constexpr int kCures = 6, kFirst = 4;
    const Round round = round_of(trail);
    return measured({.conditions = {{"six cases cured in one deal, none of them revealed before",
                                     {std::to_string(round.cured)},
                                     round.cured >= kCures},
                                    {"the first diagnosis right in four of the eight",
                                     {std::to_string(round.first_right)},
                                     round.first_right >= kFirst}}},
                    static_cast<double>(round.first_right));
}

}  // namespace

std::span<const NamedJudge> Clinic::judges() {
    static constexpr std::array kJudges = {NamedJudge{"first_aid", first_aid}, NamedJudge{"symptom", symptom},
                                           NamedJudge{"quiet_ones", quiet_ones},
                                           NamedJudge{"not_fp8", not_fp8},
                                           NamedJudge{"six_of_eight", six_of_eight}};
    return kJudges;
}

}  // namespace fp8lab::clinic
