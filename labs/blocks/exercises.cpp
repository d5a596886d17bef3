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

std::span<const Exercise> Blocks::exercises() {
    static const std::array kExercises = {
        Exercise{
            .id = "L6.1",
            .title = "Blocks lose",
            .question = "Thousands of block scales are not always better than one scale. Take a plain "
                        "Gaussian matrix: Tensor normal, Row spread 0, Outlier column 1. Choose MX under "
                        "Scales, and a rule under Power of two (how MX rounds its scales), so that the SQNR "
                        "of MX is more than 0.5 dB lower than the SQNR with one scale per tensor.",
            .prediction = ChoicePrediction{{"Tensor", "Row", "1×128", "MX floor", "NVFP4"}},
            .predict =
                "A Gaussian matrix is cast with one scale per tensor, one scale per row, FP32 scales for "
                "blocks of 1×128, MX with the floor rule, and NVFP4. Which of these gives the highest SQNR?",
            .covers = {"schemes"},
            .start = {"row_spread=5"},
            .hints = {"A scale that is a power of two cannot bring the amax of every block to the end of the "
                      "format.",
                      "Set Row spread to 0, choose MX under Scales, then try each choice of Power of two.",
                      "The rule Floor brings the amax of a block to between 256 and 512. What is above 448 "
                      "saturates in E4M3."},
            .judge = lose,
            .explanation =
                "OCP's floor rule uses only the exponent of a block's amax. One block in six then has an "
                "amax above 448 after scaling and is clipped. Rounding the scale up avoids this, and costs "
                "nothing here.",
            .solver = {sets("row_spread", "0"), sets("scheme", "mx32"), sets("rule", "floor")},
            .near_misses = {NearMiss{"rounded up: ties with one scale",
                                     {sets("row_spread", "0"), sets("scheme", "mx32")},
                                     "MX with OCP's floor rule is chosen"},
                            NearMiss{"the rows still differ",
                                     {sets("scheme", "mx32"), sets("rule", "floor")},
                                     "a Gaussian, all rows and columns alike"}}},
        Exercise{
            .id = "L6.2",
            .title = "Blocks win",
            .question = "Make a tensor in which one scale per tensor turns at least 3 % of the elements to "
                        "0, and MX with scales that are rounded up turns at most 0.1 % of them to 0. Use "
                        "Tensor, Row spread and Outlier column; other controls may be moved too. The table "
                        "shows both numbers (becomes 0 %).",
            .prediction =
                NumberPrediction{.label = "elements that become 0", .unit = "%", .max = 60, .initial = 5},
            .predict = "In a Gaussian matrix the sizes of the rows vary up and down by 4 binades (one "
                       "standard deviation). The matrix is cast to E4M3 with one scale per tensor. What "
                       "percentage of its elements becomes 0?",
            .covers = {"schemes"},
            .start = {"scheme=mx32"},
            .hints = {"E4M3 spans 17.8 binades. What in the matrix must differ by more, and what must not?",
                      "The control is Row spread: each block of 32 elements is within one row.",
                      "A row spread of about 4 binades or more."},
            .judge = win,
            .explanation =
                "In FP8 scales buy range. Within a block of 32 the elements have similar sizes, so a scale "
                "of its own brings each block into the window, however much the rows differ.",
            .solver = {sets("row_spread", "5")},
            .near_misses = {NearMiss{"too little spread",
                                     {sets("row_spread", "1.5")},
                                     "one scale: 3 % or more become 0"},
                            NearMiss{"the spread is within the blocks, where MX loses too",
                                     {sets("tensor", "lognormal"), sets("sigma", "5")},
                                     "MX: 0.1 % or less"}}},
        Exercise{
            .id = "L6.3",
            .title = "Price tag",
            .question = "How many bits does one element of a large matrix take, its share of the block "
                        "scales included? Enter the bits per element of MXFP8, of NVFP4, and of E4M3 with "
                        "one FP32 scale per block of 1×128 and per block of 128×128. The answers must be "
                        "right within 0.01 bit, for 128×128 within 0.001 bit. Do not count the single FP32 "
                        "scale that NVFP4 has for the whole tensor.",
            .answers = {{"mxfp8", "MXFP8", "bits"},
                        {"nvfp4", "NVFP4", "bits"},
                        {"1x128", "E4M3, one FP32 scale per 1×128", "bits"},
                        {"128x128", "E4M3, one FP32 scale per 128×128", "bits"}},
            .hints =
                {"An element's own bits, plus the bits of one scale divided by the number of elements that "
                 "share it.",
                 "MX has one scale of 8 bits per 32 elements, NVFP4 one of 8 bits per 16 elements, the other "
                 "two one of 32 bits per block.",
                 "8 + 8/32, 4 + 8/16, 8 + 32/128, 8 + 32/16384."},
            .judge = price,
            .explanation =
                "Small blocks can only afford small scales: 32 bits per 32 elements would be one bit for "
                "each. That is why MX and NVFP4 store a scale in one byte.",
            .solver = {types("mxfp8", "8.25"), types("nvfp4", "4.5"), types("1x128", "8.25"),
                       types("128x128", "8.002")},
            .near_misses = {NearMiss{"NVFP4 without its scales",
                                     {types("mxfp8", "8.25"), types("nvfp4", "4"), types("1x128", "8.25"),
                                      types("128x128", "8.002")},
                                     "NVFP4"},
                            NearMiss{"128×128 taken for 1×128",
                                     {types("mxfp8", "8.25"), types("nvfp4", "4.5"), types("1x128", "8.25"),
                                      types("128x128", "8.25")},
                                     "128×128"}}},
        Exercise{
            .id = "L6.4",
            .title = "Transpose trap",
            .question = "The backward pass reads the same matrix transposed, and a scheme with blocks casts "
                        "the matrix a second time for it. Under Scales, choose a scheme with two scales or "
                        "more in which every element has the same value in both casts, so that one copy "
                        "serves both directions. Row spread must stay at 4 or more.",
            .prediction = ChoicePrediction{{"Row", "1×128", "128×128", "MX 32"}},
            .predict =
                "A matrix is cast once for the forward pass and once, transposed, for the backward pass. "
                "With which of these scales does every element have the same value in both copies?",
            .covers = {"schemes"},
            .start = {"scheme=mx32", "row_spread=4"},
            .hints = {"Transpose a block. Is it still a block of the same scheme?",
                      "Set Maps to Transposed and compare the two maps of scales.",
                      "128×128: a square block stays the same block when the matrix is transposed."},
            .judge = transpose,
            .explanation =
                "A block that is longer than wide runs along K in one product and across K in the other. MX "
                "weights are therefore cast twice, once in each direction. Square blocks of 128×128, which "
                "DeepSeek-V3 uses for weights, need one copy.",
            .solver = {sets("maps", "transpose"), sets("scheme", "128x128")},
            .near_misses = {NearMiss{"one scale only", {sets("scheme", "tensor")}, "two scales or more"},
                            NearMiss{"1×128 becomes 128×1",
                                     {sets("scheme", "1x128")},
                                     "largest difference of the copies: 0"}}},
    };
    return kExercises;
}

}  // namespace fp8lab::blocks
