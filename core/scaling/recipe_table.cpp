// The rows of the recipes. A new recipe is a new row, and nothing else: `list recipes`, `--recipe`, the menus of
// L8, the names and colours of curves and the tests of the trainers read this table.
#include <vector>

#include "core/scaling/recipe.h"

namespace fp8lab {

namespace {

constexpr auto kNone = ScaleSource::none, kCurrent = ScaleSource::current, kDelayed = ScaleSource::delayed;

const FormatInfo* format(std::string_view name) { return &find_format(name); }

std::vector<Recipe> make_recipes() {
    using enum Granularity;
    // What is not said: one scale per tensor, rounding to nearest, BF16 outputs (recipe.h).
    // `te`: te_code.cpp.
    std::vector<Recipe> rows = {
        {.base = "fp32",
         .label = "FP32, no cast",
         .short_name = "FP32",
         .summary = "No cast at all: the reference",
         .te = "# FP32: no recipe; te.Linear outside te.autocast, params_dtype=torch.float32",
         .fwd = format("fp32"),
         .bwd = format("fp32"),
         .scale = kNone,
         .out = OutType::fp32},
        {.base = "bf16",
         .label = "BF16",
         .short_name = "BF16",
         .summary = "Every GEMM input in BF16, no scale: today's baseline",
         .te = "# BF16: no recipe; te.Linear outside te.autocast",
         .role = Role::bf16,
         .fwd = format("bf16"),
         .bwd = format("bf16"),
         .scale = kNone},
        {.base = "delayed",
         .label = "FP8 HYBRID, delayed",
         .short_name = "FP8",
         .summary = "FP8, one scale per tensor from the amaxes of earlier steps",
         .te = "DelayedScaling(margin={margin}, fp8_format={format}, amax_history_len={history}, "
               "amax_compute_algo=\"{algo}\")",
         .role = Role::e4m3,
         .fwd = format("e4m3"),
         .bwd = format("e5m2"),
         .scale = kDelayed},
        {.base = "current",
         .label = "FP8 HYBRID, current",
         .short_name = "FP8",
         .summary = "FP8, one scale per tensor from its own amax",
         .te = "Float8CurrentScaling(fp8_format={format}){pow2}",
         .role = Role::e4m3,
         .fwd = format("e4m3"),
         .bwd = format("e5m2"),
         .scale = kCurrent},
        {.base = "rowwise",
         .label = "FP8 HYBRID, one scale per row",
         .short_name = "FP8",
         .summary = "FP8, one scale per row, which runs along K; torchao\u2019s rowwise recipe is "
                    "rowwise:bwd=e4m3:pow2=1",
         .role = Role::e4m3,
         .fwd = format("e4m3"),
         .bwd = format("e5m2"),
         .granularity = row,
         .scale = kCurrent},
        {.base = "block128",
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
        {.base = "mxfp8",
         .label = "MXFP8, blocks of 32",
         .short_name = "MXFP8",
         .summary = "FP8, blocks of 32 with power-of-two scales",
         .te = "MXFP8BlockScaling(fp8_format={format})",
         .role = Role::block,
         .fwd = format("e4m3"),
         .bwd = format("e4m3"),
         .granularity = block32,
         .scale = kCurrent},
        {.base = "mxfp6-e2m3",
         .label = "MXFP6 E2M3, blocks of 32",
         .short_name = "MXFP6",
         .summary = "FP6 with 3 mantissa bits, blocks of 32",
         .role = Role::block,
         .fwd = format("e2m3"),
         .bwd = format("e2m3"),
         .granularity = block32,
         .scale = kCurrent},
        {.base = "mxfp6-e3m2",
         .label = "MXFP6 E3M2, blocks of 32",
         .short_name = "MXFP6",
         .summary = "FP6 with 2 mantissa bits, blocks of 32",
         .role = Role::block,
         .fwd = format("e3m2"),
         .bwd = format("e3m2"),
         .granularity = block32,
         .scale = kCurrent},
        {.base = "mxfp4",
         .label = "MXFP4, blocks of 32",
         .short_name = "MXFP4",
         .summary = "FP4, blocks of 32 with power-of-two scales",
         .role = Role::block,
         .fwd = format("e2m1"),
         .bwd = format("e2m1"),
         .granularity = block32,
         .scale = kCurrent},
        {.base = "nvfp4",
         .label = "NVFP4, blocks of 16",
         .short_name = "NVFP4",
         .summary = "FP4, blocks of 16 with E4M3 scales under a tensor scale, dy rounded stochastically; "
                    "without the "
                    "16x16 weight blocks and the random Hadamard transform of NVIDIA's recipe",
         .te = "NVFP4BlockScaling({nvfp4}){four_or_six}",
         .role = Role::block,
         .fwd = format("e2m1"),
         .bwd = format("e2m1"),
         .granularity = block16,
         .scale = kCurrent,
         .round_bwd = Rounding::stochastic},  // gradients only, as NVFP4BlockScaling does
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
         .rht = true},
        {.base = "int8",
         .label = "INT8",
         .short_name = "INT8",
         .summary = "Symmetric integers, one scale per tensor from its own amax",
         .fwd = format("int8"),
         .bwd = format("int8"),
         .scale = kCurrent},
        {.base = "unscaled",
         .label = "FP8 HYBRID, no scaling",
         .short_name = "FP8",
         .summary = "FP8 with scale 1: what scaling repairs",
         .role = Role::e4m3,
         .fwd = format("e4m3"),
         .bwd = format("e5m2"),
         .scale = kNone},
    };
    for (Recipe& r : rows) r.name = r.base;
    return rows;
}

}  // namespace

std::span<const Recipe> recipes() {
    static const std::vector<Recipe> table = make_recipes();
    return table;
}

}  // namespace fp8lab
