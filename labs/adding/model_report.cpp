// The dot product's figures; the tables and metrics of every experiment.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/adding/model.h"

namespace fp8lab::adding {

namespace {

std::string share_text(double ratio) { return format_number(100 * ratio, 2, true) + " %"; }

void curve(Figure& figure, std::string name, const std::vector<DotError>& errors, Style style) {
    std::vector<double> xs, ys;
    for (const DotError& error : errors) {
        xs.push_back(error.k);
        ys.push_back(error.rel_rms > 0 ? error.rel_rms : std::nan(""));
    }
    figure.line(std::move(name), data(std::move(xs)), data(std::move(ys)), std::move(style));
}

// "recorded, fast"
std::string name_of(const Hardware& hardware, bool fast) {
    return std::string(hardware.provenance == Provenance::recorded ? "recorded, " : "this GPU, ") +
           (fast ? "fast" : "not fast");
}

void measured(Figure& figure, const Hardware& hardware, const Params& params, bool fast, Marker marker) {
    std::vector<double> xs, ys;
    for (const AccumulationError& line : hardware.lines) {
        if (line.data != params.data || line.fast != fast) continue;
        xs.push_back(line.k);
        ys.push_back(line.rel_rms);
    }
    if (!xs.empty())
        figure.scatter(name_of(hardware, fast), data(std::move(xs)), data(std::move(ys)),
                       {.color = {Role::text}, .marker = marker, .marker_size = 5});
}

}  // namespace

std::vector<Figure> dot_figures(const Outcome& outcome, const Params& params, const Hardware& hardware) {
    const Dot& dot = outcome.dot;
    const double lost = dot.narrow_at_k.rel_rms, kept = dot.promoted_at_k.rel_rms;
    Figure over_k{.id = "accumulator"};
    over_k.title = fmt::format("With {} fraction bits a sum of {} products loses {}; promoted every {}, {}",
                               params.width, params.k, share_text(lost), params.interval, share_text(kept));
    over_k.x = {.label = "K", .scale = Scale::log2};
    over_k.y = {.label = "relative error", .scale = Scale::log10};
    curve(over_k, "cast to E4M3", dot.cast, {.color = {Role::under}, .dash = Dash::dash});
    curve(over_k, fmt::format("promoted every {}", params.interval), dot.promoted,
          {.color = {Role::block}, .dash = Dash::dot});
    curve(over_k, "never promoted", dot.narrow, {.color = {Role::e4m3}, .width = 3});
    measured(over_k, hardware, params, true, Marker::disc);
    measured(over_k, hardware, params, false, Marker::ring);

    Figure over_interval{.id = "promotion"};
    over_interval.title = fmt::format("At K = {} promotion every {} products leaves an error of {}", params.k,
                                      params.interval, share_text(kept));
    over_interval.x = {.label = "promotion interval", .scale = Scale::log2};
    over_interval.y = {.label = "relative error", .scale = Scale::log10};
    curve(over_interval, "model", dot.sweep, {.color = {Role::e4m3}, .width = 3});
    over_interval.hline("cast to E4M3", dot.cast_at_k.rel_rms,
                        {.color = {Role::under}, .width = 1, .dash = Dash::dash});
    over_interval.scatter(
        "chosen", data({1.0 * std::min(params.interval, params.k)}), data({kept}),
        {.color = {Role::text}, .marker = Marker::disc, .marker_size = 5, .in_legend = false});
    return {over_k, over_interval};
}

Table Adding::table() const {
    Table out;
    if (outcome->params.experiment == "sum") {
        out.columns = {{"nearest stops at"}, {"sum"}, {"exact", false}, {"error %"}};
        for (const Sum& sum : outcome->sums)
            out.rows.push_back({std::string(sum.format.label),
                                sum.format.role,
                                {sum.stall, sum.path.back(), sum.exact, sum.error_pct()},
                                sum.format.name == outcome->params.format});
    } else if (outcome->params.experiment == "dice") {
        out.columns = {
            {"mean"}, {"bias"}, {"deviation"}, {"tensor off the grid %", false}, {"tensor SQNR dB"}};
        for (std::size_t i = 0; i < kMethods.size(); ++i) {
            const RoundedDraws& drawn = outcome->dice.draws[i];
            const TensorCast& tensor = outcome->dice.tensors[i];
            out.rows.push_back({std::string(label_of(kMethods[i])),
                                Role::text,
                                {drawn.mean, drawn.mean - outcome->params.x, drawn.deviation,
                                 tensor.off_grid_pct, tensor.sqnr_db},
                                i == outcome->dice.chosen});
        }
    } else if (outcome->params.experiment == "dot") {
        const Dot& dot = outcome->dot;
        const Hardware hardware = this->hardware();
        out.columns = {{"error %"}, {"bias %"}};
        const auto row = [&](std::string label, Role role, double rms, double bias) {
            out.rows.push_back({std::move(label), role, {100 * rms, 100 * bias}});
        };
        row("model, never promoted", Role::e4m3, dot.narrow_at_k.rel_rms, dot.narrow_at_k.rel_bias);
        row(fmt::format("model, every {}", outcome->params.interval), Role::block, dot.promoted_at_k.rel_rms,
            dot.promoted_at_k.rel_bias);
        row("FP32, one by one", Role::truth, dot.fp32_at_k.rel_rms, dot.fp32_at_k.rel_bias);
        for (const AccumulationError& line : hardware.lines)
            if (line.data == outcome->params.data && line.k == outcome->params.k)
                row(name_of(hardware, line.fast), Role::text, line.rel_rms, line.rel_bias);
    } else {
        const Weight& weight = outcome->weight;
        out.columns = {{"ends at"}, {"exact", false}, {"error %"}, {"deviation"}};
        const double exact = weight.exact.back();
        const auto row = [&](std::string label, double end, double deviation) {
            out.rows.push_back(
                {std::move(label), Role::text, {end, exact, 100 * (end - exact) / exact, deviation}});
        };
        row("nearest", weight.nearest.back(), 0);
        row("stochastic, mean of 64", weight.final_mean, weight.final_deviation);
        row("copy of an FP32 master", weight.copy.back(), 0);
    }
    return out;
}

std::vector<table::MetricRow> Adding::metrics() const {
    std::vector<table::MetricRow> out;
    const auto add = [&](std::string name, double value, std::string unit = {}) {
        out.push_back(table::known(std::move(name), value, std::move(unit)));
    };
    if (outcome->params.experiment == "sum") {
        for (const Sum& sum : outcome->sums) {
            const std::string name(sum.format.name);
            add(name + ".stall", sum.stall);
            add(name + ".sum", sum.path.back());
            add(name + ".error_pct", sum.error_pct(), "%");
        }
        add("exact", outcome->sums.front().exact);
    } else if (outcome->params.experiment == "dice") {
        const Dice& dice = outcome->dice;
        add("below", dice.around.below);
        add("above", dice.around.above);
        for (std::size_t i = 0; i < kMethods.size(); ++i) {
            const std::string name(id_of(kMethods[i]));
            add(name + ".mean", dice.draws[i].mean);
            add(name + ".deviation", dice.draws[i].deviation);
            add(name + ".standard_error", dice.draws[i].standard_error());
            add(name + ".off_grid_pct", dice.draws[i].off_grid_pct, "%");
            add(name + ".tensor_off_grid_pct", dice.tensors[i].off_grid_pct, "%");
            add(name + ".tensor_sqnr_db", dice.tensors[i].sqnr_db, "dB");
        }
    } else if (outcome->params.experiment == "dot") {
        const Dot& dot = outcome->dot;
        add("narrow.rel_rms", dot.narrow_at_k.rel_rms);
        add("narrow.rel_bias", dot.narrow_at_k.rel_bias);
        add("promoted.rel_rms", dot.promoted_at_k.rel_rms);
        add("promoted.rel_bias", dot.promoted_at_k.rel_bias);
        add("promoted_half_as_often.rel_rms", dot.half_as_often_at_k.rel_rms);
        add("cast.rel_rms", dot.cast_at_k.rel_rms);
        if (outcome->params.hardware == "live") return out;
        const Hardware hardware = this->hardware();
        for (const AccumulationError& line : hardware.lines) {
            if (line.data != outcome->params.data) continue;
            const std::string name = fmt::format("hardware.{}.k{}", line.fast ? "fast" : "not_fast", line.k);
            add(name + ".rel_rms", line.rel_rms);
            add(name + ".rel_bias", line.rel_bias);
        }
        if (!hardware.where.empty()) {
            out.push_back(table::known_word("hardware.where", hardware.where));
            out.push_back(
                table::known_word("hardware.provenance", std::string(to_string(hardware.provenance))));
        }
    } else {
        const Weight& weight = outcome->weight;
        add("exact", weight.exact.back());
        add("nearest", weight.nearest.back());
        add("dice.mean", weight.final_mean);
        add("dice.deviation", weight.final_deviation);
        add("master_copy", weight.copy.back());
    }
    return out;
}

}  // namespace fp8lab::adding
