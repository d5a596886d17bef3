// The exercises of L1. A bit counts as flipped by the learner's hand: the action "toggle", not a jump to a
// code.
#include <fmt/format.h>

#include "core/base/units.h"
#include "labs/bits/model.h"

namespace fp8lab::bits_lab {

namespace {

bool is_toggle(const Step& step) {
    return !step.events.empty() && step.events.back().kind == Event::Kind::act &&
           step.events.back().name.starts_with("toggle");
}

bool flipped_last(const Trail& trail) { return !trail.steps.empty() && is_toggle(trail.steps.back()); }

// Largest finite value of either sign in E4M3.
bool on_largest(const State& state) {
    return state.text("format") == "e4m3" && std::abs(state.number("value")) == state.number("max");
}

std::string reading(const State& state) {
    return state.text("code_hex") + " = " + format_number(state.number("value"), 4, true);
}

// How many codes are no finite numbers; told once it has been seen.
std::vector<double> not_finite(const Trail& trail, bool seen) {
    const State& state = trail.now();
    if (!seen) return {};
    return {state.number("codes") - state.number("finite_codes")};
}

Verdict largest(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool reached = on_largest(now);
    return {.conditions = {{"the largest finite number of E4M3", {reading(now)}, reached},
                           {"reached by flipping a bit", {}, flipped_last(trail)}},
            .measured = not_finite(trail, reached)};
}

Verdict one_bit(const Trail& trail, const Prediction*) {
    bool stepped_off = false;
    const State* before = &trail.start;
    for (const Step& step : trail.steps) {
        stepped_off |= on_largest(*before) && is_toggle(step) && step.after.text("format") == "e4m3" &&
                       step.after.text("class") == "nan";
        before = &step.after;
    }
    return {.conditions = {{"stood on the largest number", {}, trail.visited(on_largest)},
                           {"one flip later: not a number", {reading(trail.now())}, stepped_off}}};
}

Verdict twins(const Trail& trail, const Prediction*) {
    const auto is_448 = [](const State& state, std::string_view format) {
        return state.text("format") == format && state.number("value") == 448;
    };
    const State& now = trail.now();
    return {
        .conditions = {{"448 in E4M3", {}, trail.visited([&](const State& s) { return is_448(s, "e4m3"); })},
                       {"448 in E5M2", {reading(now)}, is_448(now, "e5m2")},
                       {"built by flipping bits", {}, flipped_last(trail)}}};
}

Verdict reclaim(const Trail& trail, const Prediction*) {
    bool only_policy = true;
    for (const Step& step : trail.steps)
        for (const Event& event : step.events)
            only_policy &= event.kind == Event::Kind::set && event.name == "specials";
    const State& now = trail.now();
    const bool own = now.text("format") == "custom";
    const bool started = trail.visited([](const State& state) { return state.number("max") == 240; });
    return {.conditions = {{"your format once ended at 240", {}, started},
                           {"your own format ends at 448 now",
                            {format_number(now.number("max"))},
                            own && now.number("max") == 448},
                           {"moved only the control that is needed", {}, only_policy}}};
}

}  // namespace

std::span<const Exercise> BitsLab::exercises() const {
    static const std::array kExercises = {
        Exercise{
            .id = "L1.1",
            .title = "Build the largest",
            .question =
                "The byte is 1.0 in E4M3. Flip bits (click them, or press the keys 7 to 0) until the byte is "
                "the largest finite number of E4M3. The last action must be the flip of a bit.",
            .prediction =
                NumberPrediction{.label = "codes that are not finite", .max = 64, .initial = 16, .step = 1},
            .predict = "How many of the 256 codes of E4M3 are not finite numbers (NaN or infinity)?",
            .covers = {"codes", "line_end"},
            .start = {"code=56"},
            .hints = {"The largest number has the largest exponent. Which mantissa goes with it?",
                      "Use the row of bits, or the keys 7 to 0. Set all exponent bits, then the mantissa "
                      "bits from the left.",
                      "0 1111 110 = 448. With the last bit set as well it is NaN, not 480."},
            .judge = largest,
            .explanation =
                "E4M3 uses only 0x7F and 0xFF for NaN and no code for infinity: 2 of 256. The other seven "
                "codes of the top exponent are numbers, up to 1.75 × 256 = 448.",
            .solver = {acts("toggle 6"), acts("toggle 2"), acts("toggle 1")},
            .near_misses = {NearMiss{"jumped there without flipping a bit",
                                     {sets("code", "126")},
                                     "reached by flipping a bit"},
                            NearMiss{"one code short: 416",
                                     {acts("toggle 6"), acts("toggle 2"), acts("toggle 0")},
                                     "the largest finite number of E4M3"}}},
        Exercise{
            .id = "L1.2",
            .title = "One bit to nowhere",
            .question = "Set the byte to the largest finite number of E4M3, in any way. Then flip one single "
                        "bit (click it, or press a key from 7 to 0) so that the byte is no longer a number: "
                        "NaN. The Format stays E4M3.",
            .start = {"code=56"},
            .hints = {"What comes right after 448, where 480 would be?",
                      "Use the row of bits. First make the code 0x7E, then flip one more bit.",
                      "0x7E = 0 1111 110. Flip the last bit: 0x7F is NaN."},
            .judge = one_bit,
            .explanation =
                "E4M3 has no infinity: the code after 448 is NaN. A cast that does not saturate therefore "
                "turns a value that is too large into NaN.",
            .solver = {acts("toggle 6"), acts("toggle 2"), acts("toggle 1"), acts("toggle 0")},
            .near_misses = {NearMiss{"from 448 to NaN by a jump",
                                     {sets("code", "126"), sets("code", "127")},
                                     "one flip later: not a number"},
                            NearMiss{"NaN, but not from the largest number",
                                     {sets("code", "119"), acts("toggle 3")},
                                     "stood on the largest number"}}},
        Exercise{
            .id = "L1.3",
            .title = "Twins",
            .question = "The number 448 has the code 0x7E in E4M3 and another code in E5M2. First show 448 "
                        "in E4M3. Then choose the Format E5M2 and flip bits until the byte is 448 there too. "
                        "The last action must be the flip of a bit.",
            .start = {"code=56"},
            .hints =
                {"The power of two is the same in both formats, but E5M2 has another bias.",
                 "448 = 2^8 × 1.75. Choose the format E5M2, whose bias is 15, and set the exponent bits to 8 "
                 "+ 15.",
                 "0 10111 11 = 0x5F: exponent 23 - 15 = 8, mantissa 1.75."},
            .judge = twins,
            .explanation =
                "Both formats use seven bits for the size of a number. E5M2 has one exponent bit more and a "
                "bias of 15 instead of 7, so the same value has another code. A byte means nothing without "
                "its format.",
            .solver = {sets("code", "126"), sets("format", "e5m2"), acts("toggle 5"), acts("toggle 0")},
            .near_misses = {NearMiss{"never seen in E4M3",
                                     {sets("format", "e5m2"), sets("code", "94"), acts("toggle 0")},
                                     "448 in E4M3"},
                            NearMiss{"jumped there",
                                     {sets("code", "126"), sets("format", "e5m2"), sets("code", "95")},
                                     "built by flipping bits"}}},
        Exercise{
            .id = "L1.4",
            .title = "Reclaim the range",
            .question =
                "The Format is Design your own: 4 exponent bits, 3 mantissa bits and a bias of 7. It ends at "
                "240, as the E4M3 of a widely used FP8 notebook does, but OCP’s E4M3 has the same bits and "
                "the same bias and ends at 448. Make your format end at 448 with a single control of the tab "
                "Explore; you may try all its values. If you moved another control, press Reset all first.",
            .start = {"format=custom", "specials=ieee"},
            .hints = {"Which codes above 240 exist, and what are they used for?",
                      "The control is Special values. IEEE gives the whole top exponent to Inf and NaN.",
                      "With FN only the last code of each sign is NaN, and the seven codes below it are "
                      "numbers. 448 = 2^8 × 1.75."},
            .judge = reclaim,
            .explanation =
                "240 is where E4M3 would end under IEEE's rule. OCP's E4M3 has no infinity and one NaN code "
                "for each sign, and gains seven numbers: the largest grows from 240 to 448. The price: an "
                "overflow can no longer be told from an invalid operation, because both are NaN.",
            .solver = {sets("specials", "fn")},
            .near_misses = {NearMiss{"all codes are numbers: 480",
                                     {sets("specials", "finite")},
                                     "your own format ends at 448 now"},
                            NearMiss{"448, but the bias was moved and put back",
                                     {sets("bias", "6"), sets("specials", "fn"), sets("bias", "7")},
                                     "moved only the control that is needed"}}},
    };
    return kExercises;
}

}  // namespace fp8lab::bits_lab
