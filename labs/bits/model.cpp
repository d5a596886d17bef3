#include "labs/bits/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/read_number.h"
#include "core/formats/codec.h"

namespace fp8lab::bits {

namespace {

struct Policy {
    std::string_view id, label;
    Specials specials;
};
constexpr std::array kPolicies = {
    Policy{"fn", "FN (OCP)", Specials::fn}, Policy{"ieee", "IEEE", Specials::ieee},
    Policy{"fnuz", "FNUZ", Specials::fnuz}, Policy{"finite", "none", Specials::finite}};

// The row of the table with the tab's exponent and mantissa bits and these special values, if there is one.
const FormatInfo* relative(const FormatInfo& tab, Specials specials) {
    const auto found = std::ranges::find_if(
        formats(), [&](const FormatInfo& f) { return family(f).name == tab.name && f.specials == specials; });
    return found == formats().end() ? nullptr : &*found;
}

// A tab is a floating-point format with at most 16 bits. A format that differs from an earlier one only in bias and
// special values is behind its tab.
bool is_tab(const FormatInfo& format) {
    if (format.kind != Kind::floating || width_bits(format) > 16) return false;
    const FormatInfo& tab = family(format);
    return tab.name == format.name || relative(tab, format.specials) != &format;
}

const Policy& policy_of(std::string_view id) { return *std::ranges::find(kPolicies, id, &Policy::id); }

// What custom_format() takes: IEEE needs a finite binade and a NaN beside Inf, FN a code besides the NaN, and
// only IEEE keeps the top exponent of 8 exponent bits within float32.
bool can_have(const Params& own, Specials specials) {
    if (specials == Specials::ieee) return own.exponent_bits >= 2 && own.mantissa_bits >= 1;
    if (own.exponent_bits == 8) return false;
    return specials != Specials::fn || own.exponent_bits + own.mantissa_bits >= 2;
}

std::vector<std::string_view> allowed_policies(const Params& params) {
    std::vector<std::string_view> out;
    for (const Policy& policy : kPolicies)
        if (params.format == "custom" && can_have(params, policy.specials)) out.push_back(policy.id);
    if (params.format == "custom") return out;
    // A format without relatives has no choice.
    for (const Policy& policy : kPolicies)
        if (relative(find_format(params.format), policy.specials)) out.push_back(policy.id);
    return out.size() > 1 ? out : std::vector<std::string_view>();
}

// The policy in force: the one asked for where the format allows it, else the tab's own, or of a custom format the
// first; "" without a choice.
std::string_view policy_in_force(const Params& params) {
    const auto allowed = allowed_policies(params);
    if (allowed.empty()) return "";
    const bool granted = std::find(allowed.begin(), allowed.end(), params.specials) != allowed.end();
    if (granted) return params.specials;
    if (params.format == "custom") return allowed.front();
    return std::ranges::find(kPolicies, find_format(params.format).specials, &Policy::specials)->id;
}

// Moves a design to the nearest one whose values are float32: 8 exponent bits leave room for IEEE only, which
// needs a mantissa bit, and the bias must bring the top exponent down to 127.
void make_possible(Params& own) {
    if (own.exponent_bits == 8) own.mantissa_bits = std::max(own.mantissa_bits, 1);
    const bool ieee = policy_in_force(own) == "ieee";
    const int top = (1 << own.exponent_bits) - (ieee ? 2 : 1);
    own.bias = std::max(own.bias, top - 127);
}

FormatInfo format_of(const Params& params) {
    const std::string_view specials = policy_in_force(params);
    if (params.format == "custom") {
        FormatInfo format = custom_format(params.exponent_bits, params.mantissa_bits, params.bias,
                                          policy_of(specials).specials);
        format.label = "Custom";
        return format;
    }
    const FormatInfo& tab = find_format(params.format);
    return specials.empty() ? tab : *relative(tab, policy_of(specials).specials);
}

std::vector<Choice> tabs() {
    std::vector<Choice> out = format_choices(is_tab);
    out.push_back({"custom", "Design your own"});
    return out;
}

std::uint32_t code_mask(const FormatInfo& format) { return (1U << width_bits(format)) - 1U; }

}  // namespace

const LabInfo Bits::kInfo = {"bits",
                             1,
                             "Bits and codes",
                             "What does a byte mean?",
                             "A byte has 256 codes. Which numbers are they, and where do they end?",
                             20,
                             "",
                             "",
                             "it shows one code at a time, and fp8lab codes prints them all"};

std::span<const table::Experiment<Bits>> Bits::experiments() {
    static constexpr std::array<table::Experiment<Bits>, 1> kOne = {
        {{.figures = &Bits::figures, .metrics = &Bits::metrics}}};
    return kOne;
}

std::vector<table::Row> Bits::rows(Params& params) {
    const auto designed = [&](Field field) {
        return table::Row{.field = std::move(field), .shown = params.format == "custom"};
    };
    return {
        {choice(
            {.name = "format",
             .label = "Format",
             .help = "How many bits hold the exponent, and how many the steps between two powers of two."},
            &params.format, tabs())},
        {.field = choice({.name = "specials",
                          .label = "Special values",
                          .help = "Which codes mean NaN and infinity instead of numbers. E4M3 and E5M2 exist "
                                  "in more than one version."},
                         &params.specials,
                         {{"fn", "FN (OCP)"}, {"ieee", "IEEE"}, {"fnuz", "FNUZ"}, {"finite", "none"}}),
         .shown = allowed_policies(params).size() >= 2},
        {choice({.name = "shade",
                 .label = "Shade the map by",
                 .help = "What the map's darkness shows: the size of the value, the gap to the next one, or "
                         "the class of the code."},
                &params.shade, {{"magnitude", "magnitude"}, {"gap", "gap"}, {"class", "class"}})},
        {integer({.name = "code",
                  .label = "Code",
                  .help = "The bits as one integer: 126 is 0x7E.",
                  .hidden = true},
                 &params.code, 0, 0x7FFFF)},
        designed(integer(
            {.name = "exponent_bits",
             .label = "Exponent bits",
             .unit = "bits",
             .help = "Your own format: each bit more squares the ratio of the largest to the smallest "
                     "normal value."},
            &params.exponent_bits, 1, 8)),
        designed(integer({.name = "mantissa_bits",
                          .label = "Mantissa bits",
                          .unit = "bits",
                          .help = "Your own format: each bit more halves the gaps."},
                         &params.mantissa_bits, 0, 10)),
        designed(integer({.name = "bias",
                          .label = "Bias",
                          .help = "Your own format: subtracted from the stored exponent. It moves the whole "
                                  "range."},
                         &params.bias, -64, 127)),
    };
}

void Bits::settle() {
    if (params.format == "custom") make_possible(params);
    const FormatInfo format = format_of(params);
    if (static_cast<std::uint32_t>(params.code) > code_mask(format))
        params.code = static_cast<int>(max_code(format));
}

Outcome compute(const Params& params) {
    const auto code = static_cast<std::uint32_t>(params.code);
    Outcome out;
    out.format = format_of(params);
    out.rules = policy_in_force(params);
    out.reading = read_code(out.format, code);
    out.map = code_map(out.format, params.shade);
    out.end = line_end(out.format);
    out.facts = facts(out.format);
    out.elsewhere = elsewhere(out.format, code);
    return out;
}

std::vector<Figure> Bits::figures() const {
    const std::uint32_t code = outcome->reading.code;
    return {map_figure(outcome->format, outcome->map, code), value_figure(outcome->format, code)};
}

Figure Bits::thumbnail() const {
    Figure figure = map_figure(outcome->format, outcome->map, outcome->reading.code);
    std::get<HeatmapSeries>(figure.series.front().shape).labels.clear();
    std::erase_if(figure.series,
                  [](const Series& series) { return std::holds_alternative<TextMark>(series.shape); });
    figure.x.range = Range{0, static_cast<double>(outcome->map.cols)};
    figure.y.range = Range{0, static_cast<double>(outcome->map.rows)};
    return figure;
}

std::vector<table::MetricRow> Bits::metrics() const {
    const FormatInfo& format = outcome->format;
    const Reading& reading = outcome->reading;
    const CodeCounts counts = count_codes(format);
    const auto count = [](std::int64_t n) { return static_cast<double>(n); };
    return {
        table::known_word("format", std::string(format.name)),
        table::known("code", count(reading.code)),
        table::known_word("code_hex", reading.code_text),
        table::known_word("class", std::string(to_string(reading.code_class))),
        table::known("sign", count(reading.fields.sign)),
        table::known("exponent", count(reading.fields.exponent)),
        table::known("mantissa", count(reading.fields.mantissa)),
        table::known("value", reading.value),
        table::known_word("value_exact", reading.exact),
        table::known("gap", reading.gap),
        table::known_word("note", reading.note),
        table::known("max", max_finite(format)),
        table::known("max_code", count(max_code(format))),
        table::known("next_on_the_line", outcome->end.phantom),
        table::known("min_normal", min_normal(format)),
        table::known("min_subnormal", min_subnormal(format)),
        table::known("bits", count(width_bits(format))),
        table::known("codes", count(counts.total)),
        table::known("finite_codes", count(counts.finite)),
        table::known("distinct_values", count(counts.distinct)),
        table::known("subnormal_codes", count(counts.subnormals)),
        table::known("nan_codes", count(counts.nans)),
        table::known("infinity_codes", count(counts.infinities)),
    };
}

bool Bits::perform(std::string_view action) {
    constexpr std::string_view kToggle = "toggle ";
    int bit = 0;
    const bool known = action.starts_with(kToggle) && read_number(action.substr(kToggle.size()), bit);
    if (!known || bit < 0 || bit > 15) return false;
    if (bit < width_bits(outcome->format)) select(outcome->reading.code ^ (1U << bit));
    return true;
}

void Bits::select_format(std::string_view id) {
    const int width = width_bits(outcome->format);
    params.format = id;
    if (params.format == "custom") make_possible(params);
    const FormatInfo next = format_of(params);
    if (width_bits(next) != width) params.code = static_cast<int>(max_code(next));
}

std::string Bits::enter(std::string_view text) {
    const FormatInfo& format = outcome->format;
    const auto refuse = [&](std::string_view why) {
        return usage_error("code or value",
                           fmt::format("'{}' {}; valid: a code from {} to {}, or a number", text, why,
                                       code_text(format, 0), code_text(format, code_mask(format))));
    };
    if (text.starts_with("0x") || text.starts_with("0X")) {
        const char* const end = text.data() + text.size();
        std::uint32_t code = 0;
        const auto [at, problem] = std::from_chars(text.data() + 2, end, code, 16);
        if (problem != std::errc{} || at != end) throw refuse("is not hexadecimal");
        if (code > code_mask(format)) throw refuse("has too many bits");
        select(code);
        const Reading reading = read_code(format, code);
        return reading.code_text + " is " + reading.headline;
    }
    double value = 0;
    if (!read_number(text, value)) throw refuse("is neither");
    select(encode(format, static_cast<float>(value), default_rounding(format), Overflow::saturate));
    const Reading reading = read_code(format, static_cast<std::uint32_t>(params.code));
    const double got = reading.value;
    const bool exact = got == value || (std::isnan(got) && std::isnan(value));
    return fmt::format("{} {} {}", text, exact ? "is" : "becomes",
                       reading.headline + (exact ? " itself" : ""));
}

std::vector<Choice> Bits::specials_choices() const {
    std::vector<Choice> out;
    for (const std::string_view id : allowed_policies(params))
        out.push_back({std::string(id), std::string(policy_of(id).label)});
    return out;
}

LabEntry entry() { return entry_of<BitsLab>(Bits::kInfo); }

}  // namespace fp8lab::bits
