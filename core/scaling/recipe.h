// A recipe is data: how the three tensor classes of a linear layer (x, w, dy) are cast before each of its
// GEMMs. One row a recipe; options after colons, "delayed:history=16:margin=1" (cli.md has the grammar and
// every default).
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/codec.h"
#include "core/formats/format.h"

namespace fp8lab {

// What shares one scale. Block sizes run along the contraction dimension of the GEMM that reads the tensor.
// block128: 1x128 for x and dy, 128x128 for w.
enum class Granularity { tensor, row, block128, block32, block16 };
enum class ScaleSource { none, current, delayed };
enum class AmaxAlgo { max, most_recent };
enum class MxRule { up, floor, even };  // numerics.md 1.4: RCEIL, OCP's FLOOR, EVEN
enum class MasterWeights { fp32, none };
enum class OutType { bf16, fp32 };
enum class FastAccum { fprop, all, none };  // hardware only; the CPU accumulates in FP32 and says so

struct Recipe {
    std::string name;                 // exactly as given: names the arm in CSV and JSON
    std::string_view base;            // "delayed"
    std::string_view summary;         // one line for `list recipes` and tooltips
    const FormatInfo* fwd = nullptr;  // x and w; fp32 = not cast
    const FormatInfo* bwd = nullptr;  // dy
    Granularity granularity = Granularity::tensor;
    ScaleSource scale = ScaleSource::none;
    int history = 16;  // 1..4096, Transformer Engine's amax_history_len
    AmaxAlgo algo = AmaxAlgo::max;
    int margin = 0;     // -8..16, a power of two: FP32 scale = max * 2^-margin / amax
    int interval = 1;   // scale recomputed every N-th step; the history rolls every step
    bool pow2 = false;  // scale rounded down to a power of two
    MxRule mx_rule = MxRule::up;
    Rounding round = Rounding::nearest, round_bwd = Rounding::nearest, round_update = Rounding::nearest;
    Overflow overflow = Overflow::saturate;
    MasterWeights master = MasterWeights::fp32;
    OutType out = OutType::bf16;    // what fprop and dgrad outputs are rounded to
    OutType wgrad = OutType::fp32;  // and the weight gradient; bf16 is what PyTorch keeps of BF16 weights
    FastAccum fast_accum = FastAccum::fprop;
};

// fp32 bf16 delayed current rowwise block128 mxfp8 mxfp6-e2m3 mxfp6-e3m2 mxfp4 nvfp4 int8 unscaled
std::span<const Recipe> recipes();

// Defaults for arms that name none (--history, --margin, --algo).
struct RecipeDefaults {
    int history = 16;
    int margin = 0;
    AmaxAlgo algo = AmaxAlgo::max;
};

// "NAME[:key=value]...". Options without an effect on a recipe (history of current) are unknown to it.
// Formats above 8 bits are cast without a scale: "current:bwd=bf16". Throws usage_error for an unknown name,
// key or value, listing the valid ones.
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
