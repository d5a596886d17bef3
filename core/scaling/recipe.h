// A recipe is data: how the three tensor classes of a linear layer (x, w, dy) are cast before its GEMMs. One
// row per recipe in recipe_table.cpp; parsing, trainers, menus, colours and Transformer Engine's code follow from
// the row. Options follow after colons, "delayed:history=16:margin=1". Grammar and defaults: cli.md, "Names".
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/codec.h"
#include "core/formats/format.h"

namespace fp8lab {

// Which elements share a scale. Rows and blocks run along K of the GEMM that reads the tensor.
//   here      elements that share a scale        scale                L6's ids   ScaleMode (kernels/device/launch.h)
//   tensor    all                                FP32                 tensor     tensor
//   row       a row                              FP32                 row        row
//   block128  1x128, of x and dy                 FP32                 1x128      block128
//             128x128, of w (square_blocks)      FP32                 128x128    square128
//   block32   1x32                               E8M0                 mx32       block32
//   block16   1x16                               E4M3, FP32 on top    nvfp4      none: emulated
enum class Granularity { tensor, row, block128, block32, block16 };
enum class ScaleSource { none, current, delayed };
enum class AmaxAlgo { max, most_recent };
enum class MxRule { up, floor, even };  // numerics.md 1.4: RCEIL, OCP's FLOOR, EVEN
enum class MasterWeights { fp32, none };
enum class OutType { bf16, fp32 };
enum class FastAccum { fprop, all, none };  // GPU only; the CPU accumulates in FP32

struct Recipe {
    std::string name = {};             // as the user gave it; the name of the arm in CSV and JSON
    std::string_view base = {};        // "delayed"
    std::string_view label = {};       // "FP8 HYBRID, delayed", in menus
    std::string_view short_name = {};  // "FP8", beside a curve
    std::string_view summary = {};     // one line for `list recipes` and tooltips
    std::string_view te = {};          // what it is in Transformer Engine (te_code.cpp); empty: nothing
    Role role = Role::truth;           // what it is drawn as, everywhere
    const FormatInfo* fwd = nullptr;  // x and w; fp32 = not cast
    const FormatInfo* bwd = nullptr;  // dy
    Granularity granularity = Granularity::tensor;
    ScaleSource scale = ScaleSource::none;
    int history = 16;  // 1..4096, Transformer Engine's amax_history_len
    AmaxAlgo algo = AmaxAlgo::max;
    int margin = 0;     // -8..16, an exponent of two: FP32 scale = max * 2^-margin / amax
    int interval = 1;   // the scale is computed every N-th step; the history rolls every step
    bool pow2 = false;  // scale rounded down to a power of two
    MxRule mx_rule = MxRule::up;
    Rounding round = Rounding::nearest, round_bwd = Rounding::nearest, round_update = Rounding::nearest;
    Overflow overflow = Overflow::saturate;
    MasterWeights master = MasterWeights::fp32;
    OutType out = OutType::bf16;    // type of the outputs of fprop and dgrad
    OutType wgrad = OutType::fp32;  // type of the weight gradient; bf16 as PyTorch has it for BF16 weights
    FastAccum fast_accum = FastAccum::fprop;
};

// The table, in its order: the one of `list recipes`.
std::span<const Recipe> recipes();

// A menu of recipes: every row, since every recipe trains. `first` goes before all, as {"none", "None"}.
std::vector<Choice> recipe_choices(std::vector<Choice> first = {});

// Defaults for arms that name none (--history, --margin, --algo).
struct RecipeDefaults {
    int history = 16;
    int margin = 0;
    AmaxAlgo algo = AmaxAlgo::max;
};

// "NAME[:key=value]...". A recipe does not know options that have no effect on it (history of current).
// Formats above 8 bits are cast without a scale: "current:bwd=bf16". Throws usage_error with the valid names,
// keys or values.
Recipe parse_recipe(std::string_view text, const RecipeDefaults& defaults = {},
                    std::string_view where = "--recipe");
std::vector<Recipe> parse_recipes(std::string_view comma_separated, const RecipeDefaults& defaults = {},
                                  std::string_view where = "--recipe");

// The shortest text that parse_recipe() reads back to this recipe (its name field aside).
std::string recipe_text(const Recipe& recipe);
// Transformer Engine's constructor call for it, e.g. "DelayedScaling(margin=0, fp8_format=Format.HYBRID,
// ...)"; for recipes that Transformer Engine does not have, a comment saying so.
std::string transformer_engine_code(const Recipe& recipe);

}  // namespace fp8lab
