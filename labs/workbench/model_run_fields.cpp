// The fields of the tab "A run".
#include "labs/workbench/model_run.h"

namespace fp8lab::workbench {
namespace {

using table::Row;

// The view draws it above the others.
Row run_row(RunParams& p) {
    return {text({.name = "run",
                  .label = "Run: log, CSV or folder",
                  .help = "What a run wrote of its tensors: JSONL of the hook, an inspect log, a CSV of "
                          "train. Several, one "
                          "per line, are one run. tiny-swiglu: the sample. Empty: none.",
                  .hidden = true,
                  .lines = true},
                 &p.run)};
}

std::vector<Row> recipe_rows(RunParams& p) {
    const std::string why = p.has_history() ? "" : "only delayed scaling has a history";
    return {
        {choice({.name = "run_recipe",
                 .label = "Recipe of the run",
                 .te_name = "recipe",
                 .help = "What the run is judged under. The log\u2019s own one, where that casts to 8 bits; "
                         "else delayed "
                         "scaling as below."},
                &p.recipe, recipe_choices({{std::string(kOwnRecipe), "the log\u2019s own, else delayed"}}))},
        {.field = integer({.name = "history",
                           .label = "History",
                           .te_name = "amax_history_len",
                           .unit = "steps",
                           .help = "How many amaxes the scale is computed from."},
                          &p.history, 1, 1024, true),
         .why_not = why},
        {.field = choice({.name = "algo",
                          .label = "Reducer",
                          .te_name = "amax_compute_algo",
                          .help = "max: of the whole history. most_recent: of the step before."},
                         &p.algo, {{"max", "max"}, {"most_recent", "most_recent"}}),
         .why_not = why},
        {.field = integer({.name = "margin",
                           .label = "Margin",
                           .te_name = "margin",
                           .help = "Powers of two that the scale leaves free above the amax."},
                          &p.margin, -8, 16),
         .why_not = why},
        {number({.name = "lost_at_most",
                 .label = "Lost at most",
                 .unit = "%",
                 .help = "A tensor that loses more of its elements in a step is ill from there on."},
                &p.lost_at_most, 0.1, 50, true)},
    };
}

std::vector<Row> more_run_rows(RunParams& p) {
    return {
        {text({.name = "layers",
               .label = "Layers: name has",
               .help = "Only tensors with this in their name have lanes and rows.",
               .more = true,
               .looks = true},
              &p.layers)},
        {integer({.name = "rank",
                  .label = "Rank",
                  .help = "Of an inspect log with a file per rank; -1: the lowest.",
                  .more = true},
                 &p.rank, -1, 65535)},
        {text({.name = "arm",
               .label = "Arm of the CSV",
               .help = "Of a CSV of train with several arms; empty: the first one.",
               .more = true},
              &p.arm)},
        {toggle({.name = "healthy",
                 .label = "Also show healthy tensors",
                 .help = "A lane for each tensor; else for those with a finding, and a few beside them.",
                 .more = true,
                 .looks = true},
                &p.healthy)},
        // The stage sets them.
        {text({.name = "run_tensor",
               .label = "Tensor",
               .help = "The one that the tables show; empty: that of the first finding.",
               .hidden = true},
              &p.tensor)},
        {integer({.name = "run_step",
                  .label = "Step",
                  .help = "Where the cursor stands; -1: where the tensor loses most.",
                  .hidden = true},
                 &p.step, -1, 2'000'000'000)},
    };
}

}  // namespace

std::vector<Row> run_rows(RunParams& p) {
    std::vector<Row> out = table::join({recipe_rows(p), more_run_rows(p)});
    out.insert(out.begin(), run_row(p));
    return out;
}

}  // namespace fp8lab::workbench
