#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/scaling/recipe_keys.h"
#include "core/scaling/recipe_lists.h"

namespace fp8lab {

namespace {

const Recipe& find_recipe(std::string_view base, std::string_view where) {
    for (const Recipe& recipe : recipes())
        if (recipe.base == base) return recipe;
    throw unknown_name(std::string(where), "recipe", base, recipes(), [](const Recipe& r) { return r.base; });
}

const RecipeKey& find_key(const Recipe& recipe, std::string_view name, std::string_view where) {
    const Recipe& row = find_recipe(recipe.base, where);
    std::vector<std::string> valid;
    for (const RecipeKey& key : recipe_keys()) {
        if (!key.applies(row)) continue;
        if (key.name == name) return key;
        valid.push_back(std::string(key.name) + "=" + key.valid);
    }
    throw unknown_name(std::string(where), std::string(recipe.base) + " option", name, valid,
                       [](const std::string& text) { return text; });
}

void set_option(Recipe& recipe, std::string_view option, std::string_view where) {
    const auto equals = option.find('=');
    const RecipeKey& key = find_key(recipe, option.substr(0, equals), where);
    const std::string_view value = equals == option.npos ? std::string_view() : option.substr(equals + 1);
    if (!key.set(recipe, value))
        throw usage_error(std::string(where), "recipe " + std::string(recipe.base) + ": '" +
                                                  std::string(value) + "' is not a value of " +
                                                  std::string(key.name) + "; valid: " + key.valid);
}

// Sets what --history and --margin gave, whether the recipe uses it or not: a bad value is an error all the
// same.
void set_default(Recipe& recipe, std::string_view name, int value) {
    const RecipeKey& key = *std::ranges::find(recipe_keys(), name, &RecipeKey::name);
    if (!key.set(recipe, std::to_string(value)))
        throw usage_error("--" + std::string(name),
                          "'" + std::to_string(value) + "' is not valid; valid: " + key.valid);
}

}  // namespace

bool WideLayers::contains(int layer, int layers) const {
    return (first && layer == 1) || (last && layer == layers) ||
           std::ranges::find(numbers, layer) != numbers.end();
}

std::string_view to_string(Gemm gemm) {
    constexpr std::array<std::string_view, 3> kNames = {"fprop", "dgrad", "wgrad"};
    return kNames[static_cast<std::size_t>(gemm)];
}

bool has_inputs(const Recipe& recipe) { return std::ranges::any_of(recipe.inputs, &GemmInput::given); }

namespace {

// Puts all that the row says of operands into the recipe.
void take_operands(Recipe& out, const Recipe& row) {
    out.base = row.base;
    out.fwd = row.fwd, out.bwd = row.bwd;
    out.granularity = row.granularity, out.scale = row.scale;
    out.history = row.history, out.algo = row.algo;
    out.ema_decay = row.ema_decay, out.amax_percentile = row.amax_percentile;
    out.margin = row.margin, out.interval = row.interval;
    out.pow2 = row.pow2, out.mx_rule = row.mx_rule, out.round = row.round, out.round_bwd = row.round_bwd;
    out.overflow = row.overflow, out.square_weights = row.square_weights;
    out.rht = row.rht, out.rht_bf16 = row.rht_bf16, out.target = row.target;
}

}  // namespace

Recipe router_recipe(const Recipe& recipe) {
    Recipe out = recipe;
    out.inputs = {};
    take_operands(out, find_recipe(recipe.router, "recipe"));
    return out;
}

Recipe recipe_of_gemm(const Recipe& recipe, Gemm gemm) {
    const GemmInput input = recipe.inputs[static_cast<std::size_t>(gemm)];
    Recipe out = recipe;
    out.inputs = {};
    if (!input.given() || input.recipe == recipe.base) return out;
    const Recipe& row = find_recipe(input.format && !is_fp8(*input.format) ? input.format->name
                                    : input.format                         ? recipe.base
                                                                           : input.recipe,
                                    "recipe");
    if (input.format && is_fp8(*input.format)) {
        out.fwd = out.bwd = input.format;
        return out;
    }
    take_operands(out, row);
    return out;
}

Recipe wide_recipe(const Recipe& given) {
    Recipe recipe = given;
    recipe.inputs = {};
    if (!casts_to_8_bits_or_less(recipe)) return recipe;
    const Recipe& bf16 = find_recipe("bf16", "recipe");
    Recipe wide = recipe;
    wide.fwd = bf16.fwd, wide.bwd = bf16.bwd;
    wide.granularity = bf16.granularity, wide.scale = bf16.scale;
    wide.round = bf16.round, wide.round_bwd = bf16.round_bwd;
    wide.square_weights = wide.rht = wide.rht_bf16 = false;
    return wide;
}

Recipe recipe_of_layer(const Recipe& recipe, int layer, int layers) {
    return recipe.wide.contains(layer, layers) ? wide_recipe(recipe) : recipe;
}

std::vector<Choice> recipe_choices(std::vector<Choice> first) {
    for (const RecipeRow& row : recipe_rows())
        if (row.trains) first.push_back({row.recipe.name, std::string(row.recipe.label)});
    return first;
}

std::string recipe_label(std::string_view text) {
    const std::string_view base = text.substr(0, text.find(':'));
    for (const Recipe& recipe : recipes())
        if (recipe.base == base) {
            std::string label(recipe.label);
            if (base.size() < text.size()) label.append(", ").append(text.substr(base.size() + 1));
            return label;
        }
    return std::string(text);
}

namespace {

// Options of casts that fake quantization does not do.
void check_fake(const Recipe& recipe, std::string_view where) {
    if (!recipe.fake) return;
    const Recipe& row = find_recipe(recipe.base, "recipe");
    const auto refuse = [&](bool given, const char* option) {
        if (given)
            throw usage_error(std::string(where), "recipe " + std::string(recipe.base) + ": " + option +
                                                      " has no effect with fake=1");
    };
    refuse(recipe.bwd != row.bwd, "bwd");
    refuse(recipe.round_bwd != row.round_bwd, "round_bwd");
    refuse(recipe.columns_from_rowwise, "colsrc");
    refuse(recipe.rht, "rht");
    refuse(recipe.square_weights, "w2d");
    refuse(has_inputs(recipe), "an input of one product");
}

// Options that have an effect only beside another one.
void check_together(const Recipe& recipe, std::string_view where) {
    const auto needs = [&](bool given, std::string_view option, bool there, std::string_view other) {
        if (given && !there)
            throw usage_error(std::string(where), "recipe " + std::string(recipe.base) + ": " +
                                                      std::string(option) + " has no effect without " +
                                                      std::string(other));
    };
    const auto in_8_bits = [](const FormatInfo* format) { return format && is_fp8(*format); };
    needs(recipe.growth_interval > 0, "growth_interval", recipe.loss_scale > 0, "loss_scale");
    needs(recipe.moment_block != MomentBlock::block128, "moment_block",
          in_8_bits(recipe.moment_m) || in_8_bits(recipe.moment_v), "m or v in 8 bits");
    needs(recipe.round_m != Rounding::nearest, "round_m", recipe.moment_m != nullptr, "m");
    needs(recipe.round_v != Rounding::nearest, "round_v", recipe.moment_v != nullptr, "v");
    check_fake(recipe, where);
}

}  // namespace

Recipe parse_recipe(std::string_view text, const RecipeDefaults& defaults, std::string_view where) {
    const std::vector<std::string_view> parts = split(text, ':');
    Recipe recipe = find_recipe(parts[0], where);
    set_default(recipe, "history", defaults.history);
    set_default(recipe, "margin", defaults.margin);
    recipe.algo = defaults.algo;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const std::string_view name = parts[i].substr(0, parts[i].find('='));
        const auto same_name = [name](std::string_view part) {
            return part.substr(0, part.find('=')) == name;
        };
        if (std::any_of(parts.begin() + 1, parts.begin() + static_cast<std::ptrdiff_t>(i), same_name))
            throw usage_error(std::string(where), "recipe " + std::string(recipe.base) + ": " +
                                                      std::string(name) + " is given twice");
        set_option(recipe, parts[i], where);
    }
    check_together(recipe, where);
    recipe.name = text;
    return recipe;
}

std::vector<Recipe> parse_recipes(std::string_view comma_separated, const RecipeDefaults& defaults,
                                  std::string_view where) {
    std::vector<Recipe> out;
    for (const std::string_view text : split(comma_separated, ','))
        out.push_back(parse_recipe(text, defaults, where));
    return out;
}

std::string recipe_text(const Recipe& recipe) {
    const Recipe& row = find_recipe(recipe.base, "recipe");
    std::string text(recipe.base);
    for (const RecipeKey& key : recipe_keys())
        if (key.applies(row) && key.get(recipe) != key.get(row))
            text.append(":").append(key.name).append("=").append(key.get(recipe));
    return text;
}

}  // namespace fp8lab
