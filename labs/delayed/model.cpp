#include "labs/delayed/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/base/units.h"
#include "labs/seeded.h"

namespace fp8lab::delayed {

namespace {

constexpr int kMostSteps = 100000;

double percent(const std::vector<CastStats>& casts, double (CastStats::*part)() const) {
    double sum = 0;
    for (const CastStats& cast : casts) sum += (cast.*part)();
    return casts.empty() ? 0 : sum / static_cast<double>(casts.size());
}

// The rows of one machine; B's are hidden, and start with "b_".
bool reduces_recent(const MachineSpec& machine) {
    return machine.algo == "max" || machine.algo == "most_recent";
}

std::vector<table::Row> rows_of_scale(MachineSpec& machine, const std::string& prefix) {
    const std::string& algo = machine.algo;
    const bool hidden = !prefix.empty(), recent = reduces_recent(machine), percentile = algo == "percentile";
    return {
        {choice(
            {.name = prefix + "format",
             .label = "Format",
             .te_name = "fp8_format",
             .help = "What the tensor is cast to. E5M2 has twice the relative error, and its values reach "
                     "2^7 times further up and down.",
             .hidden = hidden},
            &machine.format, format_choices([](const FormatInfo& f) { return f.trains && is_fp8(f); }))},
        {choice(
            {.name = prefix + "algo",
             .label = "Reducer",
             .te_name = "amax_compute_algo",
             .help = "How the history is reduced to the one amax that the scale is computed from. "
                     "Transformer Engine has max and most recent. current: the amax of the tensor itself. "
                     "static: a fixed scale.",
             .hidden = hidden},
            &machine.algo,
            {{"max", "max"},
             {"most_recent", "most recent"},
             {"ema", "moving average (EMA)"},
             {"percentile", "percentile"},
             {"static", "static scale"},
             {"current", "current (no delay)"}})},
        {.field = integer(
             {.name = prefix + "history",
              .label = "History",
              .te_name = "amax_history_len",
              .unit = "steps",
              .help = "How many steps an amax stays in the history. Transformer Engine's default is 1024.",
              .hidden = hidden},
             &machine.history, 1, 1024, true),
         .shown = recent || percentile},
        {.field = integer(
             {.name = prefix + "margin",
              .label = "Margin",
              .te_name = "margin",
              .help = "Powers of two that stay free above the amax. 1 absorbs a growth by a factor of 2 "
                      "in a step.",
              .hidden = hidden},
             &machine.margin, 0, 8),
         .shown = algo != "static"},
    };
}

std::vector<table::Row> rows_of_reducer(MachineSpec& machine, const std::string& prefix) {
    const std::string& algo = machine.algo;
    const bool hidden = !prefix.empty(), recent = reduces_recent(machine), percentile = algo == "percentile";
    return {
        {.field = integer(
             {.name = prefix + "interval",
              .label = "Interval",
              .unit = "steps",
              .help =
                  "The scale is recomputed after this many steps. The history takes an amax in every step.",
              .more = true,
              .hidden = hidden},
             &machine.interval, 1, 64, true),
         .shown = recent},
        {.field = number(
             {.name = prefix + "ema",
              .label = "EMA weight",
              .help = "The share of the average that stays in each step. The rest comes from the new amax.",
              .more = true,
              .hidden = hidden},
             &machine.ema, 0, 0.99),
         .shown = algo == "ema"},
        {.field = number(
             {.name = prefix + "percentile",
              .label = "Percentile",
              .unit = "%",
              .help = "The percentile of the amaxes in the history that the scale is computed from. 100 is "
                      "the max.",
              .more = true,
              .hidden = hidden},
             &machine.percentile, 0, 100),
         .shown = percentile},
        {.field = number({.name = prefix + "static_scale",
                          .label = "Static scale",
                          .te_name = "scale",
                          .help = "The one scale, chosen before the first step.",
                          .more = true,
                          .hidden = hidden},
                         &machine.static_scale, 0x1p-16, 0x1p24, true),
         .shown = algo == "static"},
        {choice({.name = prefix + "order",
                 .label = "Order",
                 .help = "te: cast with the scale of the step before, then record the amax. notebook: record "
                         "the amax first, then cast with a scale that has already seen the tensor.",
                 .hidden = true},
                &machine.order, {{"te", "use, update"}, {"notebook", "notebook's order"}})},
    };
}

std::vector<table::Row> machine_rows(MachineSpec& machine, const std::string& prefix) {
    return table::join({rows_of_scale(machine, prefix), rows_of_reducer(machine, prefix)});
}

Run run(const Tensors& tensors, const MachineSpec& machine) {
    Run out;
    out.machine = machine;
    out.steps = run_machine(machine, tensors.amaxes());
    const FormatInfo& format = find_format(machine.format);
    out.casts = tensors.cast(format, out.steps);
    for (const MachineStep& step : out.steps) {
        const auto scale = static_cast<double>(step.scale_used);
        out.tops.push_back(max_finite(format) / scale);
        out.bottoms.push_back(min_subnormal(format) / scale);
    }
    return out;
}

// Every scale that was used, so that two runs can be compared bit for bit.
std::string scales_text(const Run& run) {
    std::string out;
    for (const MachineStep& step : run.steps) out += (out.empty() ? "" : " ") + shortest(step.scale_used);
    return out;
}

}  // namespace

int Run::saturated_steps() const {
    return static_cast<int>(
        std::count_if(steps.begin(), steps.end(), [](const MachineStep& step) { return step.saturates; }));
}

double Run::worst_sqnr_db() const {
    double worst = std::numeric_limits<double>::infinity();
    for (const CastStats& cast : casts)
        if (cast.nonfinite == 0 && cast.signal > 0) worst = std::min(worst, cast.sqnr_db());
    return worst;
}

double Run::mean_underflow_pct() const { return percent(casts, &CastStats::underflow_pct); }
double Run::mean_overflow_pct() const { return percent(casts, &CastStats::overflow_pct); }

Aftermath aftermath(const Run& run, int spike) {
    constexpr std::size_t kAfter = 16;
    Aftermath out;
    const auto at = static_cast<std::size_t>(spike);
    if (at >= run.casts.size()) return out;
    out.overflow_pct = run.casts[at].overflow_pct();
    const std::size_t end = std::min(run.casts.size(), at + 1 + kAfter);
    for (std::size_t t = at + 1; t < end; ++t) out.underflow_pct += run.casts[t].underflow_pct();
    if (end > at + 1) out.underflow_pct /= static_cast<double>(end - at - 1);
    return out;
}

StaleScale stale_scale_of(const Run& run) {
    StaleScale out;
    const auto& steps = run.steps;
    const auto finite_amax = [](const MachineStep& step) { return std::isfinite(step.amax) ? step.amax : 0; };
    const auto spike = std::max_element(steps.begin(), steps.end(), [&](const auto& x, const auto& y) {
        return finite_amax(x) < finite_amax(y);
    });
    if (spike == steps.end() || spike->outcome != Outcome::computed || spike->reduced != spike->amax)
        return out;
    const float scale = spike->scale_next;
    auto at = run.machine.order == "notebook" ? spike : spike + 1;
    const auto first = at;
    while (at != steps.end() && at->scale_used == scale) ++at;
    double unused = 0;
    for (auto step = first; step != at; ++step) {
        const double room =
            run.tops[static_cast<std::size_t>(step - steps.begin())] / static_cast<double>(step->amax);
        if (step->amax > 0 && step != spike) unused = std::max(unused, std::log2(room));
    }
    // Less than two binades, or a single step, is no stale scale.
    if (at - first < 2 || unused < 2) return out;
    out.spike = static_cast<int>(spike - steps.begin());
    out.first = static_cast<int>(first - steps.begin());
    out.count = static_cast<int>(at - first);
    out.whole = at != steps.end();
    out.unused_binades = unused;
    return out;
}

const LabInfo Delayed::kInfo = {
    "delayed",
    5,
    "Delayed scaling",
    "Scaling from the past",
    "A scale from earlier steps saves a pass over the tensor. What if the amax jumps?",
    20,
    "L4"};

std::span<const table::Experiment<Delayed>> Delayed::experiments() {
    static constexpr std::array<table::Experiment<Delayed>, 1> kOne = {
        {{.figures = &Delayed::figures, .metrics = &Delayed::metrics}}};
    return kOne;
}

std::vector<table::Row> Delayed::rows(Params& params) {
    ScenarioSpec& scenario = params.scenario;
    std::vector<table::Row> out = {
        {choice(
            {.name = "scenario", .label = "Scenario", .help = "How the tensor changes from step to step."},
            &scenario.kind, scenario_choices())},
        {.field = number({.name = "growth",
                          .label = "Growth",
                          .unit = "a step",
                          .help = "Growth: the factor of the amax from step to step. Vanishing: the amax is "
                                  "divided by it."},
                         &scenario.growth, 1.05, 4, true),
         .shown = uses_growth(scenario.kind)},
        {.field = number({.name = "jump",
                          .label = "Jump",
                          .help = "How many times larger the spike or the new regime is. Cold start: the "
                                  "amax itself."},
                         &scenario.jump, 0x1p-10, 0x1p12, true),
         .shown = uses_jump(scenario.kind)},
        {.field = text({.name = "series",
                        .label = "Amax file",
                        .help = "A file with one amax per line, as for simulate --amax."},
                       &scenario.series),
         .shown = scenario.kind == "file"},
    };
    std::ranges::move(machine_rows(params.a, ""), std::back_inserter(out));
    out.push_back({.field = integer({.name = "jump_at",
                                     .label = "Jump at step",
                                     .help = "The step of the spike, of the new regime, or of the poisoned "
                                             "step.",
                                     .more = true},
                                    &scenario.jump_at, 1, 200),
                   .shown = uses_jump_at(scenario.kind)});
    for (const std::string_view name : {"tensor", "sigma", "file", "seed"}) {
        const bool used = scenario.kind != "rows" && has_effect(scenario.tensor, name);
        out.push_back({.field = tensor_field(scenario.tensor, name, true), .shown = name == "file" || used});
    }
    out.push_back({tensor_field(scenario.tensor, "cols", true)});
    out.back().field.info.hidden = true;
    out.push_back({choice({.name = "b", .label = "B", .help = "B, which A is compared with.", .hidden = true},
                          &params.other, {{"notebook", "notebook's order"}, {"pinned", "pinned"}})});
    out.push_back(
        {choice({.name = "compare", .label = "Compare", .help = "What the stage shows.", .hidden = true},
                &params.compare, {{"a", "A"}, {"ab", "A + B"}, {"b", "B"}})});
    out.push_back(
        {integer({.name = "step", .label = "Step", .help = "The step under the cursor.", .hidden = true},
                 &params.step, 0, kMostSteps)});
    std::ranges::move(machine_rows(params.b, "b_"), std::back_inserter(out));
    return out;
}

Result Compute::operator()(const Request& asked) {
    if (!tensors_ || made_ != asked.scenario) {
        tensors_ = std::make_shared<const Tensors>(asked.scenario);
        made_ = asked.scenario;
    }
    return {tensors_, run(*tensors_, asked.a), run(*tensors_, asked.b)};
}

Request Delayed::request() const {
    MachineSpec other = params.b;
    if (params.other == "notebook") {
        other = params.a;
        other.order = "notebook";
    }
    return {params.scenario, params.a, other};
}

int Delayed::cursor() const { return std::clamp(params.step, 0, steps() - 1); }

void Delayed::go_to(int step) { params.step = std::clamp(step, 0, steps() - 1); }

bool Delayed::perform(std::string_view action) {
    if (action != "pin" && action != "unpin") return false;
    if (action == "pin") params.b = params.a;
    params.other = action == "pin" ? "pinned" : "notebook";
    return true;
}

Detail Delayed::detail() const {
    Machine machine(shown().machine);
    for (int t = 0; t <= cursor(); ++t) machine.step(tensors().amaxes()[static_cast<std::size_t>(t)]);
    return {machine.recorded(), machine.history()};
}

std::vector<Figure> Delayed::figures() const {
    std::vector<Figure> out = {timeline_figure(*this), casts_figure(*this), sqnr_figure(*this)};
    const TensorSpec& drawn = params.scenario.tensor;
    if (!has_effect(drawn, "seed")) return out;
    if (!tensors().fresh())
        return of_seed(drawn.seed, std::move(out), {"casts"});  // amaxes that are no draw's
    return of_seed(drawn.seed, std::move(out), {"timeline", "casts"});
}

std::vector<table::MetricRow> Delayed::metrics() const {
    std::vector<table::MetricRow> out = {table::known("steps", static_cast<double>(steps()))};
    for (const auto& [name, run] : {std::pair<std::string, const Run*>{"a", &a()}, {"b", &b()}}) {
        const auto add = [&, prefix = name](std::string_view what, double value, std::string unit = {}) {
            out.push_back(table::known(fmt::format("{}.{}", prefix, what), value, std::move(unit)));
        };
        out.push_back(table::known_word(name + ".rule", rule_words(run->machine)));
        out.push_back(table::known_word(name + ".order", order_words(run->machine)));
        add("saturated_steps", run->saturated_steps());
        add("worst_sqnr_db", run->worst_sqnr_db(), "dB");
        add("mean_underflow_pct", run->mean_underflow_pct(), "%");
        add("mean_lost_l1_pct", percent(run->casts, &CastStats::lost_l1_pct), "%");
        add("mean_lost_energy_pct", percent(run->casts, &CastStats::lost_energy_pct), "%");
        add("mean_overflow_pct", run->mean_overflow_pct(), "%");
        add("hangover_steps", stale_scale_of(*run).count);
        out.push_back(table::known_word(name + ".scales", scales_text(*run)));
        const Aftermath spike = aftermath(*run, params.scenario.jump_at);
        if (params.scenario.kind != "spike") continue;
        add("spike_overflow_pct", spike.overflow_pct, "%");
        add("underflow_pct_after_spike", spike.underflow_pct, "%");
    }
    const auto at = static_cast<std::size_t>(cursor());
    const MachineStep& step = shown().steps[at];
    const CastStats& cast = shown().casts[at];
    const auto add = [&](std::string_view what, double value, std::string unit = {}) {
        out.push_back(table::known(fmt::format("step.{}", what), value, std::move(unit)));
    };
    add("t", cursor());
    add("amax", static_cast<double>(step.amax));
    add("scale_used", static_cast<double>(step.scale_used));
    add("amax_scaled", static_cast<double>(step.amax_scaled));
    add("scale_next", static_cast<double>(step.scale_next));
    add("overflow_pct", cast.overflow_pct(), "%");
    add("underflow_pct", cast.underflow_pct(), "%");
    add("lost_l1_pct", cast.lost_l1_pct(), "%");
    add("lost_energy_pct", cast.lost_energy_pct(), "%");
    add("sqnr_db", cast.sqnr_db(), "dB");
    return out;
}

LabEntry entry() { return entry_of<DelayedLab>(Delayed::kInfo); }

std::vector<std::string> Delayed::recipes() const {
    const MachineSpec& a = params.a;
    if (a.algo == "current") return {fmt::format("current:fwd={}:margin={}", a.format, a.margin)};
    if (a.order != "te" || !reduces_recent(a)) return {};
    return {fmt::format("delayed:fwd={}:history={}:algo={}:margin={}:interval={}", a.format, a.history,
                        a.algo, a.margin, a.interval)};
}

}  // namespace fp8lab::delayed
