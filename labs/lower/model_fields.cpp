// The parameters of L11 and its field table.
#include <fmt/format.h>

#include "labs/lower/model.h"

namespace fp8lab::lower {

using table::Row;

namespace {

constexpr std::string_view kNetwork = "mix ranges cascade", kMix = "mix ranges";  // what fields belong to

std::vector<Choice> choices_of(const std::vector<const LowFormat*>& formats, std::vector<Choice> first = {}) {
    for (const LowFormat* format : formats)
        first.push_back({std::string(format->id), std::string(format->label)});
    return first;
}

std::vector<Row> subject_rows(Params& p) {
    const std::string why_budget =
        p.revealed ? "" : "It finds the best mix by itself. Exercise 3 asks you to find it first.";
    return {
        {choice(
             {.name = "network",
              .label = "Network",
              .help = "Trained by this program: digits on 1 348 drawn digits (seeds 1 to 3), teacher as in "
                      "L8. own: a checkpoint of train --save."},
             &p.network,
             {{"digits", "Digits, 64-128-64-32-10"},
              {"digits-2", "Digits, seed 2"},
              {"digits-3", "Digits, seed 3"},
              {"teacher", "Teacher, 32-64-64-1"},
              {"own", "own"}}),
         kNetwork},
        {.field = text({.name = "file",
                        .label = "Own file",
                        .help = "A checkpoint of train --save, or FILE:TENSOR: one layer, whose inputs are "
                                "drawn from N(0, 1)."},
                       &p.file),
         .of = kNetwork,
         .shown = p.network == "own"},
        {choice({.name = "lower",
                 .label = "Lower",
                 .help = "Weights alone, which saves memory, or both operands of each GEMM, which also saves "
                         "time. ModelOpt: *weight_quantizer, *input_quantizer."},
                &p.lower, {{"weights", "weights"}, {"both", "weights + activations"}}),
         kMix},
        {choice({.name = "uniform",
                 .label = "Every layer in",
                 .help = "One format for all layers, or the mix that the table says."},
                &p.uniform, choices_of(uniform_formats(), {{"mix", "own mix"}})),
         kMix},
        {choice({.name = "probe",
                 .label = "One layer alone in",
                 .help = "The bars: the divergence when only that layer is in this format, as the "
                         "score of ModelOpt’s AutoQuantize."},
                &p.probe, choices_of(uniform_formats())),
         kMix},
        {number({.name = "budget",
                 .label = "Budget",
                 .unit = "bits",
                 .help = "Takes the mix with the least divergence among those with at most so many bits per "
                         "weight. 16: off. ModelOpt: effective_bits."},
                &p.budget, 4, kMostBits),
         "mix", why_budget},
    };
}

// The experiment ranges is about them: they are in its first tier.
std::vector<Row> scale_rows(Params& p, bool more) {
    const std::string wide = p.both() ? "" : "The activations stay in BF16.";
    // The dashed lines of the experiment ranges have calibrated scales in any case.
    const bool dynamic = p.act_scale == "dynamic" && p.experiment != "ranges";
    const std::string no_calibration =
        wide.empty() && dynamic ? "Dynamic scales are computed from the tensor at hand." : wide;
    return {
        {choice({.name = "act_scale",
                 .label = "Activation scale",
                 .help = "dynamic: from the tensor at hand. calibrated: from training rows, before; it is a "
                         "scale per tensor, so MX formats have none. vLLM: input_scale.",
                 .more = more},
                &p.act_scale, {{"dynamic", "dynamic"}, {"calibrated", "calibrated"}}),
         kMix, wide},
        {integer({.name = "batches",
                  .label = "Calibration batches",
                  .help = "Of 32 training rows. The amax is the largest over all of them.",
                  .more = more},
                 &p.batches, 1, 16),
         kMix, no_calibration},
        {number({.name = "percentile",
                 .label = "Percentile",
                 .unit = "%",
                 .help = "The calibrated scale holds so many of the magnitudes; those above saturate. 100: "
                         "the amax.",
                 .more = more},
                &p.percentile, 90, 100),
         kMix, no_calibration},
        {integer({.name = "margin",
                  .label = "Margin",
                  .te_name = "margin",
                  .help = "Binades above the calibrated amax that stay free.",
                  .more = more},
                 &p.margin, 0, 8),
         kMix, no_calibration},
    };
}

std::vector<Row> input_rows(Params& p, bool more, const std::string& no_relu) {
    return {
        {number({.name = "outlier_ratio",
                 .label = "Outlier channels",
                 .help = "Four channels that enter layer 2 become so many times larger and the weights that "
                         "read them smaller: the same function.",
                 .more = more},
                &p.outlier_ratio, 1, 1024, true),
         kNetwork, no_relu},
        {choice({.name = "smoothing",
                 .label = "Smoothing",
                 .help = "SmoothQuant’s alpha: moves part of each input channel’s size into its weights, by "
                         "powers of two: the same function.",
                 .more = more},
                &p.smoothing, {{"off", "off"}, {"0.25", "0.25"}, {"0.5", "0.5"}, {"0.75", "0.75"}}),
         kNetwork, no_relu},
        {number({.name = "contrast",
                 .label = "Contrast",
                 .help = "Multiplies the test inputs, not the training rows.",
                 .more = more},
                &p.contrast, 0.125, 8, true),
         kNetwork},
    };
}

std::vector<Row> cascade_rows(Params& p) {
    return {
        {choice({.name = "low", .label = "Low", .help = "Every row is computed once in this format."}, &p.low,
                choices_of(uniform_formats())),
         "cascade"},
        {choice({.name = "high",
                 .label = "High",
                 .help = "Rows whose two best classes are close are computed again in this format."},
                &p.high, choices_of(uniform_formats())),
         "cascade"},
        {number({.name = "tau",
                 .label = "Repeat below",
                 .help = "tau: a row is repeated where p1 − p2 in the low format is below it."},
                &p.tau, 0, 1),
         "cascade"},
    };
}

std::vector<Row> kv_rows(Params& p) {
    std::vector<Choice> models;
    for (const KvPreset& preset : kKvPresets)
        models.push_back({std::string(preset.id), std::string(preset.label)});
    return {
        {choice({.name = "kv_model",
                 .label = "Model",
                 .help = "As Llama 3 8B, Llama 3 70B, and a small one with heads of 64."},
                &p.kv.model, std::move(models)),
         "kv"},
        {number({.name = "kv_gb",
                 .label = "Budget of the cache",
                 .unit = "GB",
                 .help = "10^9 bytes for keys and values of one sequence."},
                &p.kv.gigabytes, 1, 141, true),
         "kv"},
        {choice(
             {.name = "cache",
              .label = "Cache",
              .help = "pressure: new tokens in FP8; when the budget is full, the oldest are cast to NVFP4. "
                      "vLLM: kv_cache_dtype."},
             &p.kv.cache, {{"bf16", "BF16"}, {"fp8", "FP8"}, {"nvfp4", "NVFP4"}, {"pressure", "pressure"}}),
         "kv"},
        {choice({.name = "kv_outlier",
                 .label = "Outlier channels of K",
                 .help = "Four of 128 channels of K are so many times larger."},
                &p.kv_outlier, {{"1", "×1"}, {"8", "×8"}}),
         "kv"},
        {choice({.name = "kv_sharp",
                 .label = "Queries",
                 .help = "Times 1 the attention is flat, times 3 a few keys have most of it."},
                &p.kv_sharp, {{"1", "×1, flat"}, {"3", "×3, sharp"}}),
         "kv"},
        {integer({.name = "kv_seed", .label = "Seed", .help = "Of K, V and the queries.", .more = true},
                 &p.kv_seed, 1, 99),
         "kv"},
    };
}

std::vector<Row> token_model_rows(Params& p) {
    return {
        {choice(
             {.name = "token_model",
              .label = "Transformer",
              .help = "Two blocks of width 64, trained in BF16 by this program on a text of 55 characters.",
              .more = true},
             &p.tokens.model, {{"1", "seed 1"}, {"2", "seed 2"}, {"3", "seed 3"}}),
         "tokens"},
        {choice({.name = "token_high", .label = "Wide", .help = "The format of what is important."},
                &p.tokens.high, choices_of(uniform_formats())),
         "tokens"},
        {choice({.name = "token_low",
                 .label = "Narrow",
                 .help = "The format of the rest. The head and the products inside attention are in BF16."},
                &p.tokens.low, choices_of(uniform_formats())),
         "tokens"},
        {choice(
             {.name = "token_by",
              .label = "In the wide format",
              .help = "A share of the tokens in every layer, with both copies of the weights in memory; or "
                      "every token in some layers."},
             &p.token_by, {{"tokens", "tokens"}, {"layers", "layers"}}),
         "tokens"},
    };
}

std::vector<Row> token_rows(Params& p) {
    const bool layers = p.token_by == "layers";
    std::vector<Choice> kinds;
    for (const ImportanceInfo& info : importances())
        kinds.push_back({std::string(info.name), std::string(info.label)});
    std::vector<Row> out = {
        {.field = choice({.name = "important",
                          .label = "Which tokens",
                          .help = "By the attention that they receive, by p1 − p2 in the narrow format, by "
                                  "their place, by how rare their character is. The oracle takes those with "
                                  "the largest divergence."},
                         &p.wide.important, std::move(kinds)),
         .of = "tokens",
         .shown = !layers},
        {.field = number({.name = "token_share",
                          .label = "Share",
                          .unit = "%",
                          .help = "Of the tokens that are in the wide format."},
                         &p.wide.share_pct, 0, 100),
         .of = "tokens",
         .shown = !layers},
    };
    for (std::size_t l = 0; l < kLinears.size(); ++l)
        out.push_back({.field = toggle({.name = fmt::format("high_{}", l + 1),
                                        .label = kLinears.at(l),
                                        .help = "This layer is in the wide format, for every token."},
                                       &p.wide.high.at(l)),
                       .of = "tokens",
                       .shown = layers});
    out.push_back({toggle({.name = "all_layers",
                           .label = "Every choice of layers",
                           .help = "Draws the 256 choices of the eight linear layers.",
                           .more = true},
                          &p.tokens.subsets),
                   "tokens"});
    out.push_back({integer({.name = "token_seed",
                            .label = "Seed",
                            .help = "Of the tokens at random. Three draws are made.",
                            .more = true},
                           &p.tokens.seed, 1, 99),
                   "tokens"});
    return out;
}

// They are in the table on the stage.
std::vector<Row> chip_rows(Params& p) {
    std::vector<Row> out;
    for (std::size_t l = 0; l < kLayerFields; ++l) {
        out.push_back({choice({.name = fmt::format("w{}", l + 1),
                               .label = fmt::format("Weights of layer {}", l + 1),
                               .help = "Format of the weights.",
                               .hidden = true},
                              &p.w[l], choices_of(mix_formats()))});
        out.push_back({choice({.name = fmt::format("a{}", l + 1),
                               .label = fmt::format("Input of layer {}", l + 1),
                               .help = "Format of the activations that the layer reads.",
                               .hidden = true},
                              &p.a[l], choices_of(mix_formats(), {{"w", "as its weights"}}))});
    }
    const char* const help = "Formats, as of infer --weights: the last holds for the layers that are left.";
    out.push_back({text(
        {.name = "w_more", .label = "Weights of the layers after the fifth", .help = help, .hidden = true},
        &p.w_more)});
    out.push_back({text(
        {.name = "a_more", .label = "Inputs of the layers after the fifth", .help = help, .hidden = true},
        &p.a_more)});
    out.push_back({toggle({.name = "revealed",
                           .label = "All mixes",
                           .help = "Draws every mix of formats and the best ones.",
                           .hidden = true},
                          &p.revealed)});
    return out;
}

}  // namespace

Params::Params() {
    w.fill("mxfp8");
    a.fill("w");
}

std::vector<Row> Lower::rows(Params& p) const {
    const bool more = p.experiment != "ranges";
    const char* const no_relu =
        has_relu() ? "" : "Only a network with relu can move a scale from one layer to the next.";
    Field experiment = choice(
        {.name = "experiment",
         .label = "Experiment",
         .help = "Formats layer by layer; the ranges of the inputs; two formats one after the other; "
                 "the KV cache; a transformer with some tokens in a wider format.",
         .hidden = true},
        &p.experiment,
        {{"mix", "Mix"}, {"ranges", "Ranges"}, {"cascade", "Cascade"}, {"kv", "KV"}, {"tokens", "Tokens"}});
    return table::join({{{experiment}},
                        subject_rows(p),
                        scale_rows(p, more),
                        input_rows(p, more, no_relu),
                        cascade_rows(p),
                        kv_rows(p),
                        chip_rows(p),
                        token_model_rows(p),
                        token_rows(p)});
}

}  // namespace fp8lab::lower
