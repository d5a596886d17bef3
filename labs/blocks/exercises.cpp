// The judges of L6's exercises, assets/exercises/blocks.json.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/blocks/model.h"

namespace fp8lab::blocks {

namespace {

std::string chosen(const State& state, const char* metric) { return state.text("scheme_id") + metric; }

Verdict lose(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double one = now.number("tensor.sqnr_db"), mx = now.number("mx32-floor.sqnr_db");
    const bool gaussian = now.text("tensor") == "normal" && now.number("row_spread") == 0 &&
                          now.number("outlier_column") == 1 && now.text("file").empty();
    Verdict out{
        .conditions = {{"a Gaussian, all rows and columns alike", {}, gaussian},
                       {"MX with OCP's floor rule is chosen", {}, now.text("scheme_id") == "mx32-floor"},
                       {"its SQNR is at least 0.5 dB below one scale’s",
                        {fmt::format("{} of {} dB", screen_number(mx), screen_number(one))},
                        mx < one - 0.5}}};
    if (!out.passed()) return out;
    std::size_t best = 0;
    const std::array ids = {"tensor", "row", "1x128", "mx32-floor", "nvfp4"};
    const auto sqnr = [&](std::size_t i) { return now.number(std::string(ids[i]) + ".sqnr_db"); };
    for (std::size_t i = 0; i < ids.size(); ++i)
        if (sqnr(i) > sqnr(best)) best = i;
    out.measured = {static_cast<double>(best)};
    return out;
}

Verdict win(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double one = now.number("tensor.underflow_pct"), mx = now.number("mx32-up.underflow_pct");
    Verdict out{.conditions = {{"one scale: 3 % or more become 0", {screen_number(one) + " %"}, one >= 3},
                               {"MX: 0.1 % or less", {screen_number(mx) + " %"}, mx <= 0.1}}};
    if (out.passed()) out.measured = {one};
    return out;
}

Verdict price(const Trail& trail, const Prediction*) {
    struct Tag {
        const char *answer, *label;
        double bits;  // element, and a scale's share of one
    };
    constexpr std::array kTags = {Tag{"mxfp8", "MXFP8", 8 + 8.0 / 32}, Tag{"nvfp4", "NVFP4", 4 + 8.0 / 16},
                                  Tag{"1x128", "1×128", 8 + 32.0 / 128},
                                  Tag{"128x128", "128×128", 8 + 32.0 / (128 * 128)}};
    Verdict out;
    for (const Tag& tag : kTags) {
        const double typed = trail.answered_number(tag.answer);
        // 128x128 lies so near to 8 that only its own thousandths tell the two apart.
        const double tolerance = tag.bits - 8 < 0.01 && tag.bits > 8 ? 0.001 : 0.01;
        out.conditions.push_back({tag.label,
                                  {std::isnan(typed) ? "" : screen_number(typed)},
                                  std::abs(typed - tag.bits) <= tolerance});
    }
    return out;
}

Verdict transpose(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double differ = now.number(chosen(now, ".copies_max_difference")),
                 scales = now.number(chosen(now, ".scales"));
    // On rows that are alike, MX copies coincide: a power of two moves the exponent only.
    const double spread = now.number("row_spread");
    Verdict out{
        .conditions = {
            {"rows that differ by 4 binades or more", {screen_number(spread) + " binades"}, spread >= 4},
            {"two scales or more", {screen_number(scales)}, scales >= 2},
            {"largest difference of the copies: 0", {screen_number(differ)}, differ == 0}}};
    if (out.passed()) out.measured = {2};
    return out;
}

}  // namespace

std::span<const NamedJudge> Blocks::judges() {
    static constexpr std::array kJudges = {NamedJudge{"lose", lose}, NamedJudge{"win", win},
                                           NamedJudge{"price", price}, NamedJudge{"transpose", transpose}};
    return kJudges;
}

}  // namespace fp8lab::blocks
