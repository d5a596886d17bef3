// The exercises of L6.
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
    Verdict out{.conditions = {{"a Gaussian, all rows alike", {}, gaussian},
                               {"MX by OCP's floor is drawn", {}, now.text("scheme_id") == "mx32-floor"},
                               {"it keeps 0.5 dB less than one scale",
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
    Verdict out{.conditions = {{"rows that differ", {screen_number(spread) + " binades"}, spread >= 4},
                               {"scales", {screen_number(scales)}, scales >= 2},
                               {"largest difference of the copies", {screen_number(differ)}, differ == 0}}};
    if (out.passed()) out.measured = {2};
    return out;
}

}  // namespace

std::span<const Exercise> BlocksLab::exercises() const {
    static const std::array kExercises = {
        Exercise{
            .id = "L6.1",
            .title = "Blocks lose",
            .question =
                "Show a tensor on which thousands of block scales keep at least 0.5 dB less than a single "
                "scale: on a plain Gaussian.",
            .prediction = ChoicePrediction{{"Tensor", "Row", "1×128", "MX floor", "NVFP4"}},
            .predict = "Which of these keeps the most of a Gaussian matrix?",
            .start = {"row_spread=5"},
            .hints =
                {"A scale that is a power of two cannot put every block's amax at the end of the format.",
                 "Row spread back to 0, then MX and its rule.",
                 "Floor leaves amax / scale between 256 and 512. What lies above 448 saturates."},
            .judge = lose,
            .explanation =
                "OCP's floor rule takes the exponent of the amax and forgets its significand: one block in "
                "six "
                "has an amax above 448 after scaling and is clipped. Rounding the scale up costs nothing.",
            .solver = {sets("row_spread", "0"), sets("scheme", "mx32"), sets("rule", "floor")},
            .near_misses = {NearMiss{"rounded up: ties with one scale",
                                     {sets("row_spread", "0"), sets("scheme", "mx32")}},
                            NearMiss{"the rows still differ",
                                     {sets("scheme", "mx32"), sets("rule", "floor")}}}},
        Exercise{
            .id = "L6.2",
            .title = "Blocks win",
            .question = "Now a tensor of which one scale loses at least 3 % to zero, and MX at most 0.1 %.",
            .prediction = NumberPrediction{.label = "becomes 0", .unit = "%", .max = 60, .initial = 5},
            .predict = "Rows differ by 4 binades, up or down (one standard deviation). How much of the "
                       "matrix becomes "
                       "0 under one scale?",
            .start = {"scheme=mx32"},
            .hints = {"E4M3 spans 17.8 binades. What must differ by more, and what must not?",
                      "Row spread: blocks of 32 lie within a row.",
                      "From a row spread of about 4 binades on."},
            .judge = win,
            .explanation =
                "Scales buy range. Within a block of 32 the numbers are alike, so a scale of its own brings "
                "each block into the window, however far apart the rows are.",
            .solver = {sets("row_spread", "5")},
            .near_misses = {NearMiss{"too little spread", {sets("row_spread", "1.5")}},
                            NearMiss{"the spread is within the blocks, where MX loses too",
                                     {sets("tensor", "lognormal"), sets("sigma", "5")}}}},
        Exercise{
            .id = "L6.3",
            .title = "Price tag",
            .question =
                "What does an element cost, its share of the scales included? Bits per element, for a large "
                "matrix.",
            .answers = {{"mxfp8", "MXFP8", "bits"},
                        {"nvfp4", "NVFP4", "bits"},
                        {"1x128", "E4M3, FP32 scale each 1×128", "bits"},
                        {"128x128", "E4M3, FP32 scale each 128×128", "bits"}},
            .hints = {"An element's own bits, and those of its scale divided by how many share it.",
                      "MX scales have 8 bits each 32, NVFP4's 8 bits each 16, the others 32 bits.",
                      "8 + 8/32, 4 + 8/16, 8 + 32/128, 8 + 32/16384."},
            .judge = price,
            .explanation =
                "Small blocks can afford small scales only: 32 bits every 32 elements would be a bit for "
                "each. That is why MX and NVFP4 store a scale in a byte.",
            .solver = {types("mxfp8", "8.25"), types("nvfp4", "4.5"), types("1x128", "8.25"),
                       types("128x128", "8.002")},
            .near_misses = {NearMiss{"NVFP4 without its scales",
                                     {types("mxfp8", "8.25"), types("nvfp4", "4"), types("1x128", "8.25"),
                                      types("128x128", "8.002")}},
                            NearMiss{"128×128 taken for 1×128",
                                     {types("mxfp8", "8.25"), types("nvfp4", "4.5"), types("1x128", "8.25"),
                                      types("128x128", "8.25")}}}},
        Exercise{.id = "L6.4",
                 .title = "Transpose trap",
                 .question = "The backward pass reads the same matrix transposed. Choose scales, at least "
                             "two of them, with "
                             "which one quantised copy serves both.",
                 .prediction = ChoicePrediction{{"Row", "1×128", "128×128", "MX 32"}},
                 .predict = "Which of these gives the same numbers in both directions?",
                 .start = {"scheme=mx32", "row_spread=4"},
                 .hints = {"Transpose a block. Is it still a block of the same scheme?",
                           "Maps: Transposed. Compare the two maps of scales.",
                           "128×128: a square block stays itself."},
                 .judge = transpose,
                 .explanation =
                     "Blocks that are longer than wide lie along the sum of one product and across that of "
                     "the other. So MX weights are stored twice; 128×128 blocks, as for weights in "
                     "DeepSeek-V3, need one copy.",
                 .solver = {sets("maps", "transpose"), sets("scheme", "128x128")},
                 .near_misses = {NearMiss{"one scale only", {sets("scheme", "tensor")}},
                                 NearMiss{"1×128 becomes 128×1", {sets("scheme", "1x128")}}}},
    };
    return kExercises;
}

}  // namespace fp8lab::blocks
