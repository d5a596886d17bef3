// The field table of L12.
#include <algorithm>

#include "labs/four/model.h"

namespace fp8lab::four {

using table::Row;

namespace {

Row kind_row(TensorSpec& tensor) {
    Field kind = tensor_or_picture_field(tensor);
    std::erase_if(kind.choices, [](const Choice& choice) {
        const auto kinds = table_kinds();
        return choice.id != "picture" && std::ranges::find(kinds, choice.id) == kinds.end();
    });
    return {kind, {}, tensor.file.empty() ? "" : "The tensor is your own."};
}

std::vector<Row> switch_rows(Params& p) {
    return {
        {choice({.name = "format",
                 .label = "Format",
                 .help = "MXFP4: 32 elements share a power of two, rounded up. NVFP4: 16 elements share an "
                         "E4M3 scale, and the tensor has one in FP32."},
                &p.format, {{"mxfp4", "MXFP4"}, {"nvfp4", "NVFP4"}})},
        {choice({.name = "block",
                 .label = "Scale shared by",
                 .help = "16×16 is for weights: W and its transpose then have the same scales. MXFP4: 1×32 "
                         "always. In Transformer Engine disable_2d_quantization=True chooses 1×16."},
                &p.block, {{"1x16", p.nvfp4() ? "1×16" : "1×32"}, {"16x16", "16×16"}}),
         {},
         p.nvfp4() ? "" : "OCP MX has no 2-D block."},
        {choice({.name = "rounding",
                 .label = "Rounding",
                 .help = "Stochastic rounding decides with 32 random bits per element; Blackwell’s "
                         "instruction has 8. In Transformer Engine disable_stochastic_rounding=True chooses "
                         "nearest."},
                &p.rounding, {{"nearest", "nearest"}, {"stochastic", "stochastic"}})},
        {choice({.name = "rht",
                 .label = "Random Hadamard",
                 .help = "The rotation: 16 neighbours along a row times random signs and a Hadamard matrix "
                         "over 4. With on, the rotated map counts. In Transformer Engine disable_rht=True "
                         "chooses off."},
                &p.rht, {{"off", "off"}, {"on", "on"}})},
        {choice({.name = "target",
                 .label = "Block amax becomes",
                 .te_name = "4over6",
                 .help = "What the amax of a block becomes before the cast. 4: the codes lie denser there. 4 "
                         "or 6: block by block the one with the smaller squared error. NVFP4 only."},
                &p.target, {{"6", "6"}, {"4", "4"}, {"4or6", "4 or 6"}}),
         {},
         p.nvfp4() ? "" : "It belongs to NVFP4."},
    };
}

std::vector<Row> more_rows(Params& p) {
    return {
        {integer({.name = "casts",
                  .label = "Casts averaged",
                  .help = "With stochastic rounding: so many casts are averaged.",
                  .more = true},
                 &p.casts, 1, kMostCasts, true),
         {},
         p.rounding == "stochastic" ? "" : "Equal casts have the mean of one."},
        {integer({.name = "block_index",
                  .label = "Marked block",
                  .help = "The block whose numbers are shown, row by row. −1: the first whose amax is above "
                          "6 units.",
                  .more = true},
                 &p.block_index, -1, 31)},
        {choice({.name = "signs",
                 .label = "Signs of the rotation",
                 .help = "te: Transformer Engine’s vector. none: the Hadamard transform alone. drawn: at "
                         "random.",
                 .more = true},
                &p.signs, {{"te", "te"}, {"none", "none"}, {"drawn", "drawn"}})},
        {integer({.name = "sign_seed", .label = "Seed of the signs", .help = "Of drawn signs.", .more = true},
                 &p.sign_seed, 1, 99),
         {},
         p.signs == "drawn" ? "" : "It belongs to drawn signs."},
    };
}

}  // namespace

std::vector<Row> Four::rows(Params& p) {
    // Stochastic rounding, W and the table follow the seed too: it has an effect on any tensor, and so has sigma.
    Field seed = tensor_field(p.tensor, "seed", true), sigma = tensor_field(p.tensor, "sigma", true);
    seed.min = 1, sigma.min = 0.5, sigma.max = 3;
    return table::join({{kind_row(p.tensor)},
                        switch_rows(p),
                        more_rows(p),
                        {{sigma}, {seed}, {tensor_field(p.tensor, "file", true)}}});
}

}  // namespace fp8lab::four
