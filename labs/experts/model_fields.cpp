// The field table of L18.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "labs/experts/model.h"
#include "labs/experts/model_casts.h"

namespace fp8lab::experts {

using table::Row;

namespace {

constexpr int kFewestTokens = 64, kMostTokens = 32768;

std::vector<Row> routing_rows(Params& p) {
    const std::string_view of = "routing";
    return {
        {choice({.name = "layers_in",
                 .label = "Layers in",
                 .te_name = "fprop_in=",
                 .help = "What attention and experts cast their operands to. The reference has BF16."},
                &p.layers_in, layer_choices()),
         of},
        {choice({.name = "router",
                 .label = "Router in",
                 .te_name = "router=",
                 .help = "What the router's GEMM casts its operands to. FP32: nothing. Megatron: "
                         "moe_router_dtype."},
                &p.router, router_choices()),
         of},
        {choice({.name = "routes",
                 .label = "Choices",
                 .help = "new: each token goes where the router in these bits sends it. kept: it keeps the "
                         "experts that the reference chose, and only gates and layers change."},
                &p.routes, {{"new", "chosen anew"}, {"kept", "kept"}}),
         of}};
}

std::vector<Row> groups_rows(Params& p) {
    const std::string_view of = "groups";
    std::vector<Choice> pools, tokens, cards;
    for (const Pool& pool : kPools) pools.push_back({std::string(pool.id), std::string(pool.label)});
    for (int n = kFewestTokens; n <= kMostTokens; n *= 2)
        tokens.push_back({std::to_string(n), std::to_string(n)});
    for (const Recording& recording : shipped()->recordings)
        cards.push_back({recording.id, short_gpu_name(recording.gpu)});
    if (cards.empty()) cards.push_back({p.card, "none"});
    return {
        {choice({.name = "pool",
                 .label = "Experts of",
                 .te_name = "num_experts / moe_router_topk",
                 .help = "own: the choices of the shipped model. Otherwise experts are drawn: 8/2 as "
                         "Mixtral, 64/6 as DeepSeek-V2-Lite, 256/8 as DeepSeek-V3."},
                &p.pool, std::move(pools)),
         of},
        {.field =
             choice({.name = "tokens", .label = "Tokens", .help = "Of one layer and one step, on one GPU."},
                    &p.tokens, std::move(tokens)),
         .of = of,
         .note = p.pool == "own" && std::stoi(p.tokens) > kOwnTokens
                     ? fmt::format("The model has {} held-out tokens.", kOwnTokens)
                     : ""},
        {choice(
             {.name = "pad",
              .label = "Rows padded to",
              .help = "A multiple of the rows that a GEMM asks for: 16 in FP8 with one scale, 32 in MXFP8, "
                      "128 in DeepGEMM."},
             &p.pad, {{"1", "none"}, {"16", "16"}, {"32", "32"}, {"128", "128"}}),
         of},
        {number({.name = "skew",
                 .label = "Skew",
                 .help = "How unequal experts are: the standard deviation of their log popularity."},
                &p.skew, 0, 1),
         of, p.pool == "own" ? "The choices are those of the model." : ""},
        {choice({.name = "card", .label = "GPU", .help = "Whose recorded times are shown."}, &p.card,
                std::move(cards)),
         of}};
}

std::vector<Row> hop_rows(Params& p) {
    const std::string_view of = "hop";
    return {{choice({.name = "gemm",
                     .label = "GEMMs in",
                     .help = "What the experts' GEMMs cast their operands to: x of gate_up before the GEMM, "
                             "whatever it was sent in."},
                    &p.gemm, gemm_choices()),
             of},
            {choice({.name = "send",
                     .label = "Sent out in",
                     .te_name = "dispatch",
                     .help = "The rows on their way to the experts."},
                    &p.send, hop_choices()),
             of},
            {choice({.name = "back",
                     .label = "Sent back in",
                     .te_name = "combine",
                     .help = "The outputs of the experts on their way back, before they are added."},
                    &p.back, hop_choices()),
             of}};
}

std::vector<Row> training_rows(Params& p) {
    const std::string_view of = "training";
    std::vector<Choice> arms;
    for (const char* arm : kArms) arms.push_back({arm, recipe_label(arm)});
    arms.push_back({fmt::format("{}", fmt::join(kArms, ",")), "all four"});
    const bool starves = p.starve != "off";
    return {
        {choice({.name = "arms",
                 .label = "Recipes",
                 .te_name = "--recipe",
                 .help = "Trained beside BF16 on the same batches. Of all four, expert 1 is shown under the "
                         "first."},
                &p.arms, std::move(arms)),
         of},
        {choice({.name = "starve",
                 .label = "Expert 1 gets no token in steps",
                 .help = "The router may not choose it in these steps. Afterwards it may."},
                &p.starve, {{"off", "none"}, {"100-300", "100 to 300"}, {"0-300", "0 to 300"}}),
         of},
        {integer({.name = "experts", .label = "Experts", .te_name = "num_experts", .help = "Of each block."},
                 &p.experts, 4, 16),
         of},
        {integer({.name = "active",
                  .label = "Active",
                  .te_name = "moe_router_topk",
                  .help = "Experts that read a token."},
                 &p.active, 1, 4),
         of},
        {choice(
             {.name = "balance",
              .label = "Balance",
              .help = "What keeps experts equally busy: a bias on their scores as in DeepSeek-V3, a loss as "
                      "in Switch, or nothing.",
              .more = true},
             &p.balance, {{"bias", "bias"}, {"loss", "loss"}, {"none", "none"}}),
         of},
        {choice({.name = "empty",
                 .label = "Without tokens",
                 .help = "What the delayed scales of an expert without tokens see. roll: an amax of 0, as in "
                         "Transformer Engine's unfused order. keep: nothing.",
                 .more = true},
                &p.empty, {{"roll", "amax 0"}, {"keep", "nothing"}}),
         of,
         !p.arms.starts_with("delayed") ? "Only delayed scaling has a history of amaxes."
         : !starves                     ? "No expert is without tokens for long."
                                        : ""},
        {integer({.name = "steps",
                  .label = "Steps",
                  .help = "Of the 600 of the schedule. Only a whole training has BF16 beside it.",
                  .more = true},
                 &p.steps, kFewestSteps, kMostSteps),
         of}};
}

}  // namespace

std::vector<Row> Mixture::rows(Params& p) const {
    const Row part{
        choice({.name = "experiment",
                .label = "Experiment",
                .help = "Which expert reads a token, how many rows it gets, the way to it and back, "
                        "and its training.",
                .hidden = true},
               &p.experiment,
               {{"routing", "Routing"}, {"groups", "Groups"}, {"hop", "Hop"}, {"training", "Training"}})};
    const Row seed{integer({.name = "seed",
                            .label = "Seed",
                            .help = "Of the model: its start and its batches. Of drawn groups: the draw.",
                            .more = true},
                           &p.seed, 1, kSeeds)};
    return table::join({{part}, routing_rows(p), groups_rows(p), hop_rows(p), training_rows(p), {seed}});
}

}  // namespace fp8lab::experts
