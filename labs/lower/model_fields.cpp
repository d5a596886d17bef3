// The parameters of L11 and its field table.
#include <fmt/format.h>

#include <tuple>

#include "labs/lower/model.h"

namespace fp8lab::lower {
namespace {

std::vector<Choice> choices_of(const std::vector<const LowFormat*>& formats, std::vector<Choice> first = {}) {
    for (const LowFormat* format : formats)
        first.push_back({std::string(format->id), std::string(format->label)});
    return first;
}

void add_subject(Params& p, std::vector<Field>& out) {
    out.push_back(
        choice({.name = "network",
                .label = "Network",
                .help = "Trained by this program: digits on 1 348 drawn digits (seeds 1 to 3), teacher as in "
                        "L8. own: a checkpoint of train --save."},
               &p.network,
               {{"digits", "Digits, 64-128-64-32-10"},
                {"digits-2", "Digits, seed 2"},
                {"digits-3", "Digits, seed 3"},
                {"teacher", "Teacher, 32-64-64-1"},
                {"own", "own"}}));
    out.push_back(
        text({.name = "file",
              .label = "Own file",
              .help = "A checkpoint of train --save, or FILE:TENSOR: one layer, whose inputs are drawn "
                      "from N(0, 1)."},
             &p.file));
    out.push_back(
        choice({.name = "lower",
                .label = "Lower",
                .help = "Weights alone, which saves memory, or both operands of each GEMM, which also saves "
                        "time. ModelOpt: *weight_quantizer, *input_quantizer."},
               &p.lower, {{"weights", "weights"}, {"both", "weights + activations"}}));
    out.push_back(choice({.name = "uniform",
                          .label = "Every layer in",
                          .help = "One format for all layers, or the mix that the table says."},
                         &p.uniform, choices_of(uniform_formats(), {{"mix", "own mix"}})));
    out.push_back(choice({.name = "probe",
                          .label = "One layer alone in",
                          .help = "The bars: the divergence when only that layer is in this format, as the "
                                  "score of ModelOpt’s AutoQuantize."},
                         &p.probe, choices_of(uniform_formats())));
    out.push_back(
        number({.name = "budget",
                .label = "Budget",
                .unit = "bits",
                .help = "Takes the mix with the least divergence among those with at most so many bits per "
                        "weight. 16: off. ModelOpt: effective_bits."},
               &p.budget, 4, kMostBits));
}

void add_ranges(Params& p, std::vector<Field>& out) {
    out.push_back(
        choice({.name = "act_scale",
                .label = "Activation scale",
                .help = "dynamic: from the tensor at hand. calibrated: from training rows, before; it is a "
                        "scale per tensor, so MX formats have none. vLLM: input_scale.",
                .more = true},
               &p.act_scale, {{"dynamic", "dynamic"}, {"calibrated", "calibrated"}}));
    out.push_back(integer({.name = "batches",
                           .label = "Calibration batches",
                           .help = "Of 32 training rows. The amax is the largest over all of them.",
                           .more = true},
                          &p.batches, 1, 16));
    out.push_back(number(
        {.name = "percentile",
         .label = "Percentile",
         .unit = "%",
         .help = "The calibrated scale holds so many of the magnitudes; those above saturate. 100: the amax.",
         .more = true},
        &p.percentile, 90, 100));
    out.push_back(integer({.name = "margin",
                           .label = "Margin",
                           .te_name = "margin",
                           .help = "Binades above the calibrated amax that stay free.",
                           .more = true},
                          &p.margin, 0, 8));
    out.push_back(
        number({.name = "outlier_ratio",
                .label = "Outlier channels",
                .help = "Four channels that enter layer 2 become so many times larger and the weights that "
                        "read them smaller: the same function.",
                .more = true},
               &p.outlier_ratio, 1, 1024, true));
    out.push_back(choice({.name = "smoothing",
                          .label = "Smoothing",
                          .help = "SmoothQuant’s alpha: moves part of each input channel’s size into its "
                                  "weights, by powers of two: the "
                                  "same function.",
                          .more = true},
                         &p.smoothing, {{"off", "off"}, {"0.25", "0.25"}, {"0.5", "0.5"}, {"0.75", "0.75"}}));
    out.push_back(number({.name = "contrast",
                          .label = "Contrast",
                          .help = "Multiplies the test inputs, not the training rows.",
                          .more = true},
                         &p.contrast, 0.125, 8, true));
}

void add_cascade(Params& p, std::vector<Field>& out) {
    out.push_back(
        choice({.name = "low", .label = "Low", .help = "Every row is computed once in this format."}, &p.low,
               choices_of(uniform_formats())));
    out.push_back(choice({.name = "high",
                          .label = "High",
                          .help = "Rows whose two best classes are close are computed again in this format."},
                         &p.high, choices_of(uniform_formats())));
    out.push_back(number({.name = "tau",
                          .label = "Repeat below",
                          .help = "tau: a row is repeated where p1 − p2 in the low format is below it."},
                         &p.tau, 0, 1));
}

void add_kv(Params& p, std::vector<Field>& out) {
    std::vector<Choice> models;
    for (const KvPreset& preset : kKvPresets)
        models.push_back({std::string(preset.id), std::string(preset.label)});
    out.push_back(choice({.name = "kv_model",
                          .label = "Model",
                          .help = "As Llama 3 8B, Llama 3 70B, and a small one with heads of 64."},
                         &p.kv.model, std::move(models)));
    out.push_back(number({.name = "kv_gb",
                          .label = "Budget of the cache",
                          .unit = "GB",
                          .help = "10^9 bytes for keys and values of one sequence."},
                         &p.kv.gigabytes, 1, 141, true));
    out.push_back(choice(
        {.name = "cache",
         .label = "Cache",
         .help = "pressure: new tokens in FP8; when the budget is full, the oldest are cast to NVFP4. "
                 "vLLM: kv_cache_dtype."},
        &p.kv.cache, {{"bf16", "BF16"}, {"fp8", "FP8"}, {"nvfp4", "NVFP4"}, {"pressure", "pressure"}}));
    out.push_back(choice({.name = "kv_outlier",
                          .label = "Outlier channels of K",
                          .help = "Four of 128 channels of K are so many times larger."},
                         &p.kv_outlier, {{"1", "×1"}, {"8", "×8"}}));
    out.push_back(choice({.name = "kv_sharp",
                          .label = "Queries",
                          .help = "Times 1 the attention is flat, times 3 a few keys have most of it."},
                         &p.kv_sharp, {{"1", "×1, flat"}, {"3", "×3, sharp"}}));
    out.push_back(
        integer({.name = "kv_seed", .label = "Seed", .help = "Of K, V and the queries.", .more = true},
                &p.kv_seed, 1, 99));
}

void add_chips(Params& p, std::vector<Field>& out) {
    for (std::size_t l = 0; l < kLayerFields; ++l) {
        out.push_back(choice({.name = fmt::format("w{}", l + 1),
                              .label = fmt::format("Weights of layer {}", l + 1),
                              .help = "Format of the weights.",
                              .hidden = true},
                             &p.w[l], choices_of(mix_formats())));
        out.push_back(choice({.name = fmt::format("a{}", l + 1),
                              .label = fmt::format("Input of layer {}", l + 1),
                              .help = "Format of the activations that the layer reads.",
                              .hidden = true},
                             &p.a[l], choices_of(mix_formats(), {{"w", "as its weights"}})));
    }
    for (const auto& [name, label, value] :
         {std::tuple{"w_more", "Weights of the layers after the fifth", &p.w_more},
          {"a_more", "Inputs of the layers after the fifth", &p.a_more}})
        out.push_back(
            text({.name = name,
                  .label = label,
                  .help = "Formats, as of infer --weights: the last holds for the layers that are left.",
                  .hidden = true},
                 value));
    out.push_back(toggle({.name = "revealed",
                          .label = "All mixes",
                          .help = "Draws every mix of formats and the best ones.",
                          .hidden = true},
                         &p.revealed));
}

}  // namespace

Params::Params() {
    w.fill("mxfp8");
    a.fill("w");
}

std::vector<Field> LowerLab::fields_of(Params& p) {
    std::vector<Field> out;
    out.push_back(
        choice({.name = "experiment",
                .label = "Experiment",
                .help = "Formats layer by layer; the ranges of the inputs; two formats one after the other; "
                        "the KV cache.",
                .hidden = true},
               &p.experiment, {{"mix", "Mix"}, {"ranges", "Ranges"}, {"cascade", "Cascade"}, {"kv", "KV"}}));
    add_subject(p, out);
    add_ranges(p, out);
    add_cascade(p, out);
    add_kv(p, out);
    add_chips(p, out);
    return out;
}

}  // namespace fp8lab::lower
