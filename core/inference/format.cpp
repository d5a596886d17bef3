#include "core/inference/format.h"

#include <algorithm>

#include "core/base/error.h"

namespace fp8lab {
namespace {

LowFormat low_format(const ListedRecipe& listed) {
    LowFormat out{.id = listed.id,
                  .label = listed.label,
                  .in = listed.in,
                  .weights = cast_plan(listed.recipe, TensorClass::w),
                  .activations = cast_plan(listed.recipe, TensorClass::x),
                  .recipe = recipe_text(listed.recipe)};
    const Granularity scales = out.activations.granularity;
    const bool blocks = scales == Granularity::block32 || scales == Granularity::block16;
    out.role = out.weights.format->role;
    if (out.role == Role::block && !blocks) out.role = Role::truth;
    out.has_static_scale =
        out.activations.scaled && (scales == Granularity::tensor || scales == Granularity::block16);
    return out;
}

}  // namespace

std::span<const LowFormat> low_formats() {
    static const std::vector<LowFormat> kTable = [] {
        std::vector<LowFormat> out;
        for (const ListedRecipe& listed : listed_recipes(kServed)) out.push_back(low_format(listed));
        for (const GroupCodes& codes : group_codes())
            out.push_back(
                {.id = codes.id, .label = codes.label, .in = RecipeList::weights, .groups = &codes});
        return out;
    }();
    return kTable;
}

std::vector<const LowFormat*> low_formats(RecipeList lists) {
    std::vector<const LowFormat*> out;
    for (const LowFormat& format : low_formats())
        if (meet(format.in, lists)) out.push_back(&format);
    return out;
}

double bits_per_weight(const LowFormat& format, std::size_t out, std::size_t in) {
    return format.groups ? format.groups->bits_per_element(in) : bits_per_element(format.weights, out, in);
}

const LowFormat& find_low_format(std::string_view id, std::string_view where, RecipeList lists) {
    const std::vector<const LowFormat*> valid = low_formats(lists);
    const auto found = std::ranges::find(valid, id, [](const LowFormat* format) { return format->id; });
    if (found != valid.end()) return **found;
    throw unknown_name(std::string(where), "format", id, valid,
                       [](const LowFormat* format) { return format->id; });
}

}  // namespace fp8lab
