// The judges of L17's exercises, assets/exercises/serve.json.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "labs/measured.h"
#include "labs/serve/judges.h"
#include "labs/serve/model.h"

namespace fp8lab::serve {
namespace {

constexpr double kTenth = 0.1, kFourBits = 5, kHalf = 0.5, kHundred = 100, kTwice = 2;
constexpr int kLayers = 4;  // of the networks of digits

bool is(const State& s, std::initializer_list<std::pair<const char*, const char*>> fields) {
    return std::ranges::all_of(fields,
                               [&](const auto& field) { return s.text(field.first) == field.second; });
}
std::vector<std::string> nats(double value) { return {divergence_text(value)}; }

// ---- L17.1
Verdict worse_weights(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double divergence = now.number("divergence"), nearest = now.number("nearest_divergence");
    int higher = 0;
    for (int l = 1; l <= kLayers; ++l)
        higher +=
            now.number(fmt::format("rel_l2_w_{}", l)) > now.number(fmt::format("nearest_rel_l2_w_{}", l));
    const double bits = now.number("bits");
    constexpr double kHigher = 2;  // of the choices
    return measured(
        {.conditions = {{"digits of seed 1, weights alone",
                         {},
                         is(now,
                            {{"experiment", "methods"}, {"network", "digits-s1"}, {"lower", "weights"}})},
                        {"a scheme of 4 bits", {fmt::format("{:.2f}", bits)}, bits < kFourBits},
                        {"the divergence is at most a tenth of that to nearest",
                         {fmt::format("{}×", times_text(nearest / divergence))},
                         divergence <= kTenth * nearest},
                        {"the error of every weight matrix is higher than to nearest",
                         {fmt::format("{} of {}", higher, kLayers)},
                         higher == kLayers}}},
        kHigher);
}

// ---- L17.2
bool is_nvfp4(const State& s) {
    return is(s, {{"experiment", "methods"}, {"scheme", "nvfp4"}, {"lower", "both"}}) &&
           s.text("network").starts_with("digits") && s.number("amax") == 1 && s.text("method") != "nearest";
}
bool halves(const State& s) {
    return is_nvfp4(s) && s.number("divergence") <= kHalf * s.number("nearest_divergence");
}
bool raises(const State& s) { return is_nvfp4(s) && s.number("divergence") > s.number("nearest_divergence"); }
bool same_method(const State& a, const State& b) {
    return a.text("method") == b.text("method") && a.text("network") != b.text("network") &&
           a.text("rows") == b.text("rows") && a.text("damp") == b.text("damp") &&
           a.text("order") == b.text("order");
}

Verdict no_ranking(const Trail& trail, const Prediction*) {
    std::vector<const State*> states = {&trail.start};
    for (const Step& step : trail.steps) states.push_back(&step.after);
    bool both = false;
    for (const State* first : states)
        for (const State* second : states)
            both = both || (halves(*first) && raises(*second) && same_method(*first, *second));
    const State& now = trail.now();
    const auto ratio = fmt::format("{:.2f}", now.number("divergence") / now.number("nearest_divergence"));
    constexpr double kHelps = 2;  // smooth on the three networks: measured in serve_test.cpp
    return measured(
        {.conditions = {{"NVFP4, weights and activations, amax × 1: a method halves the divergence",
                         {ratio},
                         trail.visited(halves)},
                        {"the same method raises it on another network of digits", {ratio}, both}}},
        kHelps);
}

// ---- L17.6
bool overflows(const State& s) {
    return is(s, {{"experiment", "kv"}, {"model", "transformer"}, {"cache", "one"}}) &&
           s.number("kv_divergence") >= kHundred * s.number("calibrated_divergence");
}

Verdict scale_one(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const auto factor = [](const State& s) { return s.number("k_factor"); };
    const auto as_now = [&](const State& s) { return overflows(s) && factor(s) == factor(now); };
    const double divergence = now.number("kv_divergence"), calibrated = now.number("calibrated_divergence");
    constexpr std::array kFactors = {16.0, 32.0, 64.0, 128.0, 256.0};  // of the choices
    const double first = now.number("first_saturated");
    const auto place = std::ranges::find(kFactors, first) - kFactors.begin();
    return measured(
        {.conditions = {{"the transformer, scale 1: 100 times the divergence of calibrated scales or more",
                         {fmt::format("{}×", times_text(divergence / calibrated))},
                         trail.visited(overflows)},
                        {"the same factor of K, another cache",
                         {now.text("k_factor")},
                         trail.visited(as_now) && now.text("cache") != "one"},
                        {"at most twice the divergence of calibrated scales", nats(divergence),
                         now.text("experiment") == "kv" && now.text("model") == "transformer" &&
                             divergence <= kTwice * calibrated}}},
        static_cast<double>(place));
}

}  // namespace

std::span<const NamedJudge> Serve::judges() {
    static constexpr std::array kJudges = {
        NamedJudge{"worse_weights", worse_weights}, NamedJudge{"no_ranking", no_ranking},
        NamedJudge{"seven_times", seven_times},     NamedJudge{"as_long_as_it_is", as_long_as_it_is},
        NamedJudge{"trained_worse", trained_worse}, NamedJudge{"scale_one", scale_one}};
    return kJudges;
}

}  // namespace fp8lab::serve
