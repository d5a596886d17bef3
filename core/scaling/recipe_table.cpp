// The rows of the recipes. A new recipe is a new row, and nothing else: `list recipes`, `--recipe`, the menus of
// L8, the names and colours of curves, the tests of the trainers and every list of recipe_lists.h read this table.
#include "core/scaling/recipe_lists.h"

namespace fp8lab {

namespace {

constexpr auto kNone = ScaleSource::none, kCurrent = ScaleSource::current, kDelayed = ScaleSource::delayed;

const FormatInfo* format(std::string_view name) { return &find_format(name); }

std::vector<RecipeRow> make_rows() {
    using enum Granularity;
    using enum RecipeList;
    constexpr RecipeList kServes = weights | activations;
    // What is not said: one scale per tensor, rounding to nearest, BF16 outputs (recipe.h).
    // `te`: te_code.cpp. A listing: the lists, its place in them, options, id, label, short label.
    std::vector<RecipeRow> rows = {
        {.recipe = {.base = "fp32",
                    .label = "FP32, no cast",
                    .short_name = "FP32",
                    .summary = "No cast at all: the reference",
                    .te = "# FP32: no recipe; te.Linear outside te.autocast, params_dtype=torch.float32",
                    .fwd = format("fp32"),
                    .bwd = format("fp32"),
                    .scale = kNone,
                    .out = OutType::fp32},
         .listed = {{kServes, 10}}},
        {.recipe = {.base = "bf16",
                    .label = "BF16",
                    .short_name = "BF16",
                    .summary = "Every GEMM input in BF16, no scale: today's baseline",
                    .te = "# BF16: no recipe; te.Linear outside te.autocast",
                    .role = Role::bf16,
                    .fwd = format("bf16"),
                    .bwd = format("bf16"),
                    .scale = kNone},
         .listed = {{kServes | mixes, 20}, {inspect, 120}}},
        {.recipe = {.base = "delayed",
                    .label = "FP8 HYBRID, delayed",
                    .short_name = "FP8",
                    .summary = "FP8, one scale per tensor from the amaxes of earlier steps",
                    .te = "DelayedScaling(margin={margin}, fp8_format={format}, amax_history_len={history}, "
                          "amax_compute_algo=\"{algo}\")",
                    .role = Role::e4m3,
                    .fwd = format("e4m3"),
                    .bwd = format("e5m2"),
                    .scale = kDelayed},
         .listed = {{gemm_grid, 10}}},
        {.recipe = {.base = "current",
                    .label = "FP8 HYBRID, current",
                    .short_name = "FP8",
                    .summary = "FP8, one scale per tensor from its own amax",
                    .te = "Float8CurrentScaling(fp8_format={format}){pow2}",
                    .role = Role::e4m3,
                    .fwd = format("e4m3"),
                    .bwd = format("e5m2"),
                    .scale = kCurrent},
         .listed = {{gemm_grid, 20},
                    {inspect, 70, "fwd=e4m3", {}, "E4M3, one scale"},
                    {inspect, 80, "fwd=e5m2", "e5m2", "E5M2, one scale"},
                    {kServes | mixes, 40, {}, "e4m3", "E4M3"},
                    {kServes, 50, "fwd=e5m2", "e5m2", "E5M2"},
                    {kServes | mixes, 110, "fwd=e2m1", "e2m1", "E2M1 tensor"},
                    {block_scales, 10, {}, "tensor", "One per tensor"}}},
        {.recipe = {.base = "rowwise",
                    .label = "FP8 HYBRID, one scale per row",
                    .short_name = "FP8",
                    .summary = "FP8, one scale per row, which runs along K; torchao\u2019s rowwise recipe is "
                               "rowwise:bwd=e4m3:pow2=1",
                    .role = Role::e4m3,
                    .fwd = format("e4m3"),
                    .bwd = format("e5m2"),
                    .granularity = row,
                    .scale = kCurrent},
         .listed = {{gemm_grid, 30},
                    {inspect, 90, "pow2=0", {}, "E4M3, per row", "row"},
                    {kServes, 35, "fwd=int8", "int8-row", "INT8 row"},
                    {kServes, 43, {}, "e4m3-row", "E4M3 row"},
                    {block_scales, 20, {}, "row", "One per row"}}},
        {.recipe = {.base = "block128",
                    .label = "FP8, blocks of 128",
                    .short_name = "FP8",
                    .summary = "FP8, blocks of 1x128 for x and dy, 128x128 for w",
                    .te = "Float8BlockScaling(fp8_format={format}){fp32_scales}",
                    .role = Role::block,
                    .fwd = format("e4m3"),
                    .bwd = format("e4m3"),
                    .granularity = block128,
                    .scale = kCurrent,
                    .pow2 = true},  // Transformer Engine's default for Float8BlockScaling
         .listed = {{gemm_grid, 40},
                    {inspect, 100, {}, {}, "E4M3, 1\u00d7128", "1\u00d7128"},
                    {kServes, 46, "pow2=0", "e4m3-128", "E4M3 128"},
                    {block_scales, 30, {}, "1x128", "Blocks 1\u00d7128"},
                    {.in = block_scales,
                     .at = 40,
                     .id = "128x128",
                     .label = "Blocks 128\u00d7128",
                     .weight = true}}},
        {.recipe = {.base = "mxfp8",
                    .label = "MXFP8, blocks of 32",
                    .short_name = "MXFP8",
                    .summary = "FP8, blocks of 32 with power-of-two scales",
                    .te = "MXFP8BlockScaling(fp8_format={format})",
                    .role = Role::block,
                    .fwd = format("e4m3"),
                    .bwd = format("e4m3"),
                    .granularity = block32,
                    .scale = kCurrent},
         .listed = {{inspect, 110},
                    {kServes | mixes | greedy, 60},
                    {block_scales, 50, {}, "mx32", "MX, blocks of 32", "MX 32"}}},
        {.recipe = {.base = "mxfp6-e2m3",
                    .label = "MXFP6 E2M3, blocks of 32",
                    .short_name = "MXFP6",
                    .summary = "FP6 with 3 mantissa bits, blocks of 32",
                    .role = Role::block,
                    .fwd = format("e2m3"),
                    .bwd = format("e2m3"),
                    .granularity = block32,
                    .scale = kCurrent},
         .listed = {{inspect, 40, {}, {}, {}, "E2M3"}, {kServes | mixes | greedy, 70}}},
        {.recipe = {.base = "mxfp6-e3m2",
                    .label = "MXFP6 E3M2, blocks of 32",
                    .short_name = "MXFP6",
                    .summary = "FP6 with 2 mantissa bits, blocks of 32",
                    .role = Role::block,
                    .fwd = format("e3m2"),
                    .bwd = format("e3m2"),
                    .granularity = block32,
                    .scale = kCurrent},
         .listed = {{inspect, 30, {}, {}, {}, "E3M2"}, {kServes, 80}}},
        {.recipe = {.base = "mxfp4",
                    .label = "MXFP4, blocks of 32",
                    .short_name = "MXFP4",
                    .summary = "FP4, blocks of 32 with power-of-two scales",
                    .role = Role::block,
                    .fwd = format("e2m1"),
                    .bwd = format("e2m1"),
                    .granularity = block32,
                    .scale = kCurrent},
         .listed = {{inspect, 10}, {kServes | mixes | greedy, 100}}},
        {.recipe =
             {.base = "nvfp4",
              .label = "NVFP4, blocks of 16",
              .short_name = "NVFP4",
              .summary =
                  "FP4, blocks of 16 with E4M3 scales under a tensor scale, dy rounded stochastically; "
                  "without the "
                  "16x16 weight blocks and the random Hadamard transform of NVIDIA's recipe",
              .te = "NVFP4BlockScaling({nvfp4}){four_or_six}",
              .role = Role::block,
              .fwd = format("e2m1"),
              .bwd = format("e2m1"),
              .granularity = block16,
              .scale = kCurrent,
              .round_bwd = Rounding::stochastic},  // gradients only, as NVFP4BlockScaling does
         .listed = {{inspect, 20},
                    {kServes | mixes | greedy, 90},
                    {block_scales, 60, {}, {}, "NVFP4, blocks of 16", "NVFP4, 16"}}},
        {.recipe =
             {.base = "nvfp4-te",
              .label = "NVFP4, NVIDIA's recipe",
              .short_name = "NVFP4 TE",
              .summary =
                  "NVFP4 as Transformer Engine trains it: weights in 16x16 blocks, dy rounded "
                  "stochastically, x and dy of wgrad rotated by the random Hadamard transform (rht=bf16: and "
                  "rounded to BF16, as there)",
              .te = "NVFP4BlockScaling({nvfp4}){four_or_six}",
              .role = Role::block,
              .fwd = format("e2m1"),
              .bwd = format("e2m1"),
              .granularity = block16,
              .scale = kCurrent,
              .round_bwd = Rounding::stochastic,
              .square_weights = true,
              .rht = true}},
        {.recipe = {.base = "int8",
                    .label = "INT8",
                    .short_name = "INT8",
                    .summary = "Symmetric integers, one scale per tensor from its own amax",
                    .fwd = format("int8"),
                    .bwd = format("int8"),
                    .scale = kCurrent},
         .listed = {{inspect, 60, {}, {}, "INT8, one scale"}, {kServes | mixes, 30}},
         .recommended = false},
        {.recipe = {.base = "unscaled",
                    .label = "FP8 HYBRID, no scaling",
                    .short_name = "FP8",
                    .summary = "FP8 with scale 1: what scaling repairs",
                    .role = Role::e4m3,
                    .fwd = format("e4m3"),
                    .bwd = format("e5m2"),
                    .scale = kNone},
         .listed = {{inspect, 50, "fwd=e4m3", {}, "E4M3, scale 1", "unscaled"}},
         .recommended = false},
    };
    for (RecipeRow& row : rows) row.recipe.name = row.recipe.base;
    return rows;
}

}  // namespace

std::span<const RecipeRow> recipe_rows() {
    static const std::vector<RecipeRow> kTable = make_rows();
    return kTable;
}

}  // namespace fp8lab
