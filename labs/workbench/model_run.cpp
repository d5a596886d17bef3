#include "labs/workbench/model_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/files/files.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"

namespace fp8lab::workbench {
namespace {

constexpr double kOverBy = 1.3;  // a triangle: what saturates by less is cut by less than an ulp or two
constexpr std::size_t kUsualLanes = 6;  // without the healthy ones

bool has_text(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

// What is shown as lost in a step: a bound from below, of recipes whose scales are not in the log from above.
double shown_pct(const Replay& replay, const ReplayStep& step) {
    return replay.from_above ? step.lost.high : step.lost.low;
}

Lane lane_of(const Replay& replay, const Diagnosis& in) {
    Lane lane;
    lane.lost = replay.mean_lost();
    lane.saturated = replay.saturated();
    lane.mostly_lost = replay.mostly_lost();
    lane.pct.assign(static_cast<std::size_t>(in.bins), -1.0F);
    const std::int64_t first = in.first_step;
    for (std::size_t i = 0; i < replay.steps.size(); ++i) {
        const ReplayStep& step = replay.steps[i];
        const auto bin = static_cast<std::size_t>((step.step - first) / in.bin);
        // The first step has the scale of no history.
        const double pct = i == 0 && !replay.observed ? 0 : shown_pct(replay, step);
        lane.pct[bin] = std::max(lane.pct[bin], static_cast<float>(pct));
        lane.most = std::max(lane.most, pct);
        const bool over = i > 0 && static_cast<double>(step.over) >= kOverBy;
        if (over && (lane.over.empty() || lane.over.back() != bin)) lane.over.push_back(bin);
    }
    return lane;
}

// Up to and with a dot that stands before the ends of all names.
std::size_t common_prefix(const std::vector<TensorSeries>& tensors) {
    if (tensors.size() < 2) return 0;
    std::string_view all = tensors.front().name();
    for (const TensorSeries& each : tensors) {
        const auto end = std::ranges::mismatch(all, each.name()).in1;
        all = all.substr(0, static_cast<std::size_t>(end - all.begin()));
    }
    return all.rfind('.') + 1;  // 0 where there is none
}

}  // namespace

const RunFinding* Diagnosis::finding_of(std::size_t tensor) const {
    const int first = first_finding[tensor];
    return first < 0 ? nullptr : &findings[static_cast<std::size_t>(first)];
}

std::string_view Diagnosis::short_name(std::size_t tensor) const {
    return std::string_view(log->tensors.at(tensor).name()).substr(prefix);
}

double Diagnosis::step_of(double at) const {
    return static_cast<double>(first_step) + at * static_cast<double>(bin);
}

std::string RunTab::paths() const {
    if (params_.run == kSampleRun) return asset("runs/" + params_.run + ".jsonl").string();
    if (params_.run == kInspectedRun) return asset("runs/" + params_.run + ".log").string();
    return params_.run;
}

// The log's own one where it casts to 8 bits; else what the panel says.
Recipe RunTab::recipe_for(const RunLog& log) const {
    if (params_.recipe == kOwnRecipe && !log.recipe.empty()) {
        Recipe own = default_recipe(log);
        if (is_own_recipe(log, own)) return own;
    }
    const std::string name = params_.recipe == kOwnRecipe ? "delayed" : params_.recipe;
    return parse_recipe(name,
                        {.history = params_.history,
                         .margin = params_.margin,
                         .algo = params_.algo == "max" ? AmaxAlgo::max : AmaxAlgo::most_recent},
                        "run_recipe");
}

bool RunTab::judges_own() const {
    return params_.recipe == kOwnRecipe && reads->log && !reads->log->recipe.empty() &&
           is_own_recipe(*reads->log, default_recipe(*reads->log));
}

std::optional<RunTab::DiagnosisRequest> RunTab::diagnosis_request() const {
    if (!reads->log) return std::nullopt;
    Recipe recipe = recipe_for(*reads->log);
    std::string text = recipe_text(recipe);
    return DiagnosisRequest{reads->log, reads->partial, std::move(recipe), std::move(text),
                            params_.lost_at_most};
}

Diagnosis RunTab::diagnose(const DiagnosisRequest& request) {
    Diagnosis out;
    out.log = request.log;
    out.judged = !request.partial;
    out.recipe = request.recipe;
    const RunLog& log = *request.log;
    const bool own = is_own_recipe(log, request.recipe);
    out.first_step = log.first_step(), out.last_step = log.last_step();
    const std::int64_t steps = std::int64_t{out.last_step} - out.first_step + 1;
    out.bin = (steps + Lane::kMostBins - 1) / Lane::kMostBins;
    out.bins = (steps + out.bin - 1) / out.bin;
    out.lanes.resize(log.tensors.size());
    std::vector<char> from_above(log.tensors.size());
    parallel_for(log.tensors.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t t = begin; t < end; ++t) {
            ask_between();
            const Replay of = replay_tensor(log.tensors[t], request.recipe, own);
            from_above[t] = of.from_above;
            out.lanes[t] = lane_of(of, out);
        }
    });
    out.from_above = std::ranges::find(from_above, char{1}) != from_above.end();
    if (out.judged) out.findings = findings(log, request.recipe, {.lost_at_most = request.lost_at_most});
    out.first_finding.assign(log.tensors.size(), -1);
    for (std::size_t i = out.findings.size(); i-- > 0;)
        out.first_finding[out.findings[i].tensor] = static_cast<int>(i);
    out.prefix = common_prefix(log.tensors);
    if (out.judged) {
        out.unknown = without_lost_shares(log, request.recipe);
        out.not_known = not_known(log, request.recipe);
    }
    out.ill = log.tensors.size() - static_cast<std::size_t>(std::ranges::count(out.first_finding, -1));
    return out;
}

std::optional<RunTab::ChosenRequest> RunTab::chosen_request() const {
    const auto tensor = selected();
    if (!tensor) return std::nullopt;
    const Diagnosis& now = *diagnoses;
    return ChosenRequest{{now.log, !now.judged, now.recipe, recipe_text(now.recipe), params_.lost_at_most},
                         *tensor};
}

Chosen RunTab::choose(const ChosenRequest& request) {
    const RunLog& log = *request.of.log;
    const TensorSeries& series = log.tensors.at(request.tensor);
    return {request.tensor, replay_tensor(series, request.of.recipe, is_own_recipe(log, request.of.recipe)),
            histories(series, request.of.recipe)};
}

bool RunTab::perform(std::string_view action) {
    if (action == "scan") return reads.again(), true;
    if (action == "cancel") return reads.cancel(), true;
    return false;
}

std::vector<const RunFinding*> RunTab::shown_findings() const {
    std::vector<const RunFinding*> out;
    for (const RunFinding& each : diagnoses->findings)
        if (has_text(each.name, params_.layers)) out.push_back(&each);
    return out;
}

std::vector<std::size_t> RunTab::lane_order() const {
    const Diagnosis& now = *diagnoses;
    if (!now.log) return {};
    std::vector<std::size_t> out;
    std::vector<bool> has_lane(now.lanes.size());
    for (const RunFinding* each : shown_findings())
        if (!has_lane[each->tensor]) out.push_back(each->tensor), has_lane[each->tensor] = true;
    std::vector<std::size_t> others;
    for (std::size_t t = 0; t < now.lanes.size(); ++t)
        if (!has_lane[t] && has_text(now.log->tensors[t].name(), params_.layers)) others.push_back(t);
    std::ranges::stable_sort(others, std::greater{}, [&](std::size_t t) {
        return std::pair(now.lanes[t].most, now.lanes[t].over.size());
    });
    const std::size_t room = out.size() < kUsualLanes ? kUsualLanes - out.size() : 0;
    if (!params_.healthy && others.size() > room) others.resize(room);
    out.insert(out.end(), others.begin(), others.end());
    return out;
}

// The named one, else that of the first finding, else the one that loses most in a step.
std::optional<std::size_t> RunTab::selected() const {
    const Diagnosis& now = *diagnoses;
    if (!now.log || now.log->tensors.empty()) return std::nullopt;
    if (const TensorSeries* const named = now.log->find(params_.tensor); named && !params_.tensor.empty())
        return static_cast<std::size_t>(named - now.log->tensors.data());
    if (!now.findings.empty()) return now.findings.front().tensor;
    const auto most = std::ranges::max_element(now.lanes, {}, &Lane::most);
    return static_cast<std::size_t>(most - now.lanes.begin());
}

std::int32_t RunTab::cursor() const {
    if (!log()) return 0;
    if (params_.step >= 0) return std::clamp(params_.step, diagnoses->first_step, diagnoses->last_step);
    const auto& steps = choices->replay.steps;
    const auto tensor = selected();
    const RunFinding* const found = tensor ? diagnoses->finding_of(*tensor) : nullptr;
    std::int32_t at = found ? found->step : diagnoses->last_step;
    double most = 0;
    for (std::size_t i = 1; i < steps.size(); ++i)
        if (const double pct = shown_pct(choices->replay, steps[i]); pct > most)
            most = pct, at = steps[i].step;
    return at;
}

const TensorPoint* RunTab::point() const {
    const auto tensor = selected();
    return tensor ? log()->tensors[*tensor].at(cursor()) : nullptr;
}

const ReplayStep* RunTab::replayed() const {
    const auto& steps = choices->replay.steps;
    const auto behind = std::ranges::upper_bound(steps, cursor(), {}, &ReplayStep::step);
    return behind == steps.begin() ? nullptr : &*std::prev(behind);
}

std::int32_t RunTab::step_beside(int direction) const {
    const auto tensor = selected();
    if (!tensor) return 0;
    const auto points = log()->tensors[*tensor].points();
    const std::int32_t now = cursor();
    if (direction > 0) {
        const auto next = std::ranges::upper_bound(points, now, {}, &TensorPoint::step);
        return next == points.end() ? now : next->step;
    }
    const auto at = std::ranges::lower_bound(points, now, {}, &TensorPoint::step);
    return at == points.begin() ? now : std::prev(at)->step;
}

}  // namespace fp8lab::workbench
