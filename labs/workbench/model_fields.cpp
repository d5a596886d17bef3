// The field table of the Workbench, and what other labs take from it.
#include <algorithm>

#include "labs/workbench/model.h"

namespace fp8lab::workbench {

using table::Row;

namespace {

std::vector<Choice> recipe_menu() {
    std::vector<Choice> out;
    for (const ScanRecipe& recipe : scan_recipes()) out.push_back({recipe.id, recipe.label});
    return out;
}

// The view draws them above the others.
std::vector<Row> file_rows(Params& p) {
    return {
        {text({.name = "file",
               .label = "File",
               .help = "A .safetensors, .npy or .npz, or the .safetensors.index.json of a model in several "
                       "files. Several, one per line, are one list. Empty or transformer-600: the sample.",
               .hidden = true,
               .lines = true},
              &p.file)},
        {text({.name = "compare",
               .label = "Compare with",
               .help = "An earlier state of the same model, or the original that it was quantised from; "
                       "transformer-0: the sample before training.",
               .hidden = true},
              &p.compare)},
        {choice({.name = "compare_as",
                 .label = "which is",
                 .help = "Earlier state: what changed. Original: which fault a quantised tensor has.",
                 .hidden = true},
                &p.compare_as, {{"earlier", "earlier state"}, {"original", "original"}})},
    };
}

std::vector<Row> first_rows(Params& p) {
    return {
        {choice({.name = "show",
                 .label = "Show",
                 .help = "Weights, inputs, gradients, or the state of the optimiser, by their names."},
                &p.show, {{"all", "all"}, {"w", "w"}, {"x", "x"}, {"dy", "dy"}, {"state", "state"}})},
        {toggle({.name = "fold",
                 .label = "Fold layers into kinds",
                 .help = "One row for the same tensor of all layers, with the worst of them."},
                &p.fold)},
        {number({.name = "min_sqnr",
                 .label = "SQNR at least",
                 .te_name = "compute_error",
                 .unit = "dB",
                 .help = "Demand on the ratio of signal to quantisation noise."},
                &p.min_sqnr, 0, 60)},
        {number({.name = "max_underflow",
                 .label = "Underflow at most",
                 .te_name = "underflows%",
                 .unit = "%",
                 .help = "Demand on the share of elements that become 0."},
                &p.max_underflow, 0.001, 50, true)},
    };
}

std::vector<Row> more_rows(Params& p) {
    return {
        {number({.name = "min_row",
                 .label = "Worst row at least",
                 .unit = "dB",
                 .help = "Demand on the row with the lowest SQNR; 0: no demand.",
                 .more = true},
                &p.min_row, 0, 40)},
        {number({.name = "max_bits",
                 .label = "Bits at most",
                 .unit = "bit",
                 .help = "Demand on the bits per element, scales included.",
                 .more = true},
                &p.max_bits, 4, 16)},
        {choice({.name = "cast_as",
                 .label = "Cast as",
                 .help = "Blocks of 128 are 128 x 128 for weights, 1 x 128 for the others.",
                 .more = true},
                &p.cast_as, {{"name", "by name"}, {"w", "w"}, {"x", "x"}, {"dy", "dy"}})},
        {choice({.name = "mx_rule",
                 .label = "MX rule",
                 .help = "How the scale of an MX block follows from its amax.",
                 .more = true},
                &p.mx_rule, {{"up", "up"}, {"floor", "floor"}, {"even", "even"}})},
        {choice({.name = "columns",
                 .label = "Recipes in the table",
                 .help = "Which five recipes the table has columns for. All are measured.",
                 .more = true},
                &p.columns, {{"usual", "usual"}, {"small", "4 to 8 bits"}, {"scales", "scales"}})},
        {toggle({.name = "unscaled_codes",
                 .label = "No scale: plain cast",
                 .help = "Codes for which no scale is found are taken as values.",
                 .more = true},
                &p.unscaled_codes)},
        {text({.name = "tensor",
               .label = "Tensor",
               .help = "The one that the figures show; empty: that of the first row.",
               .more = true},
              &p.tensor)},
        {text({.name = "filter",
               .label = "Name has",
               .help = "Only tensors with this in their name; key /.",
               .more = true,
               .looks = true},
              &p.filter)},
    };
}

// The stage sets them.
std::vector<Row> stage_rows(Params& p) {
    std::vector<Choice> orders = {{"underflow", "underflow, one scale"},
                                  {"name", "name"},
                                  {"amax", "amax"},
                                  {"least", "least"},
                                  {"binades", "binades"},
                                  {"not_finite", "NaN and Inf"}};
    for (const Choice& recipe : recipe_menu()) orders.push_back(recipe);
    return {
        {text({.name = "uses",
               .label = "Single tensors cast as",
               .help = "JSON: the name of a tensor and w, x, dy or state. The figures set it.",
               .hidden = true},
              &p.uses)},
        {choice(
            {.name = "recipe", .label = "Recipe", .help = "The one that the figures show.", .hidden = true},
            &p.recipe, recipe_menu())},
        {choice({.name = "order",
                 .label = "Sorted by",
                 .help = "A column of the table; a click on its head sorts.",
                 .hidden = true,
                 .looks = true},
                &p.order, std::move(orders))},
        {toggle({.name = "ascending",
                 .label = "Smallest first",
                 .help = "A second click on a head turns the order.",
                 .hidden = true,
                 .looks = true},
                &p.ascending)},
        {toggle(
            {.name = "covered",
             .label = "Cover the recipes",
             .help =
                 "Only the chosen line of the table of recipes is shown, no finding of a run, and no fault.",
             .hidden = true,
             .looks = true},
            &p.covered)},
    };
}

// What a lab is set to besides its file. A lab that takes tensors of one's own has a line here.
struct Taker {
    std::string_view lab;
    std::vector<std::string> also = {};
};
const std::vector<Taker>& takers() {
    static const std::vector<Taker> kTakers = {{"ruler"},  {"error"},
                                               {"window"}, {"delayed", {"scenario=rows"}},
                                               {"blocks"}, {"lower", {"network=own"}},
                                               {"four"}};
    return kTakers;
}

}  // namespace

bool takes_tensor(std::string_view lab) {
    return std::ranges::find(takers(), lab, &Taker::lab) != takers().end();
}

std::vector<std::string> Workbench::fields_for(std::string_view lab) const {
    const auto taker = std::ranges::find(takers(), lab, &Taker::lab);
    const ScanRow* const now = row();
    if (taker == takers().end() || !now) return {};
    std::vector<std::string> out = taker->also;
    const StoredTensor& tensor = scanned().store->tensors()[now->tensor];
    const bool several = scanned().store->listed() > 1;
    const std::string file =
        (several ? scanned().store->files()[tensor.file].path() : scanned().store->path()).string();
    out.push_back("file=" + (file.ends_with(".npy") ? file : file + ":" + std::string(tensor.own_name())));
    return out;
}

std::vector<Row> Workbench::rows(Params& p) {
    const auto of = [](std::string_view tab, std::vector<Row> rows) {
        for (Row& row : rows) row.of = tab;
        return rows;
    };
    // The stage has its control.
    const Row tab{choice({.name = "experiment",
                          .label = "Look at",
                          .help = "The tensors of a model, or what a run did to its tensors."},
                         &p.experiment, {{std::string(kTensors), "Tensors"}, {std::string(kRun), "A run"}})};
    return table::join({of(kTensors, table::join({file_rows(p), first_rows(p), more_rows(p), stage_rows(p)})),
                        {tab},
                        of(kRun, run_rows(p.run))});
}

}  // namespace fp8lab::workbench
