#include "core/scaling/recipe_keys.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

#include "core/base/read_number.h"
#include "core/base/units.h"

namespace fp8lab {
namespace {

using Applies = bool (*)(const Recipe&);

RecipeKey integer(std::string_view name, int Recipe::*member, int min, int max, Applies applies) {
    const auto set = [=](Recipe& recipe, std::string_view text) {
        int value = 0;
        const bool ok = read_number(text, value) && value >= min && value <= max;
        if (ok) recipe.*member = value;
        return ok;
    };
    const bool open = max == std::numeric_limits<int>::max();
    return {name,
            open ? ">=" + std::to_string(min)
                 : std::to_string(min) + (min < 0 ? ".." : "-") + std::to_string(max),
            applies, set, [=](const Recipe& recipe) { return std::to_string(recipe.*member); }};
}

// A backend is a library with tables of its own: formats are the same where their names are.
bool same(const FormatInfo* a, const FormatInfo* b) { return a && b ? a->name == b->name : a == b; }
template <class T>
bool same(T a, T b) {
    return a == b;
}

template <class T>
RecipeKey choice(std::string_view name, T Recipe::*member,
                 std::vector<std::pair<std::string_view, T>> choices, Applies applies) {
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
                                     [&](const auto& c) { return same(c.second, recipe.*member); });
        return it == choices.end() ? std::string() : std::string(it->first);
    };
    return {name, valid, applies, set, get};
}

bool always(const Recipe&) { return true; }
bool casts(const Recipe& r) { return width_bits(*r.fwd) < 32; }
// Rows and blocks run along K, so that each GEMM has a cast of its own.
bool casts_each_way(const Recipe& r) { return r.granularity != Granularity::tensor; }
bool is_delayed(const Recipe& r) { return r.scale == ScaleSource::delayed; }
bool has_fp32_scale(const Recipe& r) {
    return r.scale != ScaleSource::none && r.granularity != Granularity::block32 &&
           r.granularity != Granularity::block16;
}
bool has_scale_per_tensor(const Recipe& r) {
    return r.scale != ScaleSource::none && r.granularity == Granularity::tensor;
}
bool has_nvfp4_scale(const Recipe& r) { return r.granularity == Granularity::block16; }
bool has_mx_scale(const Recipe& r) { return r.granularity == Granularity::block32; }
// The recipes of FP6, FP4 and INT8 are named after their format.
bool chooses_formats(const Recipe& r) { return is_fp8(*r.fwd); }
bool chooses_no_formats(const Recipe& r) { return !chooses_formats(r); }

// The scale of each cast is of the tensor at hand, and no operand is rotated.
bool can_be_fake(const Recipe& r) {
    return r.scale == ScaleSource::current && casts_to_8_bits_or_less(r) && !r.rht;
}

bool has_current_scale_per_tensor(const Recipe& r) {
    return r.scale == ScaleSource::current && r.granularity == Granularity::tensor;
}

// All of the text is a number between the limits, which it may not be.
template <class T>
bool read_between(std::string_view text, T above, T below, T& value) {
    T read = 0;
    if (!read_number(text, read) || !(read > above && read < below)) return false;
    value = read;
    return true;
}

bool set_amax(Recipe& recipe, std::string_view text) {
    if (text == "max") return recipe.amax_percentile = 0, true;
    return text.starts_with('p') && read_between(text.substr(1), 0.0, 100.0, recipe.amax_percentile);
}
std::string amax_text(const Recipe& recipe) {
    return recipe.amax_percentile > 0 ? "p" + shortest(recipe.amax_percentile) : "max";
}

bool set_algo(Recipe& recipe, std::string_view text) {
    Recipe read = recipe;
    read.algo = AmaxAlgo::max, read.ema_decay = 0, read.amax_percentile = 0;
    if (text == "most_recent") {
        read.algo = AmaxAlgo::most_recent;
    } else if (text.starts_with("ema")) {
        read.algo = AmaxAlgo::ema;
        if (!read_between(text.substr(3), 0.0F, 1.0F, read.ema_decay)) return false;
    } else if (!set_amax(read, text)) {
        return false;
    }
    recipe = std::move(read);
    return true;
}
std::string algo_text(const Recipe& recipe) {
    if (recipe.algo == AmaxAlgo::ema) return "ema" + shortest(recipe.ema_decay);
    return recipe.algo == AmaxAlgo::most_recent ? "most_recent" : amax_text(recipe);
}

bool set_loss_scale(Recipe& recipe, std::string_view text) {
    return read_between(text, 0.0F, std::numeric_limits<float>::infinity(), recipe.loss_scale);
}

bool set_sum_bits(Recipe& recipe, std::string_view text) {
    if (text == "fp32") return recipe.sum_bits = 0, true;
    int bits = 0;
    constexpr int kFewest = 2, kMost = 22;
    if (!read_number(text, bits) || bits < kFewest || bits > kMost) return false;
    recipe.sum_bits = bits;
    return true;
}

std::string wide_text(const Recipe& recipe) {
    std::string text;
    const auto add = [&](const std::string& layer) { text.append(text.empty() ? "" : "+").append(layer); };
    if (recipe.wide.first) add("first");
    if (recipe.wide.last) add("last");
    for (const int number : recipe.wide.numbers) add(std::to_string(number));
    for (const std::string& gemm : recipe.wide.gemms) add(gemm);
    return text;
}

// "1.down", "1.e0.down": digits, and names behind dots.
bool names_gemm(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, '.');
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
    const auto is_name = [&](std::string_view part) {
        return !part.empty() && letter(part.front()) &&
               std::ranges::all_of(part, [&](char c) { return letter(c) || digit(c); });
    };
    return parts.size() > 1 && !parts.front().empty() && std::ranges::all_of(parts.front(), digit) &&
           std::all_of(parts.begin() + 1, parts.end(), is_name);
}

// A layer named twice is a mistake; which layers and GEMMs there are is not known here (ModelPlan::check()).
bool set_wide(Recipe& recipe, std::string_view text) {
    WideLayers wide;
    for (const std::string_view part : split(text, '+')) {
        int number = 0;
        const bool is_number = read_number(part, number) && number >= 1;
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

RecipeKey input_of(Gemm gemm, std::string_view name, std::string_view valid, Applies applies) {
    return {name, std::string(valid), applies,
            [gemm](Recipe& recipe, std::string_view text) { return set_input(recipe, gemm, text); },
            [gemm](const Recipe& recipe) {
                const GemmInput& input = recipe.inputs[static_cast<std::size_t>(gemm)];
                return std::string(input.format ? input.format->name : input.recipe);
            }};
}

bool set_router(Recipe& recipe, std::string_view text) {
    const Recipe* row = row_named(text);
    if (row) recipe.router = row->base;
    return row != nullptr;
}

using Keys = std::vector<RecipeKey>;

const std::vector<std::pair<std::string_view, Rounding>> kRoundings = {{"nearest", Rounding::nearest},
                                                                       {"stochastic", Rounding::stochastic}};
const std::vector<std::pair<std::string_view, bool>> kSwitches = {{"0", false}, {"1", true}};

Keys scale_keys() {
    std::vector<std::pair<std::string_view, const FormatInfo*>> elements;
    for (const FormatInfo& format : formats())
        if (format.specials != Specials::scale) elements.emplace_back(format.name, &format);
    return {
        integer("history", &Recipe::history, 1, 4096, is_delayed),
        {"algo", "max|most_recent|ema0..1|p0..100", is_delayed, set_algo, algo_text},
        integer("margin", &Recipe::margin, -8, 16, has_fp32_scale),
        {"amax", "max|p0..100", has_current_scale_per_tensor, set_amax, amax_text},
        integer("interval", &Recipe::interval, 1, std::numeric_limits<int>::max(), is_delayed),
        choice("fwd", &Recipe::fwd, elements, chooses_formats),
        choice("bwd", &Recipe::bwd, elements, chooses_formats),
        choice("pow2", &Recipe::pow2, kSwitches, has_fp32_scale),
        choice("zero_amax", &Recipe::zero_amax, {{"keep", ZeroAmax::keep}, {"inf", ZeroAmax::inf}},
               has_scale_per_tensor),
        choice("mxrule", &Recipe::mx_rule,
               {{"up", MxRule::up}, {"floor", MxRule::floor}, {"even", MxRule::even}}, has_mx_scale),
    };
}

Keys rounding_keys() {
    return {
        choice("round", &Recipe::round, kRoundings, casts),
        choice("round_bwd", &Recipe::round_bwd, kRoundings, casts),
        choice("round_update", &Recipe::round_update, kRoundings, always),
        choice("w2d", &Recipe::square_weights, kSwitches, has_nvfp4_scale),
        {"rht", "0|1|bf16", has_nvfp4_scale, set_rht,
         [](const Recipe& r) {
             return std::string(r.rht_bf16 ? "bf16" : r.rht ? "1" : "0");
         }},
        choice("target", &Recipe::target,
               {{"6", Nvfp4Target::six}, {"4", Nvfp4Target::four}, {"4or6", Nvfp4Target::four_or_six}},
               has_nvfp4_scale),
    };
}

Keys model_keys() {
    return {
        choice("scope", &Recipe::scope,
               {{"linears", CastScope::linears},
                {"attn", CastScope::attention},
                {"head", CastScope::head},
                {"all", CastScope::all}},
               casts_to_8_bits_or_less),
        {"loss_scale", ">0", always, set_loss_scale,
         [](const Recipe& r) { return r.loss_scale > 0 ? shortest(r.loss_scale) : std::string(); }},
        integer("growth_interval", &Recipe::growth_interval, 0, std::numeric_limits<int>::max(), always),
        choice("act", &Recipe::act,
               {{"swiglu", SwigluForm::plain}, {"smooth", SwigluForm::smooth}, {"clamp", SwigluForm::clamp}},
               always),
        {"router", "fp32|bf16|RECIPE", always, set_router,
         [](const Recipe& r) { return std::string(r.router); }},
        {"wide", "first|last|NUMBER|GEMM[+...]", casts_to_8_bits_or_less, set_wide, wide_text},
        choice("overflow", &Recipe::overflow,
               {{"saturate", Overflow::saturate}, {"nonsaturate", Overflow::nonsaturate}},
               casts_to_8_bits_or_less),
        choice("master", &Recipe::master,
               {{"fp32", MasterWeights::fp32}, {"bf16", MasterWeights::bf16}, {"none", MasterWeights::none}},
               always),
    };
}

Keys moment_keys() {
    std::vector<std::pair<std::string_view, const FormatInfo*>> formats = {{"fp32", nullptr}};
    for (const std::string_view name : {"bf16", "fp16", "e4m3", "e5m2"})
        formats.emplace_back(name, &find_format(name));
    return {
        choice("m", &Recipe::moment_m, formats, always),
        choice("v", &Recipe::moment_v, formats, always),
        choice("moment_block", &Recipe::moment_block,
               {{"128", MomentBlock::block128}, {"tensor", MomentBlock::tensor}}, always),
        choice("round_m", &Recipe::round_m, kRoundings, always),
        choice("round_v", &Recipe::round_v, kRoundings, always),
    };
}

Keys gemm_keys() {
    Keys out = {
        choice("out", &Recipe::out, {{"bf16", OutType::bf16}, {"fp32", OutType::fp32}}, always),
        choice("wgrad", &Recipe::wgrad, {{"fp32", OutType::fp32}, {"bf16", OutType::bf16}}, always),
        choice("colsrc", &Recipe::columns_from_rowwise, {{"original", false}, {"rowwise", true}},
               casts_each_way),
        choice("fake", &Recipe::fake, kSwitches, can_be_fake),
        {"acc", "fp32|2-22", always, set_sum_bits,
         [](const Recipe& r) { return r.sum_bits == 0 ? "fp32" : std::to_string(r.sum_bits); }},
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

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const auto at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == text.npos) return parts;
        text.remove_prefix(at + 1);
    }
}

bool casts_to_8_bits_or_less(const Recipe& recipe) { return width_bits(*recipe.fwd) <= 8; }

std::span<const RecipeKey> recipe_keys() {
    static const Keys table = [] {
        Keys all;
        for (const auto keys : {scale_keys, rounding_keys, model_keys, moment_keys, gemm_keys})
            std::ranges::move(keys(), std::back_inserter(all));
        return all;
    }();
    return table;
}

}  // namespace fp8lab
