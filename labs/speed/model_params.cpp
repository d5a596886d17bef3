#include "labs/speed/model_params.h"

#include <utility>

#include "core/scaling/recipe_lists.h"

namespace fp8lab::speed {
namespace {

// Those whose products are kinds of the grid.
std::vector<Choice> recipe_choices() {
    std::vector<Choice> out;
    for (const ListedRecipe& listed : listed_recipes(RecipeList::gemm_grid))
        out.push_back({std::string(listed.id), std::string(listed.recipe.label)});
    return out;
}

void add_sizes(std::vector<Field>& out, Params& p) {
    out.push_back(integer({.name = "m",
                           .label = "M",
                           .te_name = "batch \u00d7 seq",
                           .help = "Rows of x: tokens of a batch. The disc of the roofline does the same."},
                          &p.m, 16, 32768, true));
    out.push_back(integer(
        {.name = "n", .label = "N", .te_name = "out_features", .help = "Outputs of the linear layer."}, &p.n,
        256, 32768, true));
    out.push_back(
        integer({.name = "k", .label = "K", .te_name = "in_features", .help = "Inputs of the linear layer."},
                &p.k, 256, 32768, true));
}

void add_more(std::vector<Field>& out, Params& p, std::vector<Choice> over) {
    out.push_back(choice({.name = "casts",
                          .label = "Casts counted",
                          .help = "x+w: both operands are cast in every step. x: the weights were cast once, "
                                  "as in inference. none: the GEMM alone.",
                          .more = true},
                         &p.casts, {{"x+w", "x and w"}, {"x", "x"}, {"none", "none"}}));
    out.push_back(choice({.name = "over",
                          .label = "Lay over",
                          .help = "The roofs and the sweep of another recording, beside the chosen one.",
                          .more = true},
                         &p.over, std::move(over)));
    out.push_back(
        integer({.name = "groups",
                 .label = "Groups",
                 .te_name = "BATCH_COUNT",
                 .help = "Products of this size in one call, M rows in each: a strided batch, as in "
                         "a mixture of experts.",
                 .more = true},
                &p.groups, 1, 64, true));
    out.push_back(choice({.name = "data",
                          .label = "Data",
                          .help = "What the operands hold. Zeros need less power, so the clocks are higher.",
                          .more = true},
                         &p.data, {{"normal", "random"}, {"zeros", "zeros"}}));
    out.push_back(
        toggle({.name = "pad",
                .label = "Pad to 16",
                .help = "M, N and K of the FP8 products become the next multiples of 16. The rows "
                        "and columns that are added hold zeros. Sizes that are multiples stay as they are.",
                .more = true},
               &p.pad));
    out.push_back(integer({.name = "repeats",
                           .label = "Repeats",
                           .help = "Samples of each live measurement. A recording has its own number.",
                           .more = true},
                          &p.repeats, 20, 200));
}

void add_hidden(std::vector<Field>& out, Params& p) {
    out.push_back(choice({.name = "view",
                          .label = "Lower figure",
                          .help = "What the lower left figure shows.",
                          .hidden = true,
                          .looks = true},
                         &p.view,
                         {{"sweep", "M sweep"}, {"qkv", "QKV"}, {"align", "Align"}, {"formats", "Formats"}}));
    const auto offset = [&](const char* name, const char* label, int* value) {
        out.push_back(integer({.name = name,
                               .label = label,
                               .help = "One more or one less than the slider says: no multiple of 16.",
                               .hidden = true},
                              value, -1, 1));
    };
    offset("m_off", "M, one off", &p.m_off);
    offset("n_off", "N, one off", &p.n_off);
    offset("k_off", "K, one off", &p.k_off);
    out.push_back(choice({.name = "n3",
                          .label = "M = N = K",
                          .help = "The size of the products in the table of formats.",
                          .hidden = true},
                         &p.n3, {{"1024", "1024"}, {"2048", "2048"}, {"4096", "4096"}, {"8192", "8192"}}));
    out.push_back(toggle({.name = "show_amdahl",
                          .label = "Show Amdahl",
                          .help = "Whether the step shows what Amdahl's law predicts for it.",
                          .hidden = true,
                          .looks = true},
                         &p.show_amdahl));
}

}  // namespace

int padded(int value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }
Layer padded(const Layer& layer) { return {padded(layer.m), padded(layer.n), padded(layer.k)}; }

LayerProbe probe_of(const Params& params, const Layer& layer) {
    return {.m = layer.m,
            .n = layer.n,
            .k = layer.k,
            .recipe = params.recipe,
            .fast_accum = params.fast_accum == "all"    ? FastAccum::all
                          : params.fast_accum == "none" ? FastAccum::none
                                                        : FastAccum::fprop,
            .groups = params.groups,
            .zeros = params.data == "zeros",
            .repeats = params.repeats};
}

std::vector<Field> fields_of(Params& p, std::span<const Choice> recordings) {
    std::vector<Choice> sources(recordings.begin(), recordings.end()), over = {{"none", "none"}};
    over.insert(over.end(), sources.begin(), sources.end());
    sources.push_back({std::string(kLive), "this GPU, live"});
    std::vector<Field> out;
    out.push_back(choice({.name = "source",
                          .label = "Times from",
                          .help = "A recording, or measurements on the GPU of this machine."},
                         &p.source, std::move(sources)));
    out.push_back(choice({.name = "recipe",
                          .label = "Recipe",
                          .te_name = "fp8_recipe",
                          .help = "Which scales the FP8 products and their casts have."},
                         &p.recipe, recipe_choices()));
    add_sizes(out, p);
    out.push_back(
        choice({.name = "fast_accum",
                .label = "Fast accumulation",
                .te_name = "FAST_ACCUM",
                .help = "Which products are summed in the tensor core's short accumulator. Blocks of "
                        "128 never are."},
               &p.fast_accum, {{"fprop", "fprop"}, {"all", "all"}, {"none", "none"}}));
    add_more(out, p, std::move(over));
    add_hidden(out, p);
    return out;
}

}  // namespace fp8lab::speed
