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
//             16x16, of w (square_weights)       E4M3, FP32 on top               none: emulated
enum class Granularity { tensor, row, block128, block32, block16 };
enum class ScaleSource { none, current, delayed };
// What one amax is made of the history: the largest, the newest, or an exponential moving average.
enum class AmaxAlgo { max, most_recent, ema };
enum class MxRule { up, floor, even };  // numerics.md 1.4: RCEIL, OCP's FLOOR, EVEN
// What the amax of an NVFP4 block becomes: 6, the largest E2M1; 4, where the codes lie denser; or, block by block,
// the one with the smaller squared error (arXiv 2512.02010, "Four Over Six"). Texts: 6, 4, 4or6.
enum class Nvfp4Target { six, four, four_or_six };
// The scale of a tensor whose amax is 0: the one before, 1 at the start, or max / 0, which makes NaN of every zero. Texts:
// keep, inf. The second is a fault that programs have had.
enum class ZeroAmax { keep, inf };
// The type in which weights that GEMMs read are kept between steps. bf16: rounded after each update (round_update), as
// PyTorch has them without an FP32 master. none: on an E4M3 grid of one scale per tensor.
enum class MasterWeights { fp32, bf16, none };
// Which elements of a moment in 8 bits share an FP32 scale, max / amax: 128 of the flattened matrix, or all.
enum class MomentBlock { block128, tensor };
enum class OutType { bf16, fp32 };
enum class FastAccum { fprop, all, none };  // GPU only; the CPU accumulates in FP32

// Which GEMMs of a model the recipe casts: its linear layers; with the products inside attention (Transformer
// Engine's fp8_dpa), with the head, or all of them. Texts: linears, attn, head, all.
enum class CastScope { linears, attention, head, all };
// What a transformer computes between gate_up and down: silu(g) u; the same with a power of two per channel before the
// cast, folded into the weights of down (arXiv 2409.12517, Smooth-SwiGLU); or with both factors limited to 10. Texts:
// swiglu, smooth, clamp.
enum class SwigluForm { plain, smooth, clamp };

// Layers (in a transformer: blocks) whose operands stay in BF16: "first", "last", 1-based numbers, and names of GEMMs
// ("1.down"), joined by '+'.
struct WideLayers {
    bool first = false, last = false;
    std::vector<int> numbers = {};        // ascending
    std::vector<std::string> gemms = {};  // sorted
    bool operator==(const WideLayers&) const = default;
    bool empty() const { return !first && !last && numbers.empty() && gemms.empty(); }
    bool contains(int layer, int layers) const;  // 1-based
};

// The three products of a linear layer: x w^T, dy w, dy^T x.
enum class Gemm { fprop, dgrad, wgrad };
std::string_view to_string(Gemm gemm);  // "fprop"

// What the two operands of one product are cast to, where that is not what the recipe says: a format under the recipe's
// own scaling, or all that another recipe says of operands. Neither: as the recipe says.
struct GemmInput {
    const FormatInfo* format = nullptr;  // fp32, bf16, e4m3, e5m2; the last two where the recipe is of FP8
    std::string_view recipe = {};        // base of a row; the recipe's own base: the recipe with its options
    bool given() const { return format != nullptr || !recipe.empty(); }
    bool operator==(const GemmInput&) const = default;
};

struct Recipe {
    std::string name = {};             // as the user gave it; the name of the arm in CSV and JSON
    std::string_view base = {};        // "delayed"
    std::string_view label = {};       // "FP8 HYBRID, delayed", in menus
    std::string_view short_name = {};  // "FP8", beside a curve
    std::string_view summary = {};     // one line for `list recipes` and tooltips
    std::string_view te = {};          // what it is in Transformer Engine (te_code.cpp); empty: nothing
    Role role = Role::truth;           // what it is drawn as, everywhere
    const FormatInfo* fwd = nullptr;   // x and w; fp32 = not cast
    const FormatInfo* bwd = nullptr;   // dy
    Granularity granularity = Granularity::tensor;
    ScaleSource scale = ScaleSource::none;
    int history = 16;  // 1..4096, Transformer Engine's amax_history_len
    AmaxAlgo algo = AmaxAlgo::max;
    float ema_decay = 0;  // of AmaxAlgo::ema, 0 < d < 1: ema = d ema + (1 - d) amax. Text: algo=ema0.9
    // What stands for the amax: the smallest |x| that so many percent of the elements do not exceed. 0: the amax itself.
    // Texts: algo=p99.99 of delayed scaling (then the largest of the history), amax=p99.99 of current scaling.
    double amax_percentile = 0;
    int margin = 0;     // -8..16, an exponent of two: FP32 scale = max * 2^-margin / amax
    int interval = 1;   // the scale is computed every N-th step; the history rolls every step
    bool pow2 = false;  // scale rounded down to a power of two
    ZeroAmax zero_amax = ZeroAmax::keep;
    MxRule mx_rule = MxRule::up;
    Rounding round = Rounding::nearest, round_bwd = Rounding::nearest, round_update = Rounding::nearest;
    Overflow overflow = Overflow::saturate;
    bool square_weights = false;  // w in blocks of 16x16, one cast for fprop and dgrad
    bool rht = false;             // x and dy of wgrad are rotated along the batch (hadamard.h)
    bool rht_bf16 = false;        // and rounded to BF16 before amaxes and scales, as Transformer Engine does
    Nvfp4Target target = Nvfp4Target::six;
    CastScope scope = CastScope::linears;
    SwigluForm act = SwigluForm::plain;
    WideLayers wide = {};
    MasterWeights master = MasterWeights::fp32;
    OutType out = OutType::bf16;    // type of the outputs of fprop and dgrad
    OutType wgrad = OutType::fp32;  // type of the weight gradient; bf16 as PyTorch has it for BF16 weights
    FastAccum fast_accum = FastAccum::fprop;
    // Stored mantissa bits that the accumulator of each GEMM keeps after every addition (core/nn/models/mlp/narrow_sums.h); 0: FP32.
    // Of model mlp, on the CPU. Texts: acc=fp32, acc=3.
    int sum_bits = 0;
    std::array<GemmInput, 3> inputs = {};  // by Gemm; texts: fprop_in, dgrad_in, wgrad_in
    // Where the casts along rows and along columns differ: the second one is of the codes of the first, not of the tensor.
    bool columns_from_rowwise = false;  // text: colsrc=rowwise
    // Fake quantization, for quantization-aware training: x and w are cast once, for fprop, and dgrad and wgrad read what
    // that cast gave; dy is not cast. The gradient of the cast itself is taken as 1 (straight-through estimator, arXiv
    // 1308.3432). Text: fake=1.
    bool fake = false;
    // What the operands of a router's GEMM are cast to, in a mixture of experts: the name of a row, with that row's
    // defaults. The router is in no scope, and no wide layer. Text: router=mxfp8.
    std::string_view router = "fp32";
    // Loss scaling as PyTorch's torch.amp.GradScaler (core/trainer/loss_scaler.h). 0: none.
    float loss_scale = 0;     // the first one
    int growth_interval = 0;  // steps without an Inf or NaN after which it doubles; 0: it stays
    // The formats in which AdamW's moments of the weights that GEMMs read are kept between steps (core/scaling/moment_storage.h):
    // bf16, fp16, e4m3, e5m2; nullptr: FP32. Norms, biases and embeddings keep FP32. Texts: m=e4m3, v=bf16.
    const FormatInfo *moment_m = nullptr, *moment_v = nullptr;
    MomentBlock moment_block = MomentBlock::block128;  // of moments in 8 bits
    Rounding round_m = Rounding::nearest, round_v = Rounding::nearest;
};

// All rows, in the order of the table, which is that of `list recipes`.
std::span<const Recipe> recipes();

// A menu of recipes: every row, since every recipe trains. `first` goes before all, as {"none", "None"}.
std::vector<Choice> recipe_choices(std::vector<Choice> first = {});

// What menus call the recipe of this text: "FP8 HYBRID, delayed" for "delayed", with its options behind it. The text
// itself where no row has its name.
std::string recipe_label(std::string_view text);

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

// What the recipe says of the operands of one product: its inputs[gemm] put in place, without inputs of its own. What is not
// about casts of operands (out, wgrad, master, round_update, moments, scope, act) stays.
Recipe recipe_of_gemm(const Recipe& recipe, Gemm gemm);
bool has_inputs(const Recipe& recipe);  // of any product
inline bool has_narrow_moments(const Recipe& recipe) { return recipe.moment_m || recipe.moment_v; }
// The recipe of a router's GEMM: operands as Recipe::router says. What is not about casts of operands stays.
Recipe router_recipe(const Recipe& recipe);
// The recipe with operands in BF16 without a scale. Options that are not about casts of operands (out, wgrad, master,
// round_update) stay. A recipe of wider operands is returned as it is.
Recipe wide_recipe(const Recipe& recipe);
// The recipe of one layer (1-based) of a network of `layers`: for a wide one wide_recipe().
Recipe recipe_of_layer(const Recipe& recipe, int layer, int layers);
// The shortest text that parse_recipe() reads back to this recipe (its name field aside).
std::string recipe_text(const Recipe& recipe);
// Transformer Engine's constructor call for it, e.g. "DelayedScaling(margin=0, fp8_format=Format.HYBRID,
// ...)"; for recipes that Transformer Engine does not have, a comment saying so.
std::string transformer_engine_code(const Recipe& recipe);

}  // namespace fp8lab
