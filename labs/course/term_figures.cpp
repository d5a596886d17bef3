#include "labs/course/term_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/base/units.h"
#include "core/formats/codec.h"
#include "core/scaling/delayed.h"

namespace fp8lab {
namespace {

using Doubles = std::vector<double>;

constexpr Style kE4m3 = {.color = {Role::e4m3}};
constexpr Style kTruth = {.color = {Role::truth}, .width = 1, .dash = Dash::dot};

Style of(Role role, float width = 2) { return {.color = {role}, .width = width}; }

const FormatInfo& e4m3() { return find_format("e4m3"); }
const FormatInfo& e5m2() { return find_format("e5m2"); }

Doubles values_between(const FormatInfo& format, double lo, double hi) {
    Doubles out;
    for (const CodeValue& code : positive_values(format))
        if (code.value >= lo && code.value <= hi) out.push_back(code.value);
    return out;
}

double rounded(const FormatInfo& format, double x) {
    return static_cast<double>(decode(format, encode(format, static_cast<float>(x))));
}

// The cast over lo..hi, as stairs beside the straight line that they follow.
Figure stairs(std::string title, const FormatInfo& format, double lo, double hi) {
    constexpr int kPoints = 1200;  // finer than a pixel of the largest glossary
    Figure figure{.title = std::move(title), .x = {.label = "x"}, .y = {.label = "cast"}};
    Doubles xs, ys;
    for (int i = 0; i <= kPoints; ++i) {
        xs.push_back(lo + (hi - lo) * i / kPoints);
        ys.push_back(rounded(format, xs.back()));
    }
    figure.line("x itself", data({lo, hi}), data({lo, hi}), kTruth);
    figure.line(std::string(format.label), data(std::move(xs)), data(std::move(ys)), kE4m3);
    return figure;
}

Figure ruler(std::string title, const FormatInfo& format, double lo, double hi) {
    Figure figure{.title = std::move(title), .x = {.label = "x", .range = Range{lo, hi}}};
    figure.y = {.range = Range{0, 1.6}, .visible = false};
    Doubles marks = values_between(format, lo, hi);
    const Doubles ones(marks.size(), 1.0);
    figure.stems(std::string(format.label), data(std::move(marks)), data(ones), kE4m3);
    return figure;
}

Figure binade() {
    Figure figure = ruler("Eight values in every power of two", e4m3(), 1, 16);
    for (double lo = 1; lo < 16; lo *= 2) {
        const auto count = values_between(e4m3(), lo, 2 * lo).size() - 1;
        figure.add("", Bracket{lo, 2 * lo, 1.15, lo < 4 ? "" : std::to_string(count)}, {.in_legend = false});
    }
    return figure;
}

Figure subnormal() {
    const double end = min_normal(e4m3());
    Figure figure = ruler("Below the smallest normal value the steps stay equal", e4m3(), 0, 2.5 * end);
    figure.xspan("subnormal", 0, end, {.color = {Role::e4m3}});
    return figure;
}

Figure ulp() {
    Figure figure{.title = "The step doubles from binade to binade",
                  .x = {.label = "x", .scale = Scale::log2},
                  .y = {.label = "step", .scale = Scale::log2}};
    for (const FormatInfo* format : {&e4m3(), &e5m2()}) {
        const Doubles marks = values_between(*format, min_subnormal(*format), 448);
        Doubles xs, gaps;
        for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
            xs.push_back(marks[i]);
            gaps.push_back(marks[i + 1] - marks[i]);
        }
        Style style = of(format == &e4m3() ? Role::e4m3 : Role::e5m2);
        style.step = true;
        figure.line(std::string(format->label), data(std::move(xs)), data(std::move(gaps)), style);
    }
    return figure;
}

Figure saturation() {
    Figure figure = stairs("Above 448 every value becomes 448", e4m3(), 300, 560);
    figure.vline(format_number(overflow_threshold(e4m3()).value), overflow_threshold(e4m3()).value);
    return figure;
}

Figure underflow() {
    const double edge = min_subnormal(e4m3()) / 2;
    Figure figure = stairs("Half of the smallest value, and all below it, becomes 0", e4m3(), 0, 7 * edge);
    figure.vline(power_of_two(std::ilogb(edge)), edge);
    return figure;
}

Figure stochastic_rounding() {
    Figure figure =
        stairs("Rounding to nearest makes steps; the mean of stochastic rounding does not", e4m3(), 1, 1.5);
    constexpr int kPoints = 20;
    constexpr std::uint32_t kDraws =
        256;  // all values of the top 8 of the random bits: the mean without chance
    Doubles xs, means;
    for (int i = 0; i <= kPoints; ++i) {
        const double x = 1 + 0.5 * i / kPoints;
        double sum = 0;
        for (std::uint32_t draw = 0; draw < kDraws; ++draw)
            sum +=
                static_cast<double>(decode(e4m3(), encode(e4m3(), static_cast<float>(x), Rounding::stochastic,
                                                          Overflow::saturate, draw << 24)));
        xs.push_back(x);
        means.push_back(sum / kDraws);
    }
    figure.scatter("stochastic, mean", data(std::move(xs)), data(std::move(means)),
                   {.color = {Role::truth}, .marker = Marker::ring});
    return figure;
}

// What each format spans, from its smallest subnormal to its largest value.
Figure ranges(std::string title, std::span<const std::pair<const char*, Role>> rows) {
    Figure figure{.title = std::move(title), .x = {.label = "x", .scale = Scale::log2}};
    figure.y = {.range = Range{0, static_cast<double>(rows.size())}, .visible = false};
    double y = static_cast<double>(rows.size());
    for (const auto& [name, role] : rows) {
        y -= 1;
        const FormatInfo& format = find_format(name);
        const double lo = min_subnormal(format), hi = max_finite(format);
        figure.line(std::string(format.label), data({lo, hi}), data({y + 0.3, y + 0.3}),
                    {.color = {role}, .width = 8, .in_legend = false});
        figure.text(
            lo, y + 0.62,
            fmt::format("{}  {} to {}", format.label, power_of_two(std::ilogb(lo)), format_number(hi, 5)),
            {.color = {role, Tone::ink}, .in_legend = false});
    }
    return figure;
}

Figure fp8_ranges() {
    constexpr std::array kRows = {std::pair{"e4m3", Role::e4m3}, std::pair{"e5m2", Role::e5m2}};
    return ranges("E5M2 reaches farther at both ends", kRows);
}

Figure narrow_ranges() {
    constexpr std::array kRows = {std::pair{"fp16", Role::truth}, std::pair{"e5m2", Role::e5m2},
                                  std::pair{"e4m3", Role::e4m3}, std::pair{"e2m1", Role::block}};
    return ranges("The fewer exponent bits, the shorter the range", kRows);
}

Figure fnuz_ranges() {
    constexpr std::array kRows = {std::pair{"e4m3", Role::e4m3}, std::pair{"e4m3fnuz", Role::truth}};
    return ranges("One more of bias: the whole range is halved", kRows);
}

Figure relative_error() {
    Figure figure{.title = "Flat where the value is normal, 1 where it becomes 0",
                  .x = {.label = "x", .scale = Scale::log2},
                  .y = {.label = "largest |x \u2212 q| / x", .scale = Scale::log2}};
    for (const FormatInfo* format : {&e4m3(), &e5m2()}) {
        Doubles xs, worst;
        constexpr int kSamples = 200;  // in a binade
        for (int k = -17; k <= 8; ++k) {
            double most = 0;
            for (int i = 0; i < kSamples; ++i) {
                const double x = std::min(std::ldexp(1 + (i + 0.5) / kSamples, k), 448.0);
                most = std::max(most, std::abs(x - rounded(*format, x)) / x);
            }
            xs.push_back(std::ldexp(1.0, k));
            worst.push_back(most);
        }
        Style style = of(format == &e4m3() ? Role::e4m3 : Role::e5m2);
        style.step = true;
        figure.line(std::string(format->label), data(std::move(xs)), data(std::move(worst)), style);
    }
    return figure;
}

Figure swamping() {
    Figure figure{.title = "Ones added in BF16: the sum stays at 256",
                  .x = {.label = "ones added"},
                  .y = {.label = "sum"}};
    const FormatInfo& bf16 = find_format("bf16");
    Doubles xs, sums;
    double sum = 0;
    constexpr int kTerms = 600;
    for (int i = 0; i <= kTerms; ++i) {
        xs.push_back(i);
        sums.push_back(sum);
        sum = rounded(bf16, sum + 1);
    }
    figure.line("true sum", data({0, kTerms}), data({0, kTerms}), kTruth);
    figure.line("BF16", data(std::move(xs)), data(std::move(sums)), of(Role::bf16, 3));
    return figure;
}

Figure code() {
    Figure figure{.title = "The value grows with the code, nearly by the same factor each time",
                  .x = {.label = "code"},
                  .y = {.label = "value", .scale = Scale::log2}};
    Doubles codes, values;
    for (const CodeValue& one : positive_values(e4m3())) {
        if (one.value <= 0) continue;
        codes.push_back(one.code);
        values.push_back(one.value);
    }
    figure.scatter("E4M3", data(std::move(codes)), data(std::move(values)),
                   {.color = {Role::e4m3}, .marker = Marker::disc, .marker_size = 2});
    return figure;
}

Figure e2m1() { return ruler("The seven positive values of E2M1", find_format("e2m1"), 0, 6.5); }

// The series of numerics.md 3.2: a jump from 3 to 100 and back.
Figure delayed_scaling() {
    const std::vector<float> amax = {2, 4, 3, 100, 2, 2, 2, 2, 2};
    const auto steps = simulate(amax, {.format = &e4m3(), .history = 4});
    Figure figure{.title = "The scale is one step late, and then too small for four steps",
                  .x = {.label = "step"},
                  .y = {.label = "amax", .scale = Scale::log2}};
    Doubles xs, tops, fits_x, fits, cut_x, cut;
    for (const SimulateStep& step : steps) {
        if (step.step > 0) {  // scale 1 of the cold start would stretch the axis
            xs.push_back(step.step - 0.5);
            tops.push_back(448.0 / static_cast<double>(step.scale_used));
        }
        (step.saturates ? cut_x : fits_x).push_back(step.step);
        (step.saturates ? cut : fits).push_back(static_cast<double>(step.amax));
    }
    xs.push_back(static_cast<double>(steps.size()) - 0.5);
    tops.push_back(tops.back());
    Style window = of(Role::e4m3, 3);
    window.step = true;
    figure.line("window top", data(std::move(xs)), data(std::move(tops)), window);
    figure.scatter("amax", data(std::move(fits_x)), data(std::move(fits)),
                   {.color = {Role::truth}, .marker = Marker::disc});
    figure.scatter("saturates", data(std::move(cut_x)), data(std::move(cut)),
                   {.color = {Role::sat}, .marker = Marker::triangle_up, .marker_size = 5});
    return figure;
}

// The GEMMs of a linear layer as matrices, the sides to scale: x is batch by inputs, w outputs by inputs, dy
// batch by outputs. What the HYBRID formats cast has its format's colour; results are BF16.
Figure three_gemms() {
    constexpr double kBatch = 3, kInputs = 4, kOutputs = 2.2;
    struct Matrix {
        const char* name;
        Role role;
        double rows, columns;
    };
    struct Product {
        const char* name;
        Matrix a, b, result;
    };
    constexpr std::array kProducts = {Product{"fprop",
                                              {"x", Role::e4m3, kBatch, kInputs},
                                              {"w^T", Role::e4m3, kInputs, kOutputs},
                                              {"y", Role::bf16, kBatch, kOutputs}},
                                      Product{"dgrad",
                                              {"dy", Role::e5m2, kBatch, kOutputs},
                                              {"w", Role::e4m3, kOutputs, kInputs},
                                              {"dx", Role::bf16, kBatch, kInputs}},
                                      Product{"wgrad",
                                              {"dy^T", Role::e5m2, kOutputs, kBatch},
                                              {"x", Role::e4m3, kBatch, kInputs},
                                              {"dw", Role::bf16, kOutputs, kInputs}}};
    constexpr double kRow = 4.6, kNames = 4;
    Figure figure{.title = "Each of the three GEMMs reads two of x, w and dy",
                  .x = {.range = Range{0, 20.5}, .visible = false},
                  .y = {.range = Range{0, kRow * kProducts.size()}, .visible = false},
                  .words = {"fprop: x times w transposed gives y.", "dgrad: dy times w gives dx.",
                            "wgrad: dy transposed times x gives dw.",
                            "With HYBRID x and w are E4M3, dy is E5M2; y, dx and dw are BF16."}};
    double middle = kRow * kProducts.size() - kRow / 2;
    const auto word = [&](double x, std::string text, Role role = Role::text,
                          Anchor anchor = Anchor::center) {
        figure.text(x, middle, std::move(text), {.color = {role, Tone::ink}}, anchor);
    };
    for (const Product& product : kProducts) {
        word(0, product.name, Role::muted, Anchor::left);
        double x = kNames;
        const auto matrix = [&](const Matrix& m) {
            const Data xs = data({x, x + m.columns});
            const double lo = middle - m.rows / 2, hi = middle + m.rows / 2;
            figure.band("", xs, data({lo, lo}), data({hi, hi}),
                        {.color = {m.role, Tone::tint}, .in_legend = false});
            figure.line("", data({x, x + m.columns, x + m.columns, x, x}), data({lo, lo, hi, hi, lo}),
                        {.color = {m.role}, .width = 1.5F, .in_legend = false});
            word(x + m.columns / 2, m.name);
            x += m.columns;
        };
        matrix(product.a);
        word(x + 0.6, "\u00d7");
        x += 1.2;
        matrix(product.b);
        word(x + 0.6, "=");
        x += 1.2;
        matrix(product.result);
        middle -= kRow;
    }
    return figure;
}

struct Entry {
    std::string_view id;
    Figure (*make)();
};
constexpr std::array kEntries = {
    Entry{"binade", binade},
    Entry{"code", code},
    Entry{"delayed-scaling", delayed_scaling},
    Entry{"dynamic-range", narrow_ranges},
    Entry{"e2m1", e2m1},
    Entry{"e4m3", fp8_ranges},
    Entry{"e5m2", fp8_ranges},
    Entry{"fnuz", fnuz_ranges},
    Entry{"relative-error", relative_error},
    Entry{
        "rne",
        [] { return stairs("Each value stands for the numbers within half a step of it", e4m3(), 1, 2.5); }},
    Entry{"saturation", saturation},
    Entry{"stochastic-rounding", stochastic_rounding},
    Entry{"subnormal", subnormal},
    Entry{"swamping", swamping},
    Entry{"tensor-x-w-dy", three_gemms},
    Entry{"ulp", ulp},
    Entry{"underflow", underflow}};

}  // namespace

std::span<const std::string_view> illustrated_terms() {
    static const auto kIds = [] {
        std::array<std::string_view, kEntries.size()> ids;
        std::ranges::transform(kEntries, ids.begin(), &Entry::id);
        return ids;
    }();
    return kIds;
}

std::optional<Figure> term_figure(std::string_view id) {
    const auto entry = std::ranges::find(kEntries, id, &Entry::id);
    if (entry == kEntries.end()) return std::nullopt;
    Figure figure = entry->make();
    figure.id = "term-" + std::string(id);
    return figure;
}

}  // namespace fp8lab
