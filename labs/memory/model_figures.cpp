// The figures of L10: two bars, the difference over tokens, the other plans.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/memory/model.h"

namespace fp8lab::memory {
namespace {

// The colour says the format; rows of one format differ in strength. On each the text has 4.5:1.
float strength(Row row, Keep format) {
    switch (row) {
        case Row::master:
            return 0.9F;
        case Row::m:
            return 0.76F;
        case Row::v:
            return 0.63F;
        case Row::accumulator:
            return 0.6F;
        case Row::gradients:
            return format == Keep::fp32 ? 0.82F : format == Keep::e4m3 ? 0.72F : 0.6F;
        case Row::copy_t:
            return 0.72F;
        case Row::activations:
            return format == Keep::e4m3 ? 0.34F : 0.3F;
        case Row::kv:
            return 0.45F;
        case Row::workspace:
            return 0.3F;
        default:  // blue at full strength leaves white 4.46:1 in the dark theme
            return format == Keep::e4m3 ? 1.0F : 0.96F;
    }
}

Color color_in(Row row, Keep format) {
    const float opacity = strength(row, format);
    if (row == Row::workspace || format == Keep::fp32) return {Role::text, Tone::fill, opacity};
    return {format == Keep::e4m3 ? Role::e4m3 : Role::bf16, Tone::fill, opacity};
}

struct Segment {
    Row row;
    Keep format;
    double from = 0, to = 0;  // bytes
};

std::vector<Segment> segments(const Side& side) {
    std::vector<Segment> out;
    double at = 0;
    const auto add = [&](Row row, Keep format, double bytes) {
        if (bytes > 0) out.push_back({row, format, at, at + bytes});
        at += bytes;
    };
    for (const RowInfo& info : rows()) {
        const double bytes = side.account[info.row];
        const std::size_t i = index(info.row);
        if (info.row == Row::activations) {
            const double narrow = std::min(side.account.fp8_activations, bytes);
            add(info.row, Keep::e4m3, narrow);
            add(info.row, Keep::bf16, bytes - narrow);
        } else {
            add(info.row,
                i < kStates           ? side.plan.states[i]
                : info.row == Row::kv ? side.plan.kv
                                      : Keep::fp32,
                bytes);
        }
    }
    return out;
}

std::string_view family(const Segment& one) {
    return one.row == Row::workspace  ? "workspace"
           : one.format == Keep::fp32 ? "FP32"
           : one.format == Keep::e4m3 ? "FP8"
                                      : "16 bit";
}

// The swatch of a family is its strongest colour, whichever segment comes first.
void add_swatch(Figure& figure, const Segment& one) {
    figure.band(std::string(family(one)), data({}), data({}), data({}),
                {.color = color_in(Row::weights, one.format)});
}

// One stacked bar between two heights; `legend` has the families that it does not name again.
void add_bar(Figure& figure, const Side& side, double low, double high,
             std::vector<std::string_view>* legend) {
    for (const Segment& one : segments(side)) {
        const std::string_view name = family(one);
        const double from = one.from / kGB, to = one.to / kGB;
        const bool first =
            legend && one.row != Row::workspace && std::ranges::find(*legend, name) == legend->end();
        if (first) {
            legend->push_back(name);
            add_swatch(figure, one);
        }
        figure.band(std::string(name), data({from, to}), data({low, low}), data({high, high}),
                    {.color = color_in(one.row, one.format), .in_legend = false});
        const bool narrow = one.format == Keep::e4m3;
        figure.line("", data({from, to, to, from, from}), data({low, low, high, high, low}),
                    {.color = narrow ? Color{Role::e4m3, Tone::line} : Color{Role::surface},
                     .width = 1,
                     .in_legend = false});
    }
}

// The number in a segment. The activations are two of them where a part is kept in FP8.
void add_numbers(Figure& figure, const Side& side, double low, double high) {
    for (const Segment& one : segments(side)) {
        if (one.row == Row::workspace) continue;
        figure.add("",
                   TextMark{.x = (one.from + one.to) / 2 / kGB,
                            .y = (low + high) / 2,
                            .text = gb_short(one.to - one.from),
                            .anchor = Anchor::center,
                            .room = Range{one.from / kGB, one.to / kGB},
                            .ground = color_in(one.row, one.format)},
                   {.color = {Role::text}, .in_legend = false});
    }
}

std::string_view segment_name(Row row) {
    switch (row) {
        case Row::weights:
            return "weights";
        case Row::copy:
            return "FP8 copy";
        case Row::copy_t:
            return "transpose";
        case Row::gradients:
            return "gradients";
        case Row::accumulator:
            return "accumulator";
        case Row::master:
            return "master weights";
        case Row::m:
            return "Adam m";
        case Row::v:
            return "Adam v";
        case Row::activations:
            return "activations";
        case Row::kv:
            return "KV cache";
        case Row::workspace:
            break;
    }
    return "workspace";
}

void add_names(Figure& figure, const Side& side, double at, double widest) {
    const std::vector<Segment> all = segments(side);
    for (std::size_t i = 0; i < all.size(); ++i) {
        double from = all[i].from, to = all[i].to;
        std::string name(segment_name(all[i].row));
        if (all[i].row == Row::workspace) continue;
        const bool pair = i + 1 < all.size() && ((all[i].row == Row::copy && all[i + 1].row == Row::copy_t) ||
                                                 all[i].row == all[i + 1].row);
        const bool copies = pair && all[i].row == Row::copy;
        if (copies) name = "2 copies";
        if (pair) to = all[++i].to;
        const double slack = 0.012 * widest;  // a name may reach over the edges of its segment
        figure.add("",
                   TextMark{.x = (from + to) / 2 / kGB,
                            .y = at,
                            .text = name,
                            .anchor = Anchor::center,
                            .room = Range{(from - slack) / kGB, (to + slack) / kGB}},
                   {.color = copies ? Color{Role::e4m3, Tone::ink} : Color{Role::muted}, .in_legend = false});
    }
}

std::string plan_name(const Side& side) {
    return side.changed ? fmt::format("Own, from {}", side.plan.label) : std::string(side.plan.name);
}

void add_head(Figure& figure, const Outcome& o, std::size_t which, double at) {
    const Side& side = which == 0 ? o.own : o.other;
    std::string words = fmt::format("{}  {}", plan_name(side), gb_text(side.account.on_gpu()));
    if (o.leaves_out_activations() && side.plan.activations_counted)
        words += fmt::format(", {} without activations", gb_text(o.compared(which)));
    if (const double cpu = side.account.on_cpu(); cpu > 0)
        words += fmt::format(", {} in CPU memory", gb_text(cpu));
    if (!side.plan.activations_counted && !side.plan.infers()) words += ", no activations";
    figure.add("", TextMark{.x = 0, .y = at, .text = words, .strong = true},
               {.color = {side.plan.role, Tone::ink}, .in_legend = false});
}

// Its name has a row of its own: the line may stand anywhere.
void add_gpu(Figure& figure, const Outcome& o, double widest, double at) {
    const double size = o.gpu_bytes / kGB;
    const bool left = o.gpu_bytes > 0.7 * widest;
    figure.vline("", size, {.color = {Role::text}, .width = 2, .dash = Dash::dash, .in_legend = false});
    figure.add("",
               TextMark{.x = size,
                        .y = at,
                        .text = o.gpu_name.find("GB") != std::string::npos
                                    ? o.gpu_name
                                    : fmt::format("{} {} GB", o.gpu_name, screen_number(size)),
                        .anchor = left ? Anchor::right : Anchor::left,
                        .dx = left ? -6.0F : 6.0F},
               {.color = {Role::text}, .in_legend = false});
}

// "FP8: 142.9 GB: weights 14 GB BF16, ...".
std::string sentence_of(const Side& side) {
    std::string out = fmt::format("{}: {} on the GPU:", plan_name(side), gb_text(side.account.on_gpu()));
    std::string_view before = " ";
    for (const Segment& one : segments(side)) {
        out += fmt::format("{}{} {}", before, segment_name(one.row), gb_text(one.to - one.from));
        if (one.row != Row::workspace) out += fmt::format(" in {}", label_of(one.format));
        before = ", ";
    }
    return out + ".";
}

}  // namespace

Color color_of(const Side& side, Row row) {
    return color_in(row, index(row) < kStates ? side.plan.states[index(row)]
                         : row == Row::kv     ? side.plan.kv
                                              : Keep::bf16);
}

Figure bars_figure(const Outcome& o) {
    const double widest =
        1.1 * std::max({o.own.account.on_gpu(), o.other.account.on_gpu(), o.ours() ? 0 : o.gpu_bytes, 1.0});
    Figure figure{.id = "bars",
                  .title = finding(o),
                  .x = {.label = "GB per GPU", .range = Range{0, widest / kGB}},
                  .y = {.range = Range{0, 236}, .visible = false}};
    constexpr double kLow[] = {8, 56}, kHigh[] = {96, 144};  // the two bars
    std::vector<std::string_view> legend;
    add_bar(figure, o.own, kHigh[0], kHigh[1], &legend);
    add_bar(figure, o.other, kLow[0], kLow[1], &legend);
    add_numbers(figure, o.own, kHigh[0], kHigh[1]);
    add_numbers(figure, o.other, kLow[0], kLow[1]);
    add_names(figure, o.own, kHigh[1] + 12, widest);
    add_head(figure, o, 0, kHigh[1] + 36);
    add_head(figure, o, 1, kLow[1] + 20);
    if (!o.ours()) add_gpu(figure, o, widest, kHigh[1] + 74);
    figure.words = {figure.title + ".", sentence_of(o.own), sentence_of(o.other),
                    fmt::format("The GPU has {}.", gb_text(o.gpu_bytes))};
    return figure;
}

Figure tokens_figure(const Outcome& o) {
    const auto [own, other] = names(o);
    Figure figure{
        .id = "tokens",
        .title = tokens_title(o),
        .x = {.label = "tokens per GPU", .scale = Scale::log2, .range = Range{kFewestTokens, kAxisTokens}},
        .y = {.label = fmt::format("{} − {}, GB{}", own, other,
                                   o.leaves_out_activations() ? ", no activations" : "")}};
    if (o.ours()) return figure;
    const Role role = o.own.plan.role;
    std::vector<double> tokens, difference, above;
    constexpr int kPoints = 57;  // eight to a power of two
    for (int i = 0; i < kPoints; ++i) {
        const double at = kFewestTokens * std::exp2(i / 8.0);
        tokens.push_back(at);
        difference.push_back(difference_at(o, at) / kGB);
        above.push_back(std::max(difference.back(), 0.0));
    }
    const Data xs = data(tokens), zeros = data(std::vector<double>(tokens.size(), 0.0));
    figure.band("larger", xs, zeros, data(above), {.color = {role, Tone::tint, 0.8F}, .in_legend = false});
    figure.hline("", 0, {.color = {Role::text}, .width = 1, .in_legend = false});
    figure.line("difference", xs, data(difference), {.color = {role}, .width = 3, .in_legend = false});
    const double now = std::clamp(o.load.tokens(), kFewestTokens, kAxisTokens);
    if (o.break_even >= kFewestTokens && o.break_even <= kAxisTokens) {
        figure.scatter("as large", data({o.break_even}), data({0}),
                       {.color = {Role::text}, .marker = Marker::disc, .marker_size = 5, .in_legend = false});
        figure.add("", TextMark{o.break_even, 0, tokens_text(o.break_even), Anchor::left, false, 6, -14},
                   {.color = {Role::text}, .in_legend = false});
    }
    const double here = difference_at(o, now);
    figure.scatter(
        "now", data({now}), data({here / kGB}),
        {.color = {role, Tone::line}, .marker = Marker::disc, .marker_size = 5, .in_legend = false});
    figure.add(
        "",
        TextMark{now, here / kGB, fmt::format("now {}{:.1f}", here < 0 ? "−" : "+", std::fabs(here) / kGB),
                 Anchor::left, true, 16, -12},
        {.color = {role, Tone::ink}, .in_legend = false});
    return figure;
}

std::vector<Plan> other_plans(const Params& params, const Outcome& o) {
    std::vector<Plan> out;
    for (const Plan& plan : plans())
        if (plan.id != params.plan && plan.id != params.compare && plan.infers() == o.own.plan.infers())
            out.push_back(plan);
    return out;
}

Figure plans_figure(const Params& params, const Outcome& o) {
    Figure figure{.id = "plans",
                  .title = "The other plans, same model",
                  .x = {.label = "GB per GPU"},
                  .y = {.visible = false}};
    if (o.ours()) return figure;
    const std::vector<Plan> others = other_plans(params, o);
    const auto count = static_cast<double>(others.size());
    double widest = 1;
    std::vector<Side> sides;
    for (const Plan& plan : others) {
        sides.push_back({.plan = plan, .account = account(plan, o.model, o.load, params.pcie * kGB)});
        widest = std::max(widest, sides.back().account.on_gpu());
    }
    figure.x.range = Range{0, 1.02 * widest / kGB};
    figure.y.range = Range{0, std::max(count, 1.0)};
    for (std::size_t i = 0; i < sides.size(); ++i) {
        const double low = count - 1 - static_cast<double>(i);
        add_bar(figure, sides[i], low + 0.25, low + 0.75, nullptr);
        figure.words.push_back(sentence_of(sides[i]));
    }
    return figure;
}

Figure Memory::thumbnail() const {
    Figure figure{
        .id = "thumbnail", .x = {.visible = false}, .y = {.range = Range{0, 100}, .visible = false}};
    const Outcome start = outcome_of({}, {});
    figure.x.range = Range{0, 1.02 * start.own.account.on_gpu() / kGB};
    add_bar(figure, start.own, 58, 88, nullptr);
    add_bar(figure, start.other, 12, 42, nullptr);
    return figure;
}

}  // namespace fp8lab::memory
