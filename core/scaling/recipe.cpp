#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/scaling/recipe_lists.h"

namespace fp8lab {

namespace {

struct Key {
    std::string_view name;
    std::string valid;               // "1-4096", "max|most_recent"
    bool (*applies)(const Recipe&);  // to a row; an option without an effect is refused, not ignored
    std::function<bool(Recipe&, std::string_view)> set;  // false: not a valid value, nothing changed
    std::function<std::string(const Recipe&)> get;
};

using Applies = bool (*)(const Recipe&);

Key integer(std::string_view name, int Recipe::*member, int min, int max, Applies applies) {
    const auto set = [=](Recipe& recipe, std::string_view text) {
        int value = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool ok =
            problem == std::errc{} && end == text.data() + text.size() && value >= min && value <= max;
        if (ok) recipe.*member = value;
        return ok;
    };
    const bool open = max == std::numeric_limits<int>::max();
    return {name,
            open ? ">=" + std::to_string(min)
                 : std::to_string(min) + (min < 0 ? ".." : "-") + std::to_string(max),
            applies, set, [=](const Recipe& recipe) { return std::to_string(recipe.*member); }};
}

template <class T>
Key choice(std::string_view name, T Recipe::*member, std::vector<std::pair<std::string_view, T>> choices,
           Applies applies) {
    std::string valid;
    for (const auto& [text, value] : choices) valid.append(valid.empty() ? "" : "|").append(text);
    const auto set = [=](Recipe& recipe, std::string_view text) {
        const auto it =
            std::find_if(choices.begin(), choices.end(), [=](const auto& c) { return c.first == text; });
        if (it != choices.end()) recipe.*member = it->second;
        return it != choices.end();
    };
    const auto get = [=](const Recipe& recipe) {
        const auto it = std::find_if(choices.begin(), choices.end(),
                                     [&](const auto& c) { return c.second == recipe.*member; });
        return it == choices.end() ? std::string() : std::string(it->first);
    };
    return {name, valid, applies, set, get};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const auto at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == text.npos) return parts;
        text.remove_prefix(at + 1);
    }
}

bool always(const Recipe&) { return true; }
bool casts(const Recipe& r) { return width_bits(*r.fwd) < 32; }
// Rows and blocks run along K, so that each GEMM has a cast of its own.
bool casts_each_way(const Recipe& r) { return r.granularity != Granularity::tensor; }
bool casts_to_8_bits_or_less(const Recipe& r) { return width_bits(*r.fwd) <= 8; }
bool is_delayed(const Recipe& r) { return r.scale == ScaleSource::delayed; }
bool has_fp32_scale(const Recipe& r) {
    return r.scale != ScaleSource::none && r.granularity != Granularity::block32 &&
           r.granularity != Granularity::block16;
}
bool has_nvfp4_scale(const Recipe& r) { return r.granularity == Granularity::block16; }
bool has_mx_scale(const Recipe& r) { return r.granularity == Granularity::block32; }
// The recipes of FP6, FP4 and INT8 are named after their format.
bool chooses_formats(const Recipe& r) { return is_fp8(*r.fwd); }
bool chooses_no_formats(const Recipe& r) { return !chooses_formats(r); }

std::string wide_text(const Recipe& recipe) {
    std::string text;
    const auto add = [&](const std::string& layer) { text.append(text.empty() ? "" : "+").append(layer); };
    if (recipe.wide.first) add("first");
    if (recipe.wide.last) add("last");
    for (const int number : recipe.wide.numbers) add(std::to_string(number));
    for (const std::string& gemm : recipe.wide.gemms) add(gemm);
    return text;
}

// "1.down": digits, a dot, a name.
bool names_gemm(std::string_view text) {
    const auto dot = text.find('.');
    const auto all = [](std::string_view part, auto is) {
        return !part.empty() && std::ranges::all_of(part, is);
    };
    return dot != text.npos && all(text.substr(0, dot), [](char c) { return c >= '0' && c <= '9'; }) &&
           all(text.substr(dot + 1), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

// A layer named twice is a mistake; which layers and GEMMs there are is not known here (ModelPlan::check()).
bool set_wide(Recipe& recipe, std::string_view text) {
    WideLayers wide;
    for (const std::string_view part : split(text, '+')) {
        int number = 0;
        const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), number);
        const bool is_number = problem == std::errc{} && end == part.data() + part.size() && number >= 1;
        if (part == "first" && !wide.first)
            wide.first = true;
        else if (part == "last" && !wide.last)
            wide.last = true;
        else if (is_number && std::ranges::find(wide.numbers, number) == wide.numbers.end())
            wide.numbers.push_back(number);
        else if (names_gemm(part) && std::ranges::find(wide.gemms, part) == wide.gemms.end())
            wide.gemms.emplace_back(part);
        else
            return false;
    }
    std::ranges::sort(wide.numbers);
    std::ranges::sort(wide.gemms);
    recipe.wide = std::move(wide);
    return true;
}

bool set_rht(Recipe& recipe, std::string_view text) {
    if (text != "0" && text != "1" && text != "bf16") return false;
    recipe.rht = text != "0";
    recipe.rht_bf16 = text == "bf16";
    return true;
}

constexpr std::array<std::string_view, 4> kInputFormats = {"fp32", "bf16", "e4m3", "e5m2"};

const Recipe* row_named(std::string_view base) {
    const auto found = std::ranges::find(recipes(), base, &Recipe::base);
    return found == recipes().end() ? nullptr : &*found;
}

// fp32 and bf16 are formats and rows of the same meaning; e4m3 and e5m2 need scaling that is made for FP8.
bool set_input(Recipe& recipe, Gemm gemm, std::string_view text) {
    GemmInput input;
    if (std::ranges::find(kInputFormats, text) != kInputFormats.end() && text != recipe.base) {
        input.format = &find_format(text);
        if (is_fp8(*input.format) && !chooses_formats(*row_named(recipe.base))) return false;
    } else if (const Recipe* row = row_named(text)) {
        input.recipe = row->base;
    } else {
        return false;
    }
    recipe.inputs[static_cast<std::size_t>(gemm)] = input;
    return true;
}

Key input_of(Gemm gemm, std::string_view name, std::string_view valid, Applies applies) {
    return {name, std::string(valid), applies,
            [gemm](Recipe& recipe, std::string_view text) { return set_input(recipe, gemm, text); },
            [gemm](const Recipe& recipe) {
                const GemmInput& input = recipe.inputs[static_cast<std::size_t>(gemm)];
                return std::string(input.format ? input.format->name : input.recipe);
            }};
}

std::vector<Key> make_keys() {
    std::vector<std::pair<std::string_view, const FormatInfo*>> elements;
    for (const FormatInfo& format : formats())
        if (format.specials != Specials::scale) elements.emplace_back(format.name, &format);
    const std::vector<std::pair<std::string_view, AmaxAlgo>> algos = {{"max", AmaxAlgo::max},
                                                                      {"most_recent", AmaxAlgo::most_recent}};
    const std::vector<std::pair<std::string_view, bool>> switches = {{"0", false}, {"1", true}};
    const std::vector<std::pair<std::string_view, MxRule>> rules = {
        {"up", MxRule::up}, {"floor", MxRule::floor}, {"even", MxRule::even}};
    const std::vector<std::pair<std::string_view, Rounding>> roundings = {
        {"nearest", Rounding::nearest}, {"stochastic", Rounding::stochastic}};
    std::vector<Key> out = {
        integer("history", &Recipe::history, 1, 4096, is_delayed),
        choice("algo", &Recipe::algo, algos, is_delayed),
        integer("margin", &Recipe::margin, -8, 16, has_fp32_scale),
        integer("interval", &Recipe::interval, 1, std::numeric_limits<int>::max(), is_delayed),
        choice("fwd", &Recipe::fwd, elements, chooses_formats),
        choice("bwd", &Recipe::bwd, elements, chooses_formats),
        choice("pow2", &Recipe::pow2, switches, has_fp32_scale),
        choice("mxrule", &Recipe::mx_rule, rules, has_mx_scale),
        choice("round", &Recipe::round, roundings, casts),
        choice("round_bwd", &Recipe::round_bwd, roundings, casts),
        choice("round_update", &Recipe::round_update, roundings, always),
        choice("w2d", &Recipe::square_weights, switches, has_nvfp4_scale),
        {"rht", "0|1|bf16", has_nvfp4_scale, set_rht,
         [](const Recipe& r) {
             return std::string(r.rht_bf16 ? "bf16" : r.rht ? "1" : "0");
         }},
        choice("target", &Recipe::target,
               {{"6", Nvfp4Target::six}, {"4", Nvfp4Target::four}, {"4or6", Nvfp4Target::four_or_six}},
               has_nvfp4_scale),
        choice("scope", &Recipe::scope,
               {{"linears", CastScope::linears},
                {"attn", CastScope::attention},
                {"head", CastScope::head},
                {"all", CastScope::all}},
               casts_to_8_bits_or_less),
        choice("act", &Recipe::act,
               {{"swiglu", SwigluForm::plain}, {"smooth", SwigluForm::smooth}, {"clamp", SwigluForm::clamp}},
               always),
        {"wide", "first|last|NUMBER|GEMM[+...]", casts_to_8_bits_or_less, set_wide, wide_text},
        choice("overflow", &Recipe::overflow,
               {{"saturate", Overflow::saturate}, {"nonsaturate", Overflow::nonsaturate}},
               casts_to_8_bits_or_less),
        choice("master", &Recipe::master, {{"fp32", MasterWeights::fp32}, {"none", MasterWeights::none}},
               always),
        choice("out", &Recipe::out, {{"bf16", OutType::bf16}, {"fp32", OutType::fp32}}, always),
        choice("wgrad", &Recipe::wgrad, {{"fp32", OutType::fp32}, {"bf16", OutType::bf16}}, always),
        choice("colsrc", &Recipe::columns_from_rowwise, {{"original", false}, {"rowwise", true}},
               casts_each_way),
        choice("fast_accum", &Recipe::fast_accum,
               {{"fprop", FastAccum::fprop}, {"all", FastAccum::all}, {"none", FastAccum::none}},
               casts_to_8_bits_or_less),
    };
    for (const auto& [valid, applies] :
         {std::pair<std::string_view, Applies>{"fp32|bf16|e4m3|e5m2|RECIPE", chooses_formats},
          {"fp32|bf16|RECIPE", chooses_no_formats}}) {
        out.push_back(input_of(Gemm::fprop, "fprop_in", valid, applies));
        out.push_back(input_of(Gemm::dgrad, "dgrad_in", valid, applies));
        out.push_back(input_of(Gemm::wgrad, "wgrad_in", valid, applies));
    }
    return out;
}

const std::vector<Key>& keys() {
    static const std::vector<Key> table = make_keys();
    return table;
}

const Recipe& find_recipe(std::string_view base, std::string_view where) {
    for (const Recipe& recipe : recipes())
        if (recipe.base == base) return recipe;
    throw unknown_name(std::string(where), "recipe", base, recipes(), [](const Recipe& r) { return r.base; });
}

const Key& find_key(const Recipe& recipe, std::string_view name, std::string_view where) {
    const Recipe& row = find_recipe(recipe.base, where);
    std::vector<std::string> valid;
    for (const Key& key : keys()) {
        if (!key.applies(row)) continue;
        if (key.name == name) return key;
        valid.push_back(std::string(key.name) + "=" + key.valid);
    }
    throw unknown_name(std::string(where), std::string(recipe.base) + " option", name, valid,
                       [](const std::string& text) { return text; });
}

void set_option(Recipe& recipe, std::string_view option, std::string_view where) {
    const auto equals = option.find('=');
    const Key& key = find_key(recipe, option.substr(0, equals), where);
    const std::string_view value = equals == option.npos ? std::string_view() : option.substr(equals + 1);
    if (!key.set(recipe, value))
        throw usage_error(std::string(where), "recipe " + std::string(recipe.base) + ": '" +
                                                  std::string(value) + "' is not a value of " +
                                                  std::string(key.name) + "; valid: " + key.valid);
}

// Sets what --history and --margin gave, whether the recipe uses it or not: a bad value is an error all the
// same.
void set_default(Recipe& recipe, std::string_view name, int value) {
    const Key& key =
        *std::find_if(keys().begin(), keys().end(), [name](const Key& k) { return k.name == name; });
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
    out.base = row.base;
    out.fwd = row.fwd, out.bwd = row.bwd;
    out.granularity = row.granularity, out.scale = row.scale;
    out.history = row.history, out.algo = row.algo, out.margin = row.margin, out.interval = row.interval;
    out.pow2 = row.pow2, out.mx_rule = row.mx_rule, out.round = row.round, out.round_bwd = row.round_bwd;
    out.overflow = row.overflow, out.square_weights = row.square_weights;
    out.rht = row.rht, out.rht_bf16 = row.rht_bf16, out.target = row.target;
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
    for (const Key& key : keys())
        if (key.applies(row) && key.get(recipe) != key.get(row))
            text.append(":").append(key.name).append("=").append(key.get(recipe));
    return text;
}

}  // namespace fp8lab
