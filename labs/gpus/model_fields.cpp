// The parameters of L15: its field table, and what trainings and times are made of.
#include <string>

#include "core/base/units.h"
#include "core/ranks/sums.h"
#include "labs/gpus/model.h"
#include "labs/seeded.h"

namespace fp8lab::gpus {

using table::Row;

namespace {

std::vector<Choice> powers_of_two(int from, int to) {
    std::vector<Choice> out;
    for (int n = from; n <= to; n *= 2) out.push_back({std::to_string(n), group_thousands(n)});
    return out;
}

std::vector<Choice> sum_choices() {
    std::vector<Choice> out;
    for (const RankSum& sum : rank_sums()) out.push_back({std::string(sum.id), std::string(sum.label)});
    return out;
}

Field gpus_field(Params& p) {
    return choice(
        {.name = "gpus",
         .label = "GPUs",
         .te_name = "WORLD_SIZE",
         .help = "GPUs that train one model, each on rows of its own. Times are for this many, trainings "
                 "for at most 8."},
        &p.gpus, powers_of_two(1, kMostGpus));
}

Field rows_field(Params& p) {
    return choice(
        {.name = "rows",
         .label = "Rows a GPU",
         .help = "Rows of the batch of one GPU, in the layers whose times are shown. Compute grows with "
                 "them, what travels does not."},
        &p.rows, powers_of_two(256, 16384));
}

void add_first(Params& p, std::vector<Row>& out) {
    const bool alone = p.world() == 1;
    const std::string one = alone ? "one GPU sends nothing" : "",
                      whole = p.sharded() ? "" : "nothing is gathered";
    out.push_back({gpus_field(p)});
    out.push_back({rows_field(p)});
    out.push_back(
        {.field = choice({.name = "gather",
                          .label = "Weights sent in",
                          .help = "What the owner of a block of weights sends to the others after its "
                                  "update: BF16, which each GPU casts, or the codes that GEMMs read."},
                         &p.gather, {{"bf16", "BF16"}, {"e4m3", "E4M3"}}),
         .why_not = one,
         .shown = whole.empty()});
    out.push_back(
        {.field = choice({.name = "sum",
                          .label = "Gradients summed in",
                          .help = "The format and the way in which the gradients of all GPUs are added. A "
                                  "ring rounds the sum at every hop."},
                         &p.sum, sum_choices()),
         .why_not = one});
    out.push_back({.field = choice(
                       {.name = "wscale",
                        .label = "Scale of the weights",
                        .te_name = "reduce_amax",
                        .help = "Of codes that are sent. Reduced: one scale, from the amax over all GPUs. "
                                "Sent along: each block has its own, sent with it. Each its own: the "
                                "reader divides by the scale of its own block, which is a fault."},
                       &p.wscale, {{"reduced", "reduced"}, {"shard", "sent along"}, {"own", "each its own"}}),
                   .why_not = !one.empty()         ? one
                              : !p.fp8             ? "BF16 GEMMs read no codes"
                              : p.gather == "bf16" ? "BF16 has no scale"
                                                   : "",
                   .shown = whole.empty()});
    out.push_back(
        {.field = choice({.name = "bad",
                          .label = "A bad rank",
                          .help = "In step 1000 rank 2 gets a NaN in its batch, or its batch times a "
                                  "million. The training then uses delayed scaling with history 16."},
                         &p.bad, {{"none", "none"}, {"nan", "NaN"}, {"x1e6", "× 1e6"}}),
         .why_not = p.world() <= kBadRank ? "there is no rank 2"
                    : p.fp8               ? ""
                                          : "BF16 GEMMs have no scales"});
}

// What only the times depend on.
void add_times(Params& p, std::vector<Row>& out) {
    out.push_back({toggle({.name = "overlap",
                           .label = "Overlap with compute",
                           .help = "A layer’s gradients and weights travel while another layer is computed.",
                           .more = true},
                          &p.overlap)});
    out.push_back(
        {choice({.name = "link",
                 .label = "Link",
                 .help = "NVLink joins 8 GPUs of a node; between nodes 400 Gb/s per GPU are an assumption. "
                         "NVLink only: as if all GPUs were on one node.",
                 .more = true},
                &p.link, {{"node", "NVLink + 400 Gb/s"}, {"nvlink", "NVLink only"}, {"own", "own"}})});
    out.push_back({.field = number({.name = "link_gbs",
                                    .label = "Between nodes",
                                    .unit = "GB/s",
                                    .help = "Bandwidth between nodes for each GPU.",
                                    .more = true},
                                   &p.link_gbs, 1, 1000, true),
                   .why_not = p.link == "own" ? "" : "the link is chosen"});
    out.push_back(
        {number({.name = "jitter",
                 .label = "Jitter",
                 .unit = "%",
                 .help = "Standard deviation of one GPU’s compute time from step to step. All wait for the "
                         "slowest. 1 % is an assumption.",
                 .more = true},
                &p.jitter, 0, 10)});
}

void add_more(Params& p, std::vector<Row>& out) {
    out.push_back(
        {choice({.name = "shard",
                 .label = "Sharding",
                 .te_name = "zero_stage",
                 .help = "zero1: each GPU updates its rows of every weight and sends them. None: every GPU "
                         "updates all weights from an all-reduce, and no weight is sent.",
                 .more = true},
                &p.shard, {{"zero1", "ZeRO-1"}, {"none", "none"}})});
    out.push_back(
        {toggle({.name = "fp8",
                 .label = "FP8 GEMMs",
                 .help = "Of the training on all GPUs. Off: GEMMs and weights that are sent are in BF16, as "
                         "on the one GPU it is compared with. Times are shown for both.",
                 .more = true},
                &p.fp8)});
    add_times(p, out);
    out.push_back(
        {.field = choice({.name = "act_amax",
                          .label = "Activations’ amax",
                          .te_name = "amax_reduction_group",
                          .help = "The amax of x and dy that goes into the histories: the largest of all "
                                  "GPUs, or each GPU’s own.",
                          .more = true},
                         &p.act_amax, {{"reduced", "reduced"}, {"local", "local"}}),
         .why_not = p.has_bad() ? "" : "only delayed scaling has histories"});
    out.push_back({integer({.name = "seed", .label = "Seed", .help = "Of weights and batches.", .more = true},
                           &p.seed, 1, 999)});
    out.push_back({integer({.name = "step",
                            .label = "Step",
                            .unit = "steps",
                            .help = "Steps of the training that are done or asked for.",
                            .hidden = true},
                           &p.step, 0, kSteps)});
}

double bytes_of_sum(const std::string& sum) {
    return static_cast<double>(storage_bytes(find_rank_sum(sum).sent()));
}

TrainSpec arm_of(const Params& p, const std::string& recipe, int ranks, bool chosen) {
    TrainOptions options;
    options.recipes = recipe;
    options.schedule = "cosine";
    options.steps = kSteps;
    options.seed = static_cast<std::uint64_t>(p.seed);
    if (ranks > 1) {
        options.ranks = ranks;
        options.sum = chosen ? p.sum : "bf16";
        const bool sharded = !chosen || p.sharded();
        options.shard = sharded ? "zero1" : "none";
        if (sharded && (!chosen || p.sends_codes())) {
            options.gather = "e4m3";
            options.weight_scale = chosen ? p.wscale : "reduced";
        }
    }
    if (chosen && p.has_bad()) {
        options.bad = std::to_string(kBadRank) + ":" + p.bad + ":" + std::to_string(kBadStep);
        options.act_amax = p.act_amax;
    }
    return make_train_spec(options);
}

}  // namespace

std::vector<Row> Gpus::rows(Params& p) const {
    std::vector<Row> out;
    add_first(p, out);
    add_more(p, out);
    return out;
}

StepSpec Params::step_spec() const {
    StepSpec out{.gpus = world(),
                 .rows = rows_per_gpu(),
                 .gather_bytes = gather == "e4m3" ? 1.0 : 2.0,
                 .sum_bytes = bytes_of_sum(sum),
                 .sharded = sharded(),
                 .overlap = overlap,
                 .network = {},
                 .jitter_pct = jitter};
    out.network.nvlink_only = link == "nvlink";
    if (link == "own") out.network.beta_gbs = link_gbs;
    return out;
}

std::vector<TrainSpec> Params::arms() const {
    std::vector<TrainSpec> out = {arm_of(*this, "bf16", 1, false), arm_of(*this, "current", ranks(), false)};
    const std::string recipe = !fp8        ? "bf16"
                               : has_bad() ? "delayed:history=" + std::to_string(kHistory)
                                           : "current";
    TrainSpec chosen = arm_of(*this, recipe, ranks(), true);
    if (command_line(chosen) != command_line(out.back())) out.push_back(std::move(chosen));
    return out;
}

Sent sent_of(const Params& p) {
    Sent out;
    if (p.world() == 1) return out;
    const double share = static_cast<double>(p.world() - 1) / p.world();
    const double matrices = 2, bytes_of_amax = 4;
    out.gradients = kWeights * bytes_of_sum(p.sum) * share * (p.sharded() ? 1 : 2);
    if (!p.sharded()) return out;
    out.weights = kWeights * (p.sends_codes() ? 1 : 2) * share;
    if (p.sends_codes() && p.wscale != "own") out.amax = matrices * bytes_of_amax;
    return out;
}

}  // namespace fp8lab::gpus
