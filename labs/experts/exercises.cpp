// The judges of L18's exercises, assets/exercises/experts.json.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "labs/experts/model.h"
#include "labs/experts/model_casts.h"
#include "labs/measured.h"

namespace fp8lab::experts {
namespace {

using FieldValues = std::initializer_list<std::pair<const char*, const char*>>;

bool has(const State& s, FieldValues fields) {
    return std::ranges::all_of(fields,
                               [&](const auto& field) { return s.text(field.first) == field.second; });
}
std::vector<std::string> percent(double value) { return {fmt::format("{:.2f} %", value)}; }
// The words of a cast's menu; none in a trail without a lab's state.
std::vector<std::string> cast_words(const State& s, const char* field) {
    const std::string recipe = s.text(field);
    return recipe.empty() ? std::vector<std::string>{} : std::vector{label_of(recipe)};
}

// ---- L18.1
Verdict which_rounding(const Trail& trail, const Prediction*) {
    constexpr double kMostMoved = 5;
    const State& now = trail.now();
    const bool routes = now.text("experiment") == "routing";
    const double changed = now.number("changed_pct");
    return measured({.conditions = {{"layers in 8 bits", cast_words(now, "layers_in"),
                                     routes && find_cast(now.text("layers_in"), "layers_in").bits == 8},
                                    {"the router narrower than FP32", cast_words(now, "router"),
                                     routes && now.text("router") != "fp32"},
                                    {"at most 5 % of the tokens change experts", percent(changed),
                                     changed <= kMostMoved}}},
                    trail.start.number("changed_pct"));
}

// ---- L18.2
bool is_mxfp8(const State& s) {
    return has(s, {{"experiment", "routing"}, {"layers_in", "mxfp8"}, {"router", "fp32"}});
}

Verdict same_experts(const Trail& trail, const Prediction*) {
    constexpr double kOff = 5;
    const State& now = trail.now();
    const auto seen = [&](const char* routes) {
        return trail.visited([&](const State& s) { return is_mxfp8(s) && s.text("routes") == routes; });
    };
    const double share = trail.answered_number("share");
    return {
        .conditions = {{"MXFP8 layers, router in FP32", {}, is_mxfp8(now)},
                       {"both seen: choices made anew, and choices kept", {}, seen("new") && seen("kept")},
                       {"the share that changed choices cause, to 5 points",
                        {trail.answered("share")},
                        std::fabs(share - now.number("choice_share_pct")) <= kOff}}};
}

// ---- L18.3
Verdict how_many_tokens(const Trail& trail, const Prediction*) {
    constexpr double kMostZeros = 12;
    constexpr int kPad = 128;
    const State& now = trail.now();
    const bool asked = has(now, {{"experiment", "groups"}, {"pool", "256/8"}, {"pad", "128"}});
    const double zeros = now.number("zeros_pct");
    const bool few = asked && zeros <= kMostZeros;
    bool smallest = false;
    if (few) {
        const GroupDraw half{.tokens = static_cast<int>(now.number("tokens")) / 2,
                             .skew = now.number("skew"),
                             .seed = static_cast<std::uint64_t>(now.number("seed"))};
        smallest = group_shape(draw_groups(half), kPad).zeros_pct > kMostZeros;
    }
    return {.conditions = {{"256 experts, 8 active, rows padded to 128", {}, asked},
                           {"at most 12 % of the rows are zeros", percent(zeros), few},
                           {"half of the tokens would leave more", {now.text("tokens")}, smallest}}};
}

// ---- L18.4
Verdict cannot_help(const Trail& trail, const Prediction*) {
    constexpr double kOff = 0.05, kWgrad = 2;  // of the choices of the prediction
    const State& now = trail.now();
    const double factor = trail.answered_number("speedup");
    return measured({.conditions = {{"the recorded times are shown", {}, now.text("experiment") == "groups"},
                                    {"the GEMM that gains least",
                                     {trail.answered("gemm")},
                                     trail.answered("gemm") == "wgrad"},
                                    {"its speed-up with 64 groups, to 0.05",
                                     {trail.answered("speedup")},
                                     std::fabs(factor - now.number("wgrad.speedup")) <= kOff}}},
                    kWgrad);
}

// ---- L18.5
Verdict free_hop(const Trail& trail, const Prediction*) {
    constexpr double kNothing = 0.01;
    const State& now = trail.now();
    const bool hop = now.text("experiment") == "hop";
    const double added = now.number("hop_added_pct");
    return {
        .conditions = {{"the GEMMs in MXFP8", cast_words(now, "gemm"), hop && now.text("gemm") == "mxfp8"},
                       {"sent out in 8 bits", cast_words(now, "send"),
                        hop && find_cast(now.text("send"), "send").bits == 8},
                       {"sent back in BF16", cast_words(now, "back"), hop && now.text("back") == "bf16"},
                       {"the hop adds at most 0.01 points", percent(added), added <= kNothing}}};
}

// ---- L18.6
Verdict back_from_nowhere(const Trail& trail, const Prediction*) {
    constexpr double kWhole_db = 25;
    const State& now = trail.now();
    const double db = now.number("return_sqnr_db");
    const bool starved = has(now, {{"experiment", "training"}, {"starve", "100-300"}});
    const std::string arms = now.text("arms");
    const bool per_tensor = arms == "delayed" || arms == "current";
    return {.conditions = {{"expert 1 gets no token in steps 100 to 300", {now.text("starve")}, starved},
                           {"the training of seed 1", {now.text("seed")}, now.text("seed") == "1"},
                           {"a recipe with one scale per tensor", {arms}, per_tensor},
                           {"the first cast of dy after them: 25 dB or more",
                            {fmt::format("{:.1f} dB", db)},
                            db >= kWhole_db}}};
}

}  // namespace

std::span<const NamedJudge> Mixture::judges() {
    static constexpr std::array kJudges = {NamedJudge{"which_rounding", which_rounding},
                                           NamedJudge{"same_experts", same_experts},
                                           NamedJudge{"how_many_tokens", how_many_tokens},
                                           NamedJudge{"cannot_help", cannot_help},
                                           NamedJudge{"free_hop", free_hop},
                                           NamedJudge{"back_from_nowhere", back_from_nowhere}};
    return kJudges;
}

}  // namespace fp8lab::experts
