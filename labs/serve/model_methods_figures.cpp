// The figures of the part "methods", and its sentences.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "labs/serve/model.h"

namespace fp8lab::serve {
namespace {

constexpr float kMark = 5;

Marker marker_of(const LowFormat& scheme) {
    if (scheme.role == Role::block) return Marker::diamond;
    return scheme.role == Role::truth ? Marker::square : Marker::disc;
}

bool has_four_bits(const Stem& stem) { return stem.scheme->id != "nf4" ? stem.bits < 5 : true; }

// The least and the largest of what is known.
struct Span {
    double lo = std::numeric_limits<double>::infinity(), hi = 0;
    void add(double value) {
        if (value > 0) lo = std::min(lo, value), hi = std::max(hi, value);
    }
    bool known() const { return hi > 0; }
};

Range decades(const Stems& stems) {
    Span all;
    for (const Stem& stem : stems.stems)
        for (const double value : stem.divergence) all.add(value);
    if (!all.known()) return {1e-5, 1e-1};
    // Room for the values of the chosen scheme.
    constexpr double kRoom = 0.13;
    const double room = std::max(2.0, std::pow(all.hi / all.lo, kRoom));
    return {all.lo / room, all.hi * room};
}

Marker outline_of(Marker marker) {
    return marker == Marker::diamond  ? Marker::diamond_ring
           : marker == Marker::square ? Marker::square_ring
                                      : Marker::ring;
}

void add_marks(Figure& figure, const Stem& stem, double x) {
    const Color color{stem.scheme->role};
    const Marker marker = marker_of(*stem.scheme);
    const auto mark = [&](double y, Marker shape, float size) {
        if (y > 0)
            figure.scatter(fmt::format("##{}", stem.scheme->id), data({x}), data({y}),
                           {.color = color, .marker = shape, .marker_size = size, .in_legend = false});
    };
    Span stemmed;
    for (const double value : stem.divergence) stemmed.add(value);
    if (stemmed.known())
        figure.line(fmt::format("##stem.{}", stem.scheme->id), data({x, x}), data({stemmed.lo, stemmed.hi}),
                    {.color = color, .width = 1.5F, .in_legend = false});
    mark(stem.of(Method::rotate_gptq), Marker::bar, kMark);
    mark(stem.of(Method::awq), marker, 3);
    mark(stem.of(Method::gptq), marker, kMark);
    mark(stem.of(Method::nearest), outline_of(marker), kMark);
}

// The marks' meanings, once, in text colour and the shape of the chosen scheme.
void add_legend(Figure& figure, Marker shape) {
    const auto entry = [&](const char* name, Marker marker, float size) {
        figure.scatter(name, data({}), data({}),
                       {.color = {Role::text}, .marker = marker, .marker_size = size});
    };
    entry("to nearest", outline_of(shape), kMark);
    entry("AWQ", shape, 3);
    entry("GPTQ", shape, kMark);
    entry("rotation + GPTQ", Marker::bar, kMark);
}

// Both values, above and below the stem of the chosen scheme, and their ratio.
void add_chosen(Figure& figure, const Chosen& chosen, double x) {
    const auto words = [&](double y, std::string text, Anchor anchor, bool strong, float dx, float dy) {
        figure.add("",
                   TextMark{.x = x,
                            .y = y,
                            .text = std::move(text),
                            .anchor = anchor,
                            .strong = strong,
                            .dx = dx,
                            .dy = dy},
                   {.color = {Role::text}, .in_legend = false});
    };
    constexpr float kAway = 17;
    const double from = chosen.nearest.divergence, to = chosen.score.divergence;
    const bool both = !chosen.to_nearest() && to > 0 && from > 0;
    if (from > 0)
        words(from, divergence_text(from), Anchor::center, false, 0, both && to > from ? kAway : -kAway);
    if (!both) return;
    words(to, divergence_text(to), Anchor::center, false, 0, to > from ? -kAway : kAway);
    words(std::sqrt(from * to), times_text(std::max(from / to, to / from)) + "×", Anchor::right, true, -9, 0);
}

std::string count_words(int count) {
    constexpr std::array kWords = {"No",  "One",   "Two",   "Three", "Four", "Five",
                                   "Six", "Seven", "Eight", "Nine",  "Ten"};
    return count < static_cast<int>(kWords.size()) ? kWords.at(static_cast<std::size_t>(count))
                                                   : std::to_string(count);
}

// "INT4 g32" in two lines, its bits in the next.
std::string name_words(const Stem& stem) {
    std::string out = label_of(stem.scheme->id);
    const std::size_t space = out.find(' ');
    out = space == out.npos ? out + "\n " : out.substr(0, space) + "\n" + out.substr(space + 1);
    return fmt::format("{}\n{:.2f}", out, stem.bits);
}

}  // namespace

std::string method_label(std::string_view method) {
    return std::string(std::ranges::find(methods(), method, &MethodInfo::name)->label);
}

std::string divergence_name(bool classifies, bool of_axis) {
    if (classifies) return of_axis ? "divergence from FP32, nats" : "divergence, nats";
    return of_axis ? "squared error over FP32’s squares" : "relative squared error";
}

std::string divergence_text(double value) {
    if (!std::isfinite(value)) return "–";
    if (value == 0) return "0";
    return value >= 9.995e-3   ? fmt::format("{:.4f}", value)
           : value >= 9.995e-4 ? fmt::format("{:.5f}", value)
                               : screen_number(value, 3);
}

std::string times_text(double ratio) {
    if (!std::isfinite(ratio)) return "–";
    return ratio < 9.95 ? fmt::format("{:.1f}", ratio) : group_thousands(std::llround(ratio));
}

std::string label_of(std::string_view scheme) {
    const LowFormat& format = find_low_format(scheme, "scheme");
    if (scheme == "int4-g32" || scheme == "int4-g128" || scheme == "nf4" || scheme == "e2m1") {
        const std::string_view group = scheme.starts_with("int4") ? scheme.substr(5) : "";
        return scheme == "nf4" ? "NF4" : scheme == "e2m1" ? "E2M1" : "INT4 " + std::string(group);
    }
    return std::string(format.label);
}

Stems usual_stems() {
    struct Usual {
        const char* scheme;
        std::array<double, kStemMethods.size()> divergence;
    };
    constexpr std::array<Usual, kStems.size()> kUsual = {
        {{"e2m1", {0.0202, 0.0117, 0.0039, 0.00299}},
         {"int4-g128", {0.0263, 0.00797, 0.00389, 0.00195}},
         {"mxfp4", {0.0272, 0.0214, 0.00203, 0.00183}},
         {"int4-g32", {0.0106, 0.00395, 0.00119, 0.00219}},
         {"nvfp4", {0.0173, 0.00678, 0.00144, 0.00141}},
         {"nf4", {0.0273, 0.00596, 0.00184, 0.00217}},
         {"e4m3", {6.07e-4, 3.78e-4, 8.29e-5, 1.22e-4}},
         {"e4m3-row", {0.00133, 5.91e-4, 1.31e-4, 1.41e-4}}}};
    Stems out;
    for (const Usual& one : kUsual)
        out.stems.push_back({.scheme = &find_low_format(one.scheme, "scheme"), .divergence = one.divergence});
    return out;
}

std::string methods_title(const Stems& stems) {
    Span nearest, gains;
    int count = 0;
    for (const Stem& stem : stems.stems) {
        const double from = stem.of(Method::nearest), to = stem.of(Method::gptq);
        if (!has_four_bits(stem) || !(from > 0)) continue;
        ++count, nearest.add(from);
        if (to > 0) gains.add(from / to);
    }
    if (!nearest.known()) return "";
    std::string title = fmt::format("{} 4-bit schemes differ by a factor of {}", count_words(count),
                                    times_text(nearest.hi / nearest.lo));
    if (gains.known() && gains.lo < 1)
        title += fmt::format("; GPTQ brings them from {} times further to {} times closer",
                             times_text(1 / gains.lo), times_text(gains.hi));
    else if (gains.known())
        title +=
            fmt::format("; GPTQ moves each of them by {} to {}", times_text(gains.lo), times_text(gains.hi));
    return title;
}

std::string layers_title(const Chosen& c) {
    if (c.layers.empty()) return "";
    if (c.to_nearest())
        return fmt::format("To nearest, the weights are {:.0f} % off and the outputs {:.0f} %",
                           100 * c.mean(&LayerErrors::w_nearest), 100 * c.mean(&LayerErrors::out_nearest));
    const auto all = [&](auto test) { return std::ranges::all_of(c.layers, test); };
    const bool w_up = all([](const LayerErrors&l) { return l.w > l.w_nearest; }),
               w_down = all([](const LayerErrors&l) { return l.w < l.w_nearest; }),
               out_up = all([](const LayerErrors&l) { return l.out > l.out_nearest; }),
               out_down = all([](const LayerErrors&l) { return l.out < l.out_nearest; });
    const std::string name = method_label(c.spec.method);
    if (w_up && out_down)
        return fmt::format("{} raises the error of every weight matrix and lowers the error of every output",
                           name);
    if (w_down && out_down) return name + " lowers the error of every weight matrix and of every output";
    if (w_up && out_up) return name + " raises the error of every weight matrix and of every output";
    const auto count = [&](auto test) { return std::ranges::count_if(c.layers, test); };
    return fmt::format("{} lowers the error of {} of {} weight matrices, and of {} of the outputs", name,
                       count([](const LayerErrors& l) { return l.w < l.w_nearest; }), c.layers.size(),
                       count([](const LayerErrors& l) { return l.out < l.out_nearest; }));
}

std::string gains_title(const Gains& gains) {
    if (gains.rows.size() < 2) return "";
    const double weights = gains.rows[0].factor(), both = gains.rows[1].factor();
    const std::string name = label_of(gains.spec.scheme);
    if (!(weights > 0) || !(both > 0)) return name + " inputs, beside weights alone";
    if (both < 1 && weights > 1)
        return fmt::format("With {} inputs GPTQ ends {} times further, with weights alone {} times closer",
                           name, times_text(1 / both), times_text(weights));
    if (both < 0.75 * weights)
        return fmt::format("With {} inputs GPTQ’s gain falls from {} to {}: it repairs weights, not inputs",
                           name, times_text(weights), times_text(both));
    return fmt::format("With {} inputs GPTQ gains {}, with weights alone {}", name, times_text(both),
                       times_text(weights));
}

std::string amax_title(const AmaxSweep& sweep) {
    if (sweep.factors.empty()) return "";
    const auto at = [&](double f) {
        const auto place = std::ranges::find(sweep.factors, f);
        return place == sweep.factors.end()
                   ? std::nan("")
                   : sweep.nvfp4[static_cast<std::size_t>(place - sweep.factors.begin())];
    };
    const double wide = at(4096) / at(1);
    if (std::isnan(wide)) return "";
    constexpr double kNothing = 0.05;
    return fmt::format("An amax half as large makes NVFP4 {} times worse, one 4 096 times as large {}",
                       times_text(at(0.5) / at(1)),
                       std::fabs(wide - 1) < kNothing ? "changes nothing" : times_text(wide) + " times");
}

Figure methods_figure(const Stems& stems, const Chosen& chosen) {
    Figure figure{
        .id = "methods",
        .title = methods_title(stems),
        .x = {.label = "bits per weight, scales included"},
        .y = {.label = divergence_name(chosen.layers.empty() ? stems.classifies : chosen.classifies, true),
              .scale = Scale::log10,
              .range = decades(stems)}};
    if (stems.stems.empty()) return figure;
    figure.x.range = Range{0.5, static_cast<double>(stems.stems.size()) + 0.5};
    const auto here =
        std::ranges::find(stems.stems, chosen.spec.scheme, [](const Stem& s) { return s.scheme->id; });
    const double at = static_cast<double>(here - stems.stems.begin()) + 1;
    const bool known = here != stems.stems.end() && !chosen.layers.empty();
    if (known)
        figure.xspan("##chosen", at - 0.46, at + 0.46,
                     {.color = {Role::field, Tone::fill}, .in_legend = false});
    for (std::size_t i = 0; i < stems.stems.size(); ++i)
        add_marks(figure, stems.stems[i], static_cast<double>(i) + 1);
    if (known) add_chosen(figure, chosen, at);
    const Method method = find_method(chosen.spec.method, "method");
    if (known && std::ranges::find(kStemMethods, method) == kStemMethods.end() && chosen.score.divergence > 0)
        figure.scatter(method_label(chosen.spec.method) + "##own", data({at}),
                       data({chosen.score.divergence}),
                       {.color = {Role::text}, .marker = Marker::triangle_up, .marker_size = kMark});
    add_legend(figure, marker_of(chosen.scheme()));
    for (std::size_t i = 0; i < stems.stems.size(); ++i) {
        const Stem& stem = stems.stems[i];
        figure.x.names.push_back({.at = static_cast<double>(i) + 1,
                                  .words = name_words(stem),
                                  .color = {stem.scheme->role, Tone::ink},
                                  .strong = stem.scheme->id == chosen.spec.scheme});
    }
    figure.words = {figure.title + "."};
    for (const Stem& stem : stems.stems)
        figure.words.push_back(
            fmt::format("{}, {:.2f} bits: to nearest {}, AWQ {}, GPTQ {}, rotation and GPTQ {}.",
                        label_of(stem.scheme->id), stem.bits, divergence_text(stem.of(Method::nearest)),
                        divergence_text(stem.of(Method::awq)), divergence_text(stem.of(Method::gptq)),
                        divergence_text(stem.of(Method::rotate_gptq))));
    return figure;
}

Figure layers_figure(const Chosen& c) {
    Figure figure{
        .id = "layers", .title = layers_title(c), .x = {.label = "layer"}, .y = {.label = "relative L2 %"}};
    if (c.layers.empty()) return figure;
    std::vector<double> x;
    for (std::size_t l = 0; l < c.layers.size(); ++l) x.push_back(static_cast<double>(l) + 1);
    const auto add = [&](const char* name, double LayerErrors::*error, Style style) {
        std::vector<double> y;
        for (const LayerErrors& layer : c.layers) y.push_back(100 * (layer.*error));
        figure.line(name, data(x), data(std::move(y)), style);
    };
    const Role role = c.scheme().role;
    add("W, to nearest", &LayerErrors::w_nearest,
        {.color = {role}, .dash = Dash::dash, .marker = Marker::ring});
    add("X W, to nearest", &LayerErrors::out_nearest,
        {.color = {Role::axis}, .dash = Dash::dash, .marker = Marker::ring});
    if (c.to_nearest()) return figure;
    add("W", &LayerErrors::w, {.color = {role}, .marker = Marker::disc});
    add("X W", &LayerErrors::out, {.color = {Role::axis}, .marker = Marker::disc});
    return figure;
}

Figure amax_figure(const AmaxSweep& sweep, double factor, const Chosen& chosen) {
    Figure figure{.id = "amax",
                  .title = amax_title(sweep),
                  .x = {.label = "tensor amax ×", .scale = Scale::log2, .range = Range{0x1p-6, 0x1p16}},
                  .y = {.label = divergence_name(sweep.classifies, true), .scale = Scale::log10}};
    if (sweep.factors.empty()) return figure;
    const std::string& scheme = chosen.spec.scheme;
    const auto width = [&](const char* id) { return scheme == id ? 3.0F : 2.0F; };
    figure.line("NVFP4", data(sweep.factors), data(sweep.nvfp4),
                {.color = {Role::block}, .width = width("nvfp4")});
    figure.line("E4M3", data(sweep.factors), data(sweep.e4m3),
                {.color = {Role::e4m3}, .width = width("e4m3")});
    figure.vline("", factor, kHairline);
    if (chosen.layers.empty() || chosen.spec.amax != factor) return figure;
    figure.scatter(label_of(scheme) + ", now", data({factor}), data({chosen.score.divergence}),
                   {.color = {chosen.scheme().role}, .marker = marker_of(chosen.scheme()), .marker_size = 6});
    return figure;
}

}  // namespace fp8lab::serve
