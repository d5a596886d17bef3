// The roofline: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model" (2009).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/figure/axis.h"
#include "labs/speed/model_figures.h"

namespace fp8lab::speed {
namespace {

constexpr double kLeastAi = 4, kLeastTflops = 5, kMostTflops = 2300;
constexpr double kNamesEnd = 32768;  // the axis goes on behind the roofs, where their names are
constexpr double kGainsFrom = 1.05;  // a ratio below it is called no gain
constexpr float kNamePitch = 16;     // px between the names of the roofs

Style thin(Role role, Dash dash) { return {.color = {role}, .width = 1, .dash = dash, .in_legend = false}; }
Style words_in(Role role) { return {.color = {role, Tone::ink}, .in_legend = false}; }

std::string times(double factor) { return screen_number(factor, factor < 9.95 ? 2 : 3) + "\u00d7"; }

std::string notebook_words(const Outcome& o) {
    const double left = o.roofs.ridge_bf16() / o.notebook.ai_bf16, ratio = o.notebook.ratio().value;
    if (std::isnan(left) || std::isnan(ratio)) return "";
    return fmt::format("Batch {} is {} left of the ridge and {}", kNotebook.m, times(left),
                       ratio < kGainsFrom ? "gains nothing" : "gains " + factor_text(ratio));
}

std::string roofline_title(const Outcome& o) {
    if (const std::string missing = missing_words(o); !missing.empty()) return missing;
    if (const std::string refused = refusal_words(o); !refused.empty()) return refused;
    const Product& fprop = o.products.front();
    const double left = o.roofs.ridge_bf16() / fprop.ai_bf16;
    if (left > 1)
        return fmt::format("M = {} is {} left of the ridge: memory and launches set its speed", fprop.layer.m,
                           times(left));
    const std::string own =
        fmt::format("atch {} runs {} as fast", fprop.layer.m, factor_text(fprop.ratio().value));
    const std::string notebook = notebook_words(o);
    return notebook.empty() ? "B" + own : notebook + "; b" + own;
}

// A name at the right end of a roof. All stand in one column beside the roofs' ends, in the roofs' order.
struct RoofName {
    double tflops;
    std::string text;
    Role role;
};

void add_roof_names(Figure& figure, std::vector<RoofName> names) {
    if (names.empty()) return;
    std::ranges::sort(names, std::greater{}, &RoofName::tflops);
    double middle = 0;
    for (const RoofName& name : names) middle += std::log2(name.tflops) / static_cast<double>(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        const float from_middle = static_cast<float>(i) - static_cast<float>(names.size() - 1) / 2;
        figure.add("",
                   TextMark{.x = kRoofsEnd,
                            .y = std::exp2(middle),
                            .text = names[i].text,
                            .dx = 10,
                            .dy = kNamePitch * from_middle},
                   words_in(names[i].role));
    }
}

// `share` of its way up: the words are beside the line there, on the side that `anchor` names.
void add_memory_roof(Figure& figure, double least, double tb_s, double peak, Style style,
                     const std::string& source, double share, Anchor anchor) {
    if (!(tb_s > 0 && peak > 0)) return;
    figure.line(source + "##memory", data({least, peak / tb_s}), data({tb_s * least, peak}),
                std::move(style));
    const double at = least * std::pow(peak / tb_s / least, share);
    const bool left = anchor == Anchor::right;
    figure.add("",
               TextMark{.x = at,
                        .y = tb_s * at,
                        .text = fmt::format("memory {} TB/s, {}", screen_number(tb_s, 2), source),
                        .anchor = anchor,
                        .dx = left ? -14.0F : 14.0F,
                        .dy = left ? -6.0F : 6.0F},
               words_in(Role::muted));
}

void add_ridge(Figure& figure, double at, double roof, Role role, const std::string& words, Anchor anchor) {
    const double low = figure.y.range->lo;
    if (!(at > 0 && at < kRoofsEnd)) return;
    figure.line("ridge##" + words, data({at, at}), data({low, roof}), thin(role, Dash::dot));
    figure.add("",
               TextMark{.x = at,
                        .y = low,
                        .text = words,
                        .anchor = anchor,
                        .dx = anchor == Anchor::right ? -6.0F : 6.0F,
                        .dy = -11},
               words_in(role));
}

void add_roofs(Figure& figure, const Outcome& o, double least) {
    std::vector<RoofName> names;
    const auto compute = [&](double tflops, double ridge, Style style, const std::string& source) {
        const double from = ridge > 0 && ridge < kRoofsEnd ? ridge : least;
        figure.line(source + "##roof", data({from, kRoofsEnd}), data({tflops, tflops}), std::move(style));
    };
    const Roofs& r = o.roofs;
    const double memory = r.memory > 0 ? r.memory : o.sheet ? o.sheet->memory : kNan;
    if (o.sheet)
        for (const double peak : {o.sheet->bf16, o.sheet->fp8}) {
            compute(peak, peak / memory, thin(Role::muted, Dash::dot), "datasheet");
            names.push_back({peak, fmt::format("{:.0f} datasheet", peak), Role::muted});
        }
    const double top = r.fp8 > 0 ? r.fp8 : r.bf16 > 0 ? r.bf16 : o.sheet ? o.sheet->fp8 : kNan;
    const Roofs& over = o.over_roofs;
    const bool below = over.memory > memory;  // the upper one has its words on the left
    add_memory_roof(figure, least, over.memory, over.fp8 > 0 ? over.fp8 : over.bf16,
                    thin(Role::muted, Dash::long_dash), o.over_gpu, below ? 0.65 : 0.4,
                    below ? Anchor::right : Anchor::left);
    add_memory_roof(figure, least, memory, top, {.color = {Role::text}, .width = 2, .in_legend = false},
                    r.memory > 0 ? "measured" : "datasheet", below ? 0.4 : 0.65,
                    below ? Anchor::left : Anchor::right);
    // The other recording's roof shares a line of words with this one's.
    const auto measured = [&](double tflops, double at, double others, Role role, Style style) {
        if (tflops > 0) compute(tflops, at, std::move(style), "measured");
        if (others > 0) compute(others, others / over.memory, thin(Role::muted, Dash::long_dash), o.over_gpu);
        const std::string other = others > 0 ? fmt::format("{} {:.0f}", o.over_gpu, others) : "";
        if (tflops > 0)
            names.push_back({tflops,
                             fmt::format("{:.0f} {}", tflops, other.empty() ? "measured" : "(" + other + ")"),
                             role});
        else if (others > 0)
            names.push_back({others, other, Role::muted});
    };
    measured(r.fp8, r.ridge_fp8(), over.fp8, Role::e4m3,
             {.color = {Role::e4m3}, .width = 3, .in_legend = false});
    measured(r.bf16, r.ridge_bf16(), over.bf16, Role::bf16,
             {.color = {Role::bf16}, .width = 2, .dash = Dash::dash, .in_legend = false});
    add_ridge(figure, r.ridge_bf16(), r.bf16, Role::bf16, screen_number(std::round(r.ridge_bf16())),
              Anchor::right);
    add_ridge(figure, r.ridge_fp8(), r.fp8, Role::e4m3, screen_number(std::round(r.ridge_fp8())) + " ridges",
              Anchor::left);
    add_roof_names(figure, std::move(names));
}

// A BF16 disc, an FP8 diamond and the line between them.
void add_pair(Figure& figure, const Product& product, const std::string& id, bool numbers) {
    const double x0 = product.ai_bf16, x1 = product.ai_fp8;
    const double y0 = product.tflops(false), y1 = product.tflops(true);
    if (product.ran(false) && product.ran(true))
        figure.line("pair##" + id, data({x0, x1}), data({y0, y1}), thin(Role::muted, Dash::solid));
    if (product.ran(false))
        figure.scatter("BF16##" + id, data({x0}), data({y0}),
                       {.color = {Role::bf16, Tone::fill},
                        .marker = Marker::disc,
                        .marker_size = 5.5F,
                        .in_legend = id == "fprop"});
    if (product.ran(true))
        figure.scatter("FP8##" + id, data({x1}), data({y1}),
                       {.color = {Role::e4m3, Tone::fill},
                        .marker = Marker::diamond,
                        .marker_size = 6.5F,
                        .in_legend = id == "fprop"});
    if (product.status() != 0) {  // it has no speed: on the axis, hollow
        const double low = figure.y.range->lo;
        figure.scatter("refused##" + id, data({x1}), data({low}),
                       {.color = {Role::e4m3, Tone::fill},
                        .marker = Marker::diamond,
                        .marker_size = 6.5F,
                        .in_legend = false});
        figure.scatter(
            "hole##" + id, data({x1}), data({low}),
            {.color = {Role::surface}, .marker = Marker::diamond, .marker_size = 4, .in_legend = false});
    }
    if (!numbers) return;
    if (product.ran(false))
        figure.add(
            "",
            TextMark{.x = x0, .y = y0, .text = fmt::format("{:.0f}", y0), .anchor = Anchor::right, .dx = -9},
            words_in(Role::bf16));
    if (product.ran(true))
        figure.add("", TextMark{.x = x1, .y = y1, .text = fmt::format("{:.0f}", y1), .dx = 11},
                   words_in(Role::e4m3));
}

// The next token of one sequence: every weight is read for it, and multiplied once.
void add_token(Figure& figure, const Outcome& o) {
    if (!o.token_bf16 || !o.token_fp8) return;
    const double x0 = intensity_of(*o.token_bf16), x1 = intensity_of(*o.token_fp8),
                 y0 = tflops_of(*o.token_bf16), y1 = tflops_of(*o.token_fp8);
    figure.line("pair##token", data({x0, x1}), data({y0, y1}), thin(Role::muted, Dash::solid));
    figure.scatter(
        "BF16##token", data({x0}), data({y0}),
        {.color = {Role::bf16, Tone::fill}, .marker = Marker::disc, .marker_size = 5.5F, .in_legend = false});
    figure.scatter("FP8##token", data({x1}), data({y1}),
                   {.color = {Role::e4m3, Tone::fill},
                    .marker = Marker::diamond,
                    .marker_size = 6.5F,
                    .in_legend = false});
    figure.add("",
               TextMark{.x = x1,
                        .y = y1,
                        .text = fmt::format("the next token, batch 1\n{:.1f} and {:.1f} TFLOP/s", y0, y1),
                        .dx = 14,
                        .dy = 10},
               words_in(Role::text));
}

// The words under a pair: "4096 -> 16384, batch 8192", and what its speed is made of.
void add_name(Figure& figure, const Product& product, const std::string& second) {
    if (!product.ran(false)) return;
    const double low =
        product.ran(true) ? std::min(product.tflops(false), product.tflops(true)) : product.tflops(false);
    const double x = product.ran(true) ? std::sqrt(product.ai_bf16 * product.ai_fp8) : product.ai_bf16;
    std::string text = fmt::format("{}, batch {}", layer_text(product.layer), product.layer.m);
    if (!second.empty()) text += "\n" + second;
    figure.add("", TextMark{.x = x, .y = low, .text = std::move(text), .anchor = Anchor::center, .dy = 20},
               words_in(Role::text));
}

std::string launch_words(const Product& product) {
    const double ms = product.ms(false);
    return ms < kLaunchMs ? fmt::format("{} \u00b5s, mostly launch", screen_number(1000 * ms, 2)) : "";
}

std::string speed_words(const Product& product) {
    if (!product.ran(false)) return "";
    const std::string bf16 = fmt::format("{}: {:.0f}", product.name, product.tflops(false));
    return product.ran(true) ? fmt::format("{} and {:.0f} TFLOP/s", bf16, product.tflops(true))
                             : bf16 + " TFLOP/s";
}

// Two points whose words would lie over each other.
bool near(const Product& a, const Product& b) {
    if (!a.ran(false) || !b.ran(false)) return false;
    return std::abs(std::log2(a.ai_bf16 / b.ai_bf16)) < 3 &&
           std::abs(std::log2(a.tflops(false) / b.tflops(false))) < 3;
}

// What the axes have to hold.
struct Extent {
    double least = kLeastAi, low = kLeastTflops, high = kMostTflops;
};
Extent extent_of(const Outcome& o, const std::vector<const Product*>& shown) {
    Extent out;
    for (const Product* product : shown)
        for (const bool fp8 : {false, true}) {
            if (product->ran(fp8)) {
                out.low = std::min(out.low, 0.7 * product->tflops(fp8));
                out.high = std::max(out.high, 1.2 * product->tflops(fp8));
            }
            out.least = std::min(out.least, 0.7 * product->ai(fp8));
        }
    for (const RecordedInfer* token : {o.token_bf16, o.token_fp8})
        if (token)
            out.least = std::min(out.least, 0.7 * intensity_of(*token)),
            out.low = std::min(out.low, 0.4 * tflops_of(*token));
    for (const double roof : {o.roofs.fp8, o.over_roofs.fp8, o.sheet ? o.sheet->fp8 : 0})
        if (roof > 0) out.high = std::max(out.high, 1.15 * roof);
    return out;
}

}  // namespace

std::string refusal_words(const Outcome& o) {
    const int refused = o.refused();
    if (refused == 0) return "";
    const Params& p = o.params;
    std::string sizes, wide;
    const auto add = [&](const char* name, int value, int offset) {
        if (offset == 0) return;
        sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", name, value + offset);
        wide += fmt::format("{}{}", wide.empty() ? "" : ", ", padded(value + offset));
    };
    add("M", p.m, p.m_off), add("N", p.n, p.n_off), add("K", p.k, p.k_off);
    if (sizes.empty()) {
        const GridPoint& first = *std::ranges::find_if(o.products, &Product::status)->fp8;
        return fmt::format("cuBLASLt refuses {} of 3 FP8 products: {}", refused, first.words);
    }
    const std::string head = fmt::format("{}: cuBLASLt refuses {} of 3 FP8 products", sizes, refused);
    if (p.pad) return head;
    return fmt::format("{}; padding to {} wastes {} %", head, wide, screen_number(o.waste_pct(), 2));
}

std::string missing_words(const Outcome& o) {
    if (o.any_time()) return "";
    const Params& p = o.params;
    if (o.gpu.empty() && p.source == kLive) return "Nothing was measured here yet: press Measure here";
    if (o.gpu.empty()) return "No times here: nothing was recorded and there is no GPU";
    if (!o.recorded) return "This layer was not measured yet: press Measure here";
    if (o.all_layers.empty()) return fmt::format("The recording of the {} has no times of layers", o.gpu);
    if (p.groups > 1)
        return fmt::format("{} groups of M = {} were not recorded for this layer", p.groups, p.m);
    if (p.data == "zeros") return "Zeros were recorded for M = N = K = 8192 only";
    if (p.off()) return "Sizes one off were recorded for M = N = K = 4096 only";
    if (o.all_m.empty()) {
        std::string all;
        for (const auto& [n, k] : o.all_layers)
            all += fmt::format("{}{} \u2192 {}", all.empty() ? "" : ", ", k, n);
        return fmt::format("A layer {} was not recorded; recorded: {}", layer_text({p.m, p.n, p.k}), all);
    }
    if (std::ranges::find(o.all_m, p.m) != o.all_m.end())
        return fmt::format("Recipe {} with fast accumulation {} was not recorded", p.recipe, p.fast_accum);
    const auto above = std::ranges::upper_bound(o.all_m, p.m);
    std::string neighbours;
    if (above != o.all_m.begin()) neighbours = std::to_string(*std::prev(above));
    if (above != o.all_m.end()) neighbours += (neighbours.empty() ? "" : " and ") + std::to_string(*above);
    return fmt::format("M = {} was not recorded; its neighbours are {}", p.m, neighbours);
}

std::string decision_words(const Outcome& o) {
    const double from = o.sweep.crossover_m;
    const std::string layer = fmt::format("a layer of {} x {}", o.params.n, o.params.k);
    if (std::isnan(from)) return fmt::format("FP8 does not pay here in {}: keep BF16.", layer);
    const std::string step =
        o.step.found ? fmt::format("; the step gains {}", factor_text(o.step.speedup)) : "";
    return fmt::format("FP8 pays here from {:.0f} rows in {}{}; below that keep BF16.", from, layer, step);
}

Figure roofline_figure(const Outcome& o) {
    Figure figure{.id = "roofline", .title = roofline_title(o)};
    std::vector<const Product*> shown;
    if (!(o.products.front().layer == kNotebook)) shown.push_back(&o.notebook);
    if (!(o.products.front().layer == kMiddle)) shown.push_back(&o.middle);
    for (const Product& product : o.products) shown.push_back(&product);
    const auto [least, low, high] = extent_of(o, shown);
    figure.x = {.label = "FLOP per byte", .scale = Scale::log2, .range = Range{least, kNamesEnd}};
    figure.y = {.label = "TFLOP/s", .scale = Scale::log2, .range = Range{low, high}};
    add_roofs(figure, o, least);
    const Product& fprop = o.products.front();
    const bool apart = !near(o.middle, fprop) && !(fprop.layer == kMiddle);
    const bool notebook = !near(o.notebook, fprop) && !(fprop.layer == kNotebook);
    if (!(fprop.layer == kMiddle)) {
        add_pair(figure, o.middle, "middle", apart);
        if (apart) add_name(figure, o.middle, "");
    }
    if (!(fprop.layer == kNotebook)) {
        add_pair(figure, o.notebook, "notebook", notebook);
        if (notebook) add_name(figure, o.notebook, launch_words(o.notebook));
    }
    add_token(figure, o);
    for (const Product& product : o.products) add_pair(figure, product, product.name, false);
    add_name(figure, fprop, launch_words(fprop).empty() ? speed_words(fprop) : launch_words(fprop));
    if (o.refused() > 0) {
        const Product& refused =
            *std::ranges::find_if(o.products, [](const Product& p) { return p.status() != 0; });
        figure.add("",
                   TextMark{.x = refused.ai_fp8,
                            .y = low,
                            .text = fmt::format("refused ({})", refused.status()),
                            .dx = 24,
                            .dy = -12},
                   words_in(Role::sat));
        figure.scatter("refusal##mark", data({refused.ai_fp8 * 1.12}), data({low * 1.18}),
                       {.color = {Role::sat, Tone::fill},
                        .marker = Marker::triangle_up,
                        .marker_size = 5,
                        .in_legend = false});
    }
    const double ridge = o.roofs.ridge_bf16();
    if (o.notebook.ran(false) && ridge > o.notebook.ai_bf16)
        figure.add("",
                   Bracket{o.notebook.ai_bf16, ridge, o.notebook.tflops(false) * 2.4,
                           times(ridge / o.notebook.ai_bf16)},
                   words_in(Role::text));
    return figure;
}

// The two roofs and three pairs of points, no text.
Figure thumbnail_figure(const Outcome& o) {
    Figure figure = roofline_figure(o);
    std::erase_if(figure.series, [](const Series& series) {
        return std::holds_alternative<TextMark>(series.shape) ||
               std::holds_alternative<Bracket>(series.shape);
    });
    figure.title.clear();
    figure.x.range->hi = kRoofsEnd;
    return figure;
}

}  // namespace fp8lab::speed
