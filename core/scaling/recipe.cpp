#include "core/scaling/recipe.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <utility>

#include "core/base/error.h"

namespace fp8lab {

namespace {

// ---- The rows

std::vector<Recipe> make_recipes() {
    const auto entry = [](std::string_view base, std::string_view fwd, std::string_view bwd,
                          Granularity granularity, ScaleSource scale, std::string_view summary) {
        Recipe r;
        r.name = base;
        r.base = base;
        r.summary = summary;
        r.fwd = &find_format(fwd);
        r.bwd = &find_format(bwd);
        r.granularity = granularity;
        r.scale = scale;
        return r;
    };
    using enum Granularity;
    constexpr auto kNone = ScaleSource::none, kCurrent = ScaleSource::current,
                   kDelayed = ScaleSource::delayed;
    std::vector<Recipe> rows = {
        entry("fp32", "fp32", "fp32", tensor, kNone, "No cast at all: the reference"),
        entry("bf16", "bf16", "bf16", tensor, kNone, "Every GEMM input in BF16, no scale: today's baseline"),
        entry("delayed", "e4m3", "e5m2", tensor, kDelayed,
              "FP8, one scale a tensor from the amaxes of earlier steps"),
        entry("current", "e4m3", "e5m2", tensor, kCurrent, "FP8, one scale a tensor from its own amax"),
        entry("rowwise", "e4m3", "e5m2", row, kCurrent, "FP8, one scale a row along the contraction"),
        entry("block128", "e4m3", "e4m3", block128, kCurrent,
              "FP8, blocks of 1x128 for x and dy, 128x128 for w"),
        entry("mxfp8", "e4m3", "e4m3", block32, kCurrent, "FP8, blocks of 32 with power-of-two scales"),
        entry("mxfp6-e2m3", "e2m3", "e2m3", block32, kCurrent, "FP6 with 3 mantissa bits, blocks of 32"),
        entry("mxfp6-e3m2", "e3m2", "e3m2", block32, kCurrent, "FP6 with 2 mantissa bits, blocks of 32"),
        entry("mxfp4", "e2m1", "e2m1", block32, kCurrent, "FP4, blocks of 32 with power-of-two scales"),
        entry("nvfp4", "e2m1", "e2m1", block16, kCurrent,
              "FP4, blocks of 16 with E4M3 scales under a tensor scale"),
        entry("int8", "int8", "int8", tensor, kCurrent,
              "Symmetric integers, one scale a tensor from its own amax"),
        entry("unscaled", "e4m3", "e5m2", tensor, kNone, "FP8 with scale 1: what scaling repairs"),
    };
    const auto named = [&rows](std::string_view base) -> Recipe& {
        return *std::find_if(rows.begin(), rows.end(), [base](const Recipe& r) { return r.base == base; });
    };
    named("fp32").out = OutType::fp32;
    named("block128").pow2 = true;                    // Transformer Engine's default for Float8BlockScaling
    named("nvfp4").round_bwd = Rounding::stochastic;  // gradients only, as NVFP4BlockScaling does
    return rows;
}

// ---- The options

struct Key {
    std::string_view name;
    std::string valid;               // "1-4096", "max|most_recent"
    bool (*applies)(const Recipe&);  // an option without an effect is refused, not ignored
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

bool always(const Recipe&) { return true; }
bool casts(const Recipe& r) { return r.base != "fp32"; }
bool casts_to_8_bits_or_less(const Recipe& r) { return casts(r) && r.base != "bf16"; }
bool is_delayed(const Recipe& r) { return r.scale == ScaleSource::delayed; }
bool has_fp32_scale(const Recipe& r) {
    return r.scale != ScaleSource::none && r.granularity != Granularity::block32 &&
           r.granularity != Granularity::block16;
}
bool has_mx_scale(const Recipe& r) { return r.granularity == Granularity::block32; }
bool chooses_formats(const Recipe& r) {
    return r.base == "delayed" || r.base == "current" || r.base == "rowwise" || r.base == "unscaled" ||
           r.base == "block128" || r.base == "mxfp8";
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
    return {
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
        choice("overflow", &Recipe::overflow,
               {{"saturate", Overflow::saturate}, {"nonsaturate", Overflow::nonsaturate}},
               casts_to_8_bits_or_less),
        choice("master", &Recipe::master, {{"fp32", MasterWeights::fp32}, {"none", MasterWeights::none}},
               always),
        choice("out", &Recipe::out, {{"bf16", OutType::bf16}, {"fp32", OutType::fp32}}, always),
        choice("wgrad", &Recipe::wgrad, {{"fp32", OutType::fp32}, {"bf16", OutType::bf16}}, always),
        choice("fast_accum", &Recipe::fast_accum,
               {{"fprop", FastAccum::fprop}, {"all", FastAccum::all}, {"none", FastAccum::none}},
               casts_to_8_bits_or_less),
    };
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
    std::vector<std::string> valid;
    for (const Key& key : keys()) {
        if (!key.applies(recipe)) continue;
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

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const auto at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == text.npos) return parts;
        text.remove_prefix(at + 1);
    }
}

}  // namespace

std::span<const Recipe> recipes() {
    static const std::vector<Recipe> table = make_recipes();
    return table;
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
