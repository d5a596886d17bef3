#include "labs/window/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/seeded.h"

namespace fp8lab::window {

namespace {

constexpr double kMinScale = 0x1p-40, kMaxScale = 0x1p40;

}  // namespace

std::string scale_rule(const Outcome& o) {
    if (o.spec.source == "manual") return "the value that was set";
    const std::string of = o.spec.source == "percentile"
                               ? fmt::format("percentile {}", shortest(o.spec.percentile))
                           : o.spec.source == "ema" ? "mean amax"
                                                    : "amax";
    if (!(o.reference > 0 && std::isfinite(o.reference)))
        return fmt::format("{}, because {} is {}", screen_number(o.cast.scale), of,
                           screen_number(o.reference));
    const std::string headroom = o.spec.margin == 0 ? "" : fmt::format(" / 2^{}", o.spec.margin);
    return fmt::format("{} / {}{}", shortest(max_finite(o.format)), of, headroom);
}

const LabInfo Window::kInfo = {"window",
                               4,
                               "Fit the window",
                               "Fit the tensor into the window",
                               "The scale decides which elements survive. What is lost at each end?",
                               20,
                               "L2"};

std::span<const table::Experiment<Window>> Window::experiments() {
    static constexpr std::array<table::Experiment<Window>, 1> kOne = {
        {{.figures = &Window::figures, .metrics = &Window::metrics}}};
    return kOne;
}

namespace {

table::Row of_tensor(CastSpec& p, std::string_view name, bool more) {
    return {.field = tensor_field(p.tensor, name, more), .shown = has_effect(p.tensor, name)};
}

std::vector<table::Row> rows_of_scale(CastSpec& p) {
    const bool manual = p.source == "manual";
    return {
        of_tensor(p, "tensor", false),
        {tensor_field(p.tensor, "file", false)},
        {choice({.name = "format", .label = "Format", .help = "What the tensor is cast to."}, &p.format,
                format_choices(is_element))},
        {choice(
            {.name = "source",
             .label = "Scale from",
             .help = "current: from this tensor's amax. manual: set by hand. percentile: the largest "
                     "elements saturate. EMA: a moving average of the amaxes of 16 slices of the tensor."},
            &p.source,
            {{"current", "current amax"},
             {"manual", "manual"},
             {"percentile", "percentile"},
             {"ema", "EMA of amaxes"}})},
        {.field = integer({.name = "margin",
                           .label = "Margin",
                           .te_name = "margin",
                           .help = "Powers of two that stay free above the amax: headroom."},
                          &p.margin, kLowestMargin, kHighestMargin),
         .shown = !manual},
        {.field = number({.name = "scale",
                          .label = "Scale",
                          .te_name = "scale",
                          .help = "The tensor is multiplied by it before the cast. The handle of the window "
                                  "does the same."},
                         &p.scale, kMinScale, kMaxScale, true),
         .shown = manual},
        {.field =
             number({.name = "percentile",
                     .label = "Percentile",
                     .unit = "%",
                     .help = "The scale is computed from this percentile of |x|. What is larger saturates."},
                    &p.percentile, 50, 100),
         .shown = p.source == "percentile"},
        {.field = number({.name = "ema",
                          .label = "EMA weight",
                          .help = "The share of the average that stays with each slice. The rest comes from "
                                  "the new amax."},
                         &p.ema, 0, 0.99),
         .shown = p.source == "ema"},
    };
}

std::vector<table::Row> second_tier(CastSpec& p) {
    const bool zeros = p.tensor.kind == "zeros" && p.tensor.file.empty();
    std::vector<table::Row> out = {
        of_tensor(p, "sigma", true),
        {choice({.name = "overflow",
                 .label = "Beyond the window",
                 .help = "What a value above the window becomes. saturate: the largest value. NaN / Inf: Inf "
                         "where the format has it, otherwise NaN.",
                 .more = true},
                &p.overflow, {{"saturate", "saturate"}, {"nonsaturate", "NaN / Inf"}})},
        of_tensor(p, "outliers", true),
        of_tensor(p, "outlier_ratio", true),
        {.field = choice({.name = "zero",
                          .label = "Amax of 0",
                          .help = "The scale of an all-zero tensor. divide: max / 0. one: 1, as Transformer "
                                  "Engine. eps: as if amax were 1e-12, as torchao. keep: the scale of the "
                                  "step before.",
                          .more = true},
                         &p.zero, {{"divide", "divide"}, {"one", "one"}, {"eps", "eps"}, {"keep", "keep"}}),
         .shown = zeros},
        {integer({.name = "loss_scale",
                  .label = "Loss scale",
                  .help = "The loss, and with it every gradient, is multiplied by this power of two.",
                  .more = true},
                 &p.loss_exponent, 0, 24)},
        of_tensor(p, "seed", true),
        of_tensor(p, "size", true),
        of_tensor(p, "cols", true),
        {number({.name = "probe",
                 .label = "Number x",
                 .help = "x and x + 1 are cast; here the format's end can be found.",
                 .hidden = true},
                &p.probe, 0, 1e6)},
    };
    for (table::Row& row : out) {
        if (row.field.info.name == "outliers") row.shown = row.shown && !zeros;
        if (row.field.info.name == "size" || row.field.info.name == "cols") row.field.info.hidden = true;
    }
    return out;
}

}  // namespace

std::vector<table::Row> Window::rows(CastSpec& p) { return table::join({rows_of_scale(p), second_tier(p)}); }

void Window::slide(double from, double to) {
    if (!(from > 0 && to > 0)) return;
    if (params.source == "manual")
        params.scale = std::clamp(params.scale * from / to, kMinScale, kMaxScale);
    else
        params.margin = std::clamp(params.margin + static_cast<int>(std::lround(std::log2(to / from))),
                                   kLowestMargin, kHighestMargin);
}

std::vector<Figure> Window::figures() const {
    std::vector<Figure> out = {window_figure(*outcome), margin_figure(*outcome), loss_figure(*outcome)};
    const TensorSpec& drawn = outcome->spec.tensor;
    return has_effect(drawn, "seed") ? of_seed(drawn.seed, std::move(out)) : out;
}

std::vector<table::MetricRow> Window::metrics() const {
    const Outcome& o = *outcome;
    std::vector<table::MetricRow> out;
    const auto add = [&](std::string name, double value, std::string unit = {}) {
        out.push_back(table::known(std::move(name), value, std::move(unit)));
    };
    const auto count = [](std::int64_t n) { return static_cast<double>(n); };
    add("elements", count(o.cast.stats.n));
    add("amax", o.amax);
    add("reference_amax", o.reference);
    add("scale_used", o.cast.scale);
    out.push_back(table::known_word("scale_rule", scale_rule(o)));
    add("window_top", o.window.hi);
    add("window_bottom", o.window.lo);
    add("sqnr_db", o.cast.stats.sqnr_db(), "dB");
    add("inlier_sqnr_db", o.cast.inlier_sqnr_db, "dB");
    add("base_sqnr_db", o.base_sqnr_db, "dB");
    const auto add_underflow = [&](const std::string& of, const CastStats& stats, const std::string& how) {
        add(of + "underflow_pct" + how, stats.underflow_pct(), "%");
        add(of + "lost_l1_pct" + how, stats.lost_l1_pct(), "%");
        add(of + "lost_energy_pct" + how, stats.lost_energy_pct(), "%");
    };
    add_underflow("", o.cast.stats, "");
    add("overflow_pct", o.cast.stats.overflow_pct(), "%");
    add("not_finite", count(o.cast.not_finite));
    // Over margins from 0 on.
    double best = -1e300, least = 1e300;
    for (int margin = 0; margin <= kHighestMargin; ++margin) {
        best = std::max(best, o.own.at(margin).stats.sqnr_db());
        least = std::min(least, o.own.at(margin).stats.underflow_pct());
    }
    add("best_sqnr_db", best, "dB");
    add("least_underflow_pct", least, "%");
    for (const Sweep* sweep : {&o.own, &o.other})
        for (const int margin : {0, 3, 6, 9})
            add(fmt::format("{}.sqnr_db_at_margin_{}", sweep->format.name, margin),
                sweep->at(margin).stats.sqnr_db(), "dB");
    for (std::size_t i = 0; i < kGradients.size(); ++i) {
        const std::string gradient = std::string(kGradients.at(i)) + ".";
        add_underflow(gradient, o.loss.shifted.at(i).stats, "_loss_scale");
        add(gradient + "overflow_pct_loss_scale", o.loss.shifted.at(i).stats.overflow_pct(), "%");
        add_underflow(gradient, o.loss.scaled.at(i).stats, "_tensor_scale");
    }
    add("probe_cast", o.probe_cast);
    add("probe_next", o.probe_next);
    add("probe_next_is_finite", std::isfinite(o.probe_next) ? 1 : 0);
    return out;
}

LabEntry entry() { return entry_of<WindowLab>(Window::kInfo); }

}  // namespace fp8lab::window
