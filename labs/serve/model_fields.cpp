// The field table of L17.
#include <algorithm>

#include "core/inference/serve/cache_scheme.h"
#include "labs/serve/model.h"

namespace fp8lab::serve {

using table::Row;

namespace {

constexpr std::string_view kMlp = "methods qat", kTokens = "draft rollout kv";  // by what is served

std::vector<Choice> scheme_choices(bool both) {
    std::vector<Choice> out;
    for (const char* id : kSchemes)
        if (!both || meet(find_low_format(id, "scheme").in, RecipeList::activations))
            out.push_back({id, label_of(id)});
    return out;
}

std::vector<Row> subject_rows(Params& p) {
    const bool own = (p.experiment == "methods" || p.experiment == "qat" ? p.network : p.model) == "own";
    return {
        {choice({.name = "network",
                 .label = "Network",
                 .help = "Trained in FP32 by this program: digits on 1 348 drawn digits (seeds 1 to 3), a "
                         "transformer "
                         "of four blocks on a text. own: a checkpoint of train --save."},
                &p.network,
                {{"digits-s1", "Digits, 64-128-64-32-10"},
                 {"digits-s2", "Digits, seed 2"},
                 {"digits-s3", "Digits, seed 3"},
                 {"transformer", "Transformer, 4 blocks"},
                 {"own", "own"}}),
         kMlp},
        {choice({.name = "model",
                 .label = "Model",
                 .help = "The transformer of four blocks of width 64, trained in FP32 by this program on a "
                         "text. own: a "
                         "checkpoint of train --save, a model of tokens."},
                &p.model, {{"transformer", "Transformer, 4 blocks"}, {"own", "own"}}),
         kTokens},
        {.field =
             text({.name = "path", .label = "Own file", .help = "A checkpoint of train --save."}, &p.path),
         .shown = own},
    };
}

std::vector<Row> method_rows(Params& p) {
    std::vector<Choice> chosen;
    for (const MethodInfo& info : methods())
        chosen.push_back({std::string(info.name), std::string(info.label)});
    const bool has = has_amax(p.scheme, p.lower == "both");
    const std::string no_amax = has                 ? ""
                                : p.lower == "both" ? "This scheme has no scale per tensor."
                                                    : "The inputs stay in BF16.";
    return {
        {choice({.name = "scheme",
                 .label = "Scheme",
                 .te_name = "quant_algo",
                 .help = "The format with its scales. vLLM: quantization; E4M3 row is FP8_DYNAMIC. INT4 and "
                         "NF4 are for "
                         "weights only."},
                &p.scheme, scheme_choices(false)),
         kMlp},
        {choice(
             {.name = "lower",
              .label = "Lower",
              .help = "Weights alone save memory (W4A16). Both operands of each GEMM also save time (W4A4)."},
             &p.lower, {{"weights", "weights"}, {"both", "weights + activations"}}),
         "methods"},
        {choice({.name = "method",
                 .label = "Method",
                 .te_name = "algorithm",
                 .help = "How weights are cast. All but To nearest and Four over six read rows of the "
                         "training, none "
                         "trains."},
                &p.method, std::move(chosen)),
         "methods"},
        {number({.name = "amax",
                 .label = "Tensor amax",
                 .te_name = "input_scale",
                 .help = "The amax of the inputs that NVFP4’s tensor scale, and the scale per tensor of "
                         "E4M3, INT8 and "
                         "E2M1, follow from, times this."},
                &p.amax, 0x1p-6, 0x1p16, true),
         "methods", no_amax},
    };
}

// What a method sees, and the options of GPTQ.
std::vector<Row> calibration_rows(Params& p) {
    const Method method = find_method(p.method, "method");
    return {
        {integer({.name = "rows",
                  .label = "Calibration rows",
                  .help = "Rows of the training that the method sees, of a transformer tokens. The digits "
                          "have 1 348.",
                  .more = true},
                 &p.rows, 16, kMostSeen, true),
         "methods", sees_rows(method) ? "" : "This method sees no rows."},
        {number({.name = "damp",
                 .label = "Damping",
                 .te_name = "percdamp",
                 .help = "Of GPTQ: this times the mean of the diagonal is added to the diagonal of X^T X.",
                 .more = true},
                &p.damp, 0.001, 0.1, true),
         "methods", has_gptq(method) ? "" : "This method has no damping."},
        {choice({.name = "order",
                 .label = "Order of columns",
                 .te_name = "actorder",
                 .help = "Of GPTQ: the columns of W from left to right, or those of the largest inputs "
                         "first. Then the scales of blocks are computed from W before any column changes.",
                 .more = true},
                &p.order, {{"given", "as given"}, {"act", "largest inputs first"}}),
         "methods", has_gptq(method) ? "" : "This method has no order."},
    };
}

std::vector<Row> draft_rows(Params& p) {
    return {
        {choice({.name = "draft",
                 .label = "Draft",
                 .help = "The draft is the same model in this scheme. It proposes tokens, the target "
                         "verifies them."},
                &p.draft, scheme_choices(false)),
         "draft"},
        {choice({.name = "draft_lower", .label = "Lower", .help = "What of the draft is in the scheme."},
                &p.draft_lower, {{"weights", "weights"}, {"both", "weights + activations"}}),
         "draft"},
        {integer(
             {.name = "length",
              .label = "Draft length",
              .help = "Tokens that the draft proposes before a verification. vLLM: num_speculative_tokens."},
             &p.length, 1, 16),
         "draft"},
        {number({.name = "temperature",
                 .label = "Temperature",
                 .help = "Divides the logits of both. 0, of a draft: always the most probable token."},
                &p.temperature, p.experiment == "rollout" ? 0.1 : 0, 2),
         "draft rollout"},
        {choice({.name = "cost",
                 .label = "Cost of a draft token",
                 .help = "In passes of the target: the bytes of its weights, 1/7, or your own."},
                &p.cost, {{"bytes", "bytes"}, {"1/7", "1/7"}, {"own", "own"}}),
         "draft"},
        {.field = number({.name = "own_cost",
                          .label = "Own cost",
                          .help = "Passes of the target for a token of the draft."},
                         &p.own_cost, 0.001, 2, true),
         .of = "draft",
         .shown = p.cost == "own"},
        {choice({.name = "target",
                 .label = "Target",
                 .help = "The bits of the weights that the target reads, for the price. Acceptance is that "
                         "of a target in FP32.",
                 .more = true},
                &p.target, {{"bf16", "BF16"}, {"e4m3", "E4M3"}}),
         "draft"},
    };
}

std::vector<Row> rollout_rows(Params& p) {
    std::vector<Choice> engines = {{"bf16", "BF16"}};
    for (const Choice& scheme : scheme_choices(true)) engines.push_back(scheme);
    return {
        {choice({.name = "rollout",
                 .label = "Rollout",
                 .help = "The engine that draws the answers: weights and inputs in this scheme. The trainer "
                         "is in BF16."},
                &p.rollout, std::move(engines)),
         "rollout"},
        {choice({.name = "kv",
                 .label = "Cache of the rollout",
                 .te_name = "kv_cache_dtype",
                 .help = "fp8: E4M3 with scale 1."},
                &p.rollout_kv, {{"bf16", "BF16"}, {"fp8", "FP8"}}),
         "rollout"},
        {integer({.name = "tokens", .label = "Tokens of an answer", .help = "Behind a prompt of 8."},
                 &p.tokens, 1, 56),
         "rollout"},
        {choice({.name = "truncate",
                 .label = "Truncate weights at",
                 .te_name = "tis_imp_ratio_cap",
                 .help = "Larger weights are cut to it: less noise, and a bias."},
                &p.truncate, {{"off", "off"}, {"2", "2"}}),
         "rollout"},
        {integer({.name = "answers", .label = "Answers", .help = "That the rollout draws.", .more = true},
                 &p.answers, 2, 512, true),
         "rollout"},
    };
}

std::vector<Row> qat_rows(Params& p) {
    return {
        {choice({.name = "teacher",
                 .label = "Loss",
                 .help = "What the training compares the outputs with: the labels, or the probabilities of "
                         "the network in "
                         "FP32."},
                &p.teacher, {{"labels", "labels"}, {"teacher", "teacher"}}),
         "qat"},
        {number({.name = "lr", .label = "Learning rate", .help = "The largest; it falls by a cosine."}, &p.lr,
                1e-4, 5e-3, true),
         "qat"},
        {integer({.name = "steps",
                  .label = "Steps",
                  .help = "Of AdamW with casts in the forward pass.",
                  .more = true},
                 &p.steps, 20, 200),
         "qat"},
    };
}

std::vector<Row> kv_rows(Params& p) {
    std::vector<Choice> schemes;
    for (const CacheScheme& scheme : cache_schemes())
        if (scheme.id != "bf16") schemes.push_back({std::string(scheme.id), std::string(scheme.label)});
    return {
        {choice({.name = "cache",
                 .label = "Cache",
                 .te_name = "kv_cache_dtype",
                 .help = "The format of K and V, and what shares a scale. vLLM: calculate_kv_scales."},
                &p.cache, std::move(schemes)),
         "kv"},
        {number({.name = "k_factor",
                 .label = "K ×",
                 .help = "K times this and Q divided by it: the same function, another size of K."},
                &p.k_factor, 0x1p-8, 0x1p8, true),
         "kv"},
    };
}

}  // namespace

std::vector<Row> Serve::rows(Params& p) const {
    const Row part{choice(
        {.name = "experiment",
         .label = "Part",
         .help = "Methods of casting, a draft, a rollout, training after the cast, the cache, and how fast a "
                 "GPU serves.",
         .hidden = true},
        &p.experiment,
        {{"methods", "Methods"},
         {"draft", "Draft"},
         {"rollout", "Rollout"},
         {"qat", "QAT"},
         {"kv", "KV"},
         {"speed", "Speed"}})};
    return table::join({{part},
                        subject_rows(p),
                        method_rows(p),
                        calibration_rows(p),
                        draft_rows(p),
                        rollout_rows(p),
                        qat_rows(p),
                        kv_rows(p),
                        speed_rows(p),
                        part_rows(p)});
}

}  // namespace fp8lab::serve
