// Figures, metrics and CSV of the tab "A run".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "core/figure/csv.h"
#include "labs/workbench/model.h"

namespace fp8lab::workbench {
namespace {

using table::known, table::known_word, table::MetricRow;

// "delayed_64", "mxfp8": in names of metrics.
std::string metric_part(std::string_view text) {
    const Recipe recipe = parse_recipe(text);
    return recipe.scale == ScaleSource::delayed ? fmt::format("{}_{}", recipe.base, recipe.history)
                                                : std::string(recipe.base);
}

// "BF16 run, loss".
std::string loss_name(const std::string& recipe) {
    if (recipe.empty()) return "loss";
    const auto known = std::ranges::find(recipes(), recipe, &Recipe::base);
    return std::string(known == recipes().end() || known->short_name.empty() ? recipe : known->short_name) +
           " run, loss";
}

// A spike would press the rest of a loss to the bottom: it leaves the figure at the top.
Range loss_range(std::vector<double> values, bool log_scale) {
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    if (values.empty()) return {0, 1};
    std::ranges::sort(values);
    const double least = values.front(), usual = values[(values.size() - 1) * 98 / 100];
    const double reach = log_scale ? usual * 3 : usual + 0.5 * (usual - least);
    const double top = std::max(std::min(values.back(), reach), least);
    if (log_scale) return {least / 1.5, top * 1.5};
    const double air = std::max(0.08 * (top - least), 1e-6 * std::max(std::fabs(top), 1e-6));
    return {least - air, top + air};
}

struct ShownBinades {
    int lo = 0, hi = 0;  // [2^lo, 2^hi)
};
// The values and the window, and no more than 64 binades of them.
ShownBinades shown_binades(const BinadeCounters& counters, Range window) {
    int lo = static_cast<int>(std::floor(std::log2(window.lo))),
        hi = static_cast<int>(std::ceil(std::log2(window.hi)));
    double seen = 0;
    const auto all = static_cast<double>(std::max<std::uint64_t>(counters.nonzero(), 1));
    for (std::size_t k = 0; k < counters.bins.size(); ++k) {
        if (counters.bins[k] == 0) continue;
        hi = std::max(hi, counters.top - static_cast<int>(k) + 1);
        seen += static_cast<double>(counters.bins[k]);
        lo = std::min(lo, counters.top - static_cast<int>(k));
        if (seen >= 0.9995 * all) break;  // the last ones are lower than a pixel
    }
    return {std::max(lo, hi - 64) - 1, hi + (counters.bins.empty() ? 4 : 1)};  // the word amax
}

}  // namespace

Figure RunTab::loss() const {
    Figure figure{.id = "loss", .title = {}};
    figure.x = {.label = "step"};
    figure.y = {.label = "loss"};
    if (!log() || log()->losses.empty()) return figure;
    std::vector<double> steps, values;
    bool positive = true;
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const LossPoint& each : log()->losses) {
        steps.push_back(each.step);
        values.push_back(each.loss);
        if (!std::isfinite(each.loss)) continue;
        positive = positive && each.loss > 0;
        least = std::min(least, each.loss), most = std::max(most, each.loss);
    }
    if (positive && most > 4 * least) figure.y.scale = Scale::log10;
    figure.y.range = loss_range(values, figure.y.scale == Scale::log10);
    figure.title = "The loss does not say which tensor is ill";
    figure.x.range = Range{static_cast<double>(diagnoses->first_step),
                           std::max(static_cast<double>(diagnoses->last_step), diagnoses->first_step + 1.0)};
    const bool wide = log()->recipe == "bf16";
    figure.line(loss_name(log()->recipe), data(std::move(steps)), data(std::move(values)),
                {.color = {wide ? Role::bf16 : Role::truth}, .dash = wide ? Dash::dash : Dash::solid});
    if (const auto odd = first_nonfinite_loss(*log()))
        figure.vline(loss_words(), odd->step, {.color = {Role::sat}, .width = 2});
    return figure;
}

Figure RunTab::lost() const {
    Figure figure{.id = "lost", .title = {}};
    figure.x = {.label = "step"};
    figure.y = {.label = "% becomes 0", .range = Range{0, 105}};
    const auto tensor = selected();
    const Diagnosis& now = *diagnoses;
    if (!tensor) return figure;
    const Lane& lane = now.lanes[*tensor];
    const std::string words = lane_words(*tensor);
    figure.title =
        log()->tensors[*tensor].name() + ": " +
        (words.empty() ? fmt::format("at most {} % of a step becomes 0", percent_text(lane.most)) : words);
    std::vector<double> edges, heights, over, top;
    for (std::size_t b = 0; b <= lane.pct.size(); ++b)
        edges.push_back(now.step_of(static_cast<double>(b)) - 0.5);
    for (const float pct : lane.pct) heights.push_back(std::max(0.0, static_cast<double>(pct)));
    for (const std::size_t b : lane.over)
        over.push_back(now.step_of(static_cast<double>(b))), top.push_back(102);
    figure.x.range = Range{edges.front(), edges.back()};
    figure.bars("becomes 0", data(std::move(edges)), data(std::move(heights)),
                {.color = {Role::under, Tone::fill}});
    figure.scatter("saturated by 1.3 or more", data(std::move(over)), data(std::move(top)),
                   {.color = {Role::sat}, .marker = Marker::triangle_up});
    figure.vline("", cursor());
    return figure;
}

Figure RunTab::binades() const {
    Figure figure{.id = "binades", .title = step_title()};
    figure.x = {.label = "|x|", .scale = Scale::log2, .range = Range{0x1p-20, 0x1p20}};
    figure.y = {.label = "elements", .range = Range{0, 1}, .visible = false};
    const TensorPoint* const at = point();
    const ReplayStep* const step = replayed();
    if (!at || !step || !choices->replay.format || at->step != step->step) return figure;
    const FormatInfo& format = *choices->replay.format;
    const auto scale = static_cast<double>(step->scale);
    const Range window{min_subnormal(format) / 2 / scale, max_finite(format) / scale};
    if (!std::isfinite(window.lo) || !std::isfinite(window.hi) || window.lo <= 0) return figure;
    const auto logged = log()->tensors[choices->tensor].counters(*at);
    const BinadeCounters counters = logged.value_or(BinadeCounters{});
    const ShownBinades shown = shown_binades(counters, window);
    std::vector<double> edges, kept, gone, part, cut;
    double top = 1;
    for (int e = shown.lo; e <= shown.hi; ++e) edges.push_back(std::ldexp(1.0, e));
    for (int e = shown.lo; e < shown.hi; ++e) {
        const int k = counters.top - e;
        const bool counted = k >= 0 && k < static_cast<int>(counters.bins.size());
        const double n = counted ? static_cast<double>(counters.bins[static_cast<std::size_t>(k)]) : 0;
        const bool below = std::ldexp(1.0, e + 1) <= window.lo, above = std::ldexp(1.0, e) >= window.hi,
                   parted = !below && std::ldexp(1.0, e) < window.lo;
        kept.push_back(below || above || parted ? 0 : n);
        gone.push_back(below ? n : 0);
        part.push_back(parted ? n : 0);
        cut.push_back(above ? n : 0);
        top = std::max(top, n);
    }
    figure.x.range = Range{edges.front(), edges.back()};
    figure.y.range = Range{0, 1.25 * top};
    figure.xspan("window", window.lo, window.hi, {.color = {format.role}});
    const Data shared = data(std::move(edges));
    const auto bars = [&](const char* name, std::vector<double> heights, Role role) {
        if (std::ranges::any_of(heights, [](double n) { return n > 0; }))
            figure.bars(name, shared, data(std::move(heights)), {.color = {role, Tone::fill}});
    };
    bars("kept", std::move(kept), Role::truth);
    bars("becomes 0", std::move(gone), Role::under);
    bars("in part", std::move(part), Role::axis);
    bars("saturates", std::move(cut), Role::sat);
    if (!logged && at->amax > 0) {
        figure.vline("amax", static_cast<double>(at->amax), {.color = {Role::truth}, .width = 2});
        if (at->amin > 0)
            figure.vline("least", static_cast<double>(at->amin), {.color = {Role::truth}, .width = 1});
    }
    return figure;
}

std::vector<Figure> RunTab::figures() const { return {loss(), lost(), binades()}; }

std::vector<MetricRow> RunTab::metrics() const {
    std::vector<MetricRow> out;
    const Diagnosis& now = *diagnoses;
    if (!now.log) return out;
    const RunFinding* const first = now.findings.empty() ? nullptr : &now.findings.front();
    out.push_back(known("findings", now.judged ? static_cast<double>(now.findings.size())
                                               : std::numeric_limits<double>::quiet_NaN()));
    out.push_back(known_word("first_tensor", first ? first->name : "none"));
    out.push_back(known("first_step", first ? first->step : std::numeric_limits<double>::quiet_NaN()));
    out.push_back(known_word("first_cause", first ? first->cause : "none"));
    const TensorPoint* const at = point();
    out.push_back(
        known("step_amax", at ? static_cast<double>(at->amax) : std::numeric_limits<double>::quiet_NaN()));
    for (std::size_t t = 0; t < now.lanes.size(); ++t) {
        const std::string& name = now.log->tensors[t].name();
        const Lane& lane = now.lanes[t];
        out.push_back(known("lost_pct_" + name, now.from_above ? lane.lost.high : lane.lost.low, "%"));
        out.push_back(known("saturated_" + name, lane.saturated));
    }
    for (const UnderRecipe& each : *unders)
        out.push_back(known("worst_" + metric_part(each.recipe), each.worst_pct, "%"));
    return out;
}

// One row a tensor; those with findings first, as the lanes.
std::string RunTab::table_csv() const {
    const Diagnosis& now = *diagnoses;
    if (!now.log) return "";
    std::string out =
        "tensor,lost_pct_low,lost_pct_high,saturated_steps,mostly_lost_steps,from_step,number,cause,"
        "treatment\n";
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < now.findings.size(); ++i)
        if (now.first_finding[now.findings[i].tensor] == static_cast<int>(i))
            order.push_back(now.findings[i].tensor);
    for (std::size_t t = 0; t < now.lanes.size(); ++t)
        if (!now.finding_of(t)) order.push_back(t);
    for (const std::size_t t : order) {
        const Lane& lane = now.lanes[t];
        const RunFinding* const found = now.finding_of(t);
        out += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_cell(now.log->tensors[t].name()),
                           shortest(lane.lost.low), shortest(lane.lost.high), lane.saturated,
                           lane.mostly_lost, found ? std::to_string(found->step) : "",
                           found ? found->number : "", found ? csv_cell(found->cause) : "",
                           found ? csv_cell(std::string(found->treatment)) : "");
    }
    return out;
}

}  // namespace fp8lab::workbench
