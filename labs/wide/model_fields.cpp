// The parameters of L14 and its field table, one part per experiment.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/base/units.h"
#include "labs/wide/model.h"

namespace fp8lab::wide {

using table::Row;

namespace {

std::vector<Choice> key_choices() {
    std::vector<Choice> out;
    for (int keys = kLeastKeys; keys <= kMostKeys; keys *= 2)
        out.push_back({std::to_string(keys), group_thousands(keys)});
    return out;
}

std::vector<Choice> cast_choices() {
    std::vector<Choice> out;
    for (const CastWay& way : kCasts) out.push_back({std::string(way.id), std::string(way.label)});
    return out;
}

void add_attention(Params& p, std::vector<Row>& out) {
    const auto add = [&out](Field field, std::string why_not = {}) {
        out.push_back({std::move(field), "attention", std::move(why_not)});
    };
    add(choice({.name = "keys",
                .label = "Keys",
                .te_name = "context",
                .help = "How many keys one query attends to. More keys make every probability smaller."},
               &p.keys, key_choices()));
    add(number({.name = "sigma",
                .label = "Spread of scores",
                .te_name = "sigma",
                .help = "Standard deviation of the scores, which are random here."},
               &p.sigma, 0, 5));
    add(number({.name = "sink",
                .label = "Sink",
                .te_name = "logits above max",
                .help = "Puts the first score of each row this far above the largest. 0: no sink."},
               &p.sink, 0, 16));
    add(choice({.name = "cast",
                .label = "Probabilities cast as",
                .help = "What is cast before the product with v: P = exp(s − max) / Z, or exp(s − max) "
                        "times a scale, whose row sum divides the output afterwards."},
               &p.cast, cast_choices()));
    add(choice({.name = "format",
                .label = "Format",
                .help = "E5M2 reaches 7 binades lower than E4M3. BF16 loses nothing here."},
               &p.format, {{"e4m3", "E4M3"}, {"e5m2", "E5M2"}, {"bf16", "BF16"}}));
    add(choice({.name = "row_sum",
                .label = "Row sum",
                .help = "What divides the output: the sum of exp(s − max) before the cast, as in "
                        "FlashAttention-3, or the sum of what the cast left.",
                .more = true},
               &p.row_sum, {{"before", "before the cast"}, {"after", "after"}}));
    add(integer(
        {.name = "head", .label = "Head size", .help = "Columns of v and of the output.", .more = true},
        &p.head, 16, 128));
}

void add_swiglu(Params& p, std::vector<Row>& out) {
    const auto add = [&out](Field field, std::string why_not = {}) {
        out.push_back({std::move(field), "swiglu", std::move(why_not)});
    };
    SwigluSpec& s = p.swiglu;
    add(number({.name = "rho",
                .label = "Alignment",
                .te_name = "gate, up",
                .help = "Cosine of the angle between the gate's and the up projection's weight row of "
                        "channel 0. 0: at a right angle; 1: parallel."},
               &s.rho, 0, 1));
    add(number({.name = "k",
                .label = "Weight norm",
                .te_name = "k",
                .help = "Both weight rows of channel 0 times k; the other 511 channels have norm 1."},
               &s.k, 1, 16, true));
    add(number({.name = "jump",
                .label = "Growth at step 8",
                .help = "From step 8 on both weight rows of channel 0 are this many times as large."},
               &s.jump, 1, 4, true));
    add(integer({.name = "margin",
                 .label = "Margin",
                 .te_name = "margin",
                 .help = "Free binades above the amax of the history."},
                &s.margin, 0, 4));
    add(choice({.name = "fix",
                .label = "Fix",
                .help = "Current scaling; each channel divided by its own amax (Smooth-SwiGLU); silu(g) "
                        "at most 10 and u within ±10; or GELU, which multiplies nothing."},
               &s.fix,
               {{"none", "none"},
                {"current", "current scaling"},
                {"smooth", "Smooth-SwiGLU"},
                {"clamp10", "clamp 10"},
                {"gelu", "GELU"}}));
    out.back().note = "Alignment is set here, not learnt.";
    add(integer(
        {.name = "step", .label = "Step", .help = "The step whose numbers are shown.", .hidden = true},
        &p.step, 0, kSteps - 1));
    add(integer({.name = "history",
                 .label = "History",
                 .te_name = "amax_history_len",
                 .help = "How many amaxes delayed scaling looks back.",
                 .more = true},
                &s.history, 1, 64, true),
        s.fix == "current" || s.fix == "smooth" ? "The scale has no history here." : "");
}

std::string why_not_scaled(const OptimiserSpec& o) {
    if (o.format != "e4m3" && o.format != "e5m2")
        return fmt::format("{} needs no scale.", format_label(o.format));
    // A scale of the block's own amax would then hold each of them exactly.
    return o.signal == "forget" ? "Without a gradient all v are equal." : "";
}

std::string why_not_rounded(const OptimiserSpec& o) {
    return o.format == "fp32" ? "FP32 is what v is computed in." : "";
}

void add_optimiser(Params& p, std::vector<Row>& out) {
    const auto add = [&out](Field field, std::string why_not = {}) {
        out.push_back({std::move(field), "optimiser", std::move(why_not)});
    };
    OptimiserSpec& o = p.optimiser;
    add(choice({.name = "beta2",
                .label = "beta2",
                .te_name = "betas[1]",
                .help = "What v keeps of itself per step; 1 − beta2 is the size of one update."},
               &p.beta2,
               {{"0.9", "0.9"},
                {"0.95", "0.95"},
                {"0.98", "0.98"},
                {"0.99", "0.99"},
                {"0.995", "0.995"},
                {"0.999", "0.999"},
                {"0.9999", "0.9999"}}));
    add(choice({.name = "v_format",
                .label = "v kept in",
                .te_name = "exp_avg_sq_dtype",
                .help = "The storage of the second moment between steps. The arithmetic is FP32."},
               &o.format, {{"fp32", "FP32"}, {"bf16", "BF16"}, {"e4m3", "E4M3"}, {"e5m2", "E5M2"}}));
    add(choice({.name = "v_round",
                .label = "Rounding",
                .help = "Of v when it is stored. Stochastic rounding keeps the mean of many elements."},
               &o.rounding, {{"nearest", "nearest"}, {"stochastic", "stochastic"}}),
        why_not_rounded(o));
    add(choice({.name = "v_scale",
                .label = "Scale of v",
                .help = "8-bit formats: none, or one scale per 128 elements, set so that their amax becomes "
                        "the largest value; in FP32 or rounded down to a power of two."},
               &o.scale,
               {{"one", "one"},
                {"block128", "blocks of 128, FP32"},
                {"block128_pow2", "blocks of 128, power of two"}}),
        why_not_scaled(o));
    add(choice({.name = "signal",
                .label = "Gradient",
                .help = "forget: no gradient any more, v should fall. noise: N(0, 1) in each of 5 000 steps, "
                        "the true mean of v is 1."},
               &o.signal, {{"forget", "forget"}, {"noise", "noise"}}));
    add(number({.name = "v0", .label = "v at start", .help = "v before the first step.", .more = true}, &o.v0,
               0, 16));
    add(integer({.name = "steps",
                 .label = "Steps",
                 .help = "Without a gradient. Noise always runs 5 000.",
                 .more = true},
                &o.steps, 100, kNoiseSteps, true),
        o.signal == "noise" ? "Noise runs 5 000 steps." : "");
    add(number({.name = "params",
                .label = "Parameters",
                .help = "Of the model whose moments are counted in GB.",
                .more = true},
               &p.params, 1e8, 1e12, true));
}

}  // namespace

AttentionSpec Params::attention_spec() const {
    return {.keys = std::stoi(keys),
            .sigma = sigma,
            .sink = sink,
            .format = format,
            .sum_after = row_sum == "after",
            .head = head,
            .seed = seed};
}
AttentionSpec Params::sweep_spec() const {
    const AttentionSpec plain;
    AttentionSpec out = attention_spec();
    out.keys = plain.keys, out.head = plain.head, out.sum_after = plain.sum_after;
    return out;
}
SwigluSpec Params::swiglu_spec() const {
    SwigluSpec out = swiglu;
    out.seed = seed;
    return out;
}
OptimiserSpec Params::optimiser_spec() const {
    OptimiserSpec out = optimiser;
    out.beta2 = std::stod(beta2), out.seed = seed;
    return out;
}

std::vector<Row> Wide::rows(Params& p) {
    std::vector<Row> out;
    out.push_back({choice(
        {.name = "experiment",
         .label = "Experiment",
         .help = "Attention’s probabilities, SwiGLU’s product, or the optimiser’s second moment.",
         .hidden = true},
        &p.experiment, {{"attention", "Attention"}, {"swiglu", "SwiGLU"}, {"optimiser", "Optimiser"}})});
    add_attention(p, out);
    add_swiglu(p, out);
    add_optimiser(p, out);
    const OptimiserSpec& o = p.optimiser;
    const bool draws = p.experiment != "optimiser" || o.format != "fp32" || o.signal != "forget";
    out.push_back({.field = integer({.name = "seed",
                                     .label = "Seed",
                                     .help = "Of the scores, the batches and the roundings.",
                                     .more = true},
                                    &p.seed, 1, 99),
                   .why_not = draws ? "" : "Nothing is drawn: FP32 is not rounded."});
    return out;
}

void Wide::settle() {
    OptimiserSpec& o = params.optimiser;
    if (!why_not_scaled(o).empty()) o.scale = "one";
    if (!why_not_rounded(o).empty()) o.rounding = "nearest";
}

}  // namespace fp8lab::wide
