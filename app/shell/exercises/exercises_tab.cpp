#include "app/shell/exercises/exercises_tab.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {

namespace {

// "2026-11-21T18:52:07" -> "18:52"
std::string clock_of(const Prediction& prediction) {
    return prediction.at.size() >= 16 ? prediction.at.substr(11, 5) : "";
}

}  // namespace

ExercisesTab::ExercisesTab(ui::Context& context, const ProfileFolders& folders, Hooks hooks)
    : context_(context), progress_(folders), hooks_(std::move(hooks)) {}

const ExercisesTab::Session& ExercisesTab::session(const Lab& lab) const {
    static const Session kNone;
    const auto found = sessions_.find(lab.info().id);
    return found == sessions_.end() ? kNone : found->second;
}

ExercisesTab::Session& ExercisesTab::session(const Lab& lab) {
    const auto [at, is_new] = sessions_.try_emplace(std::string(lab.info().id));
    if (is_new) {  // opens on the first that is not passed
        const auto exercises = lab.exercises();
        const auto open = std::ranges::find_if(
            exercises, [&](const Exercise& exercise) { return !progress_.passed(exercise.id); });
        if (open != exercises.end()) at->second.selected = static_cast<std::size_t>(open - exercises.begin());
    }
    return at->second;
}

const Exercise* ExercisesTab::selected(const Lab& lab) const {
    const auto exercises = lab.exercises();
    const std::size_t index = session(lab).selected;
    return index < exercises.size() ? &exercises[index] : nullptr;
}

const ExerciseRun* ExercisesTab::running(const Lab& lab) const {
    const Exercise* exercise = selected(lab);
    const auto& run = session(lab).run;
    return exercise && run && run->exercise().id == exercise->id ? run.get() : nullptr;
}

float ExercisesTab::share(const Lab& lab) const {
    const auto exercises = lab.exercises();
    if (exercises.empty()) return std::numeric_limits<float>::quiet_NaN();
    const auto passed = std::ranges::count_if(
        exercises, [&](const Exercise& exercise) { return progress_.passed(exercise.id) != nullptr; });
    return static_cast<float>(passed) / static_cast<float>(exercises.size());
}

bool ExercisesTab::predicting(const Lab& lab) const {
    const Exercise* exercise = selected(lab);
    if (!exercise || exercise->predict.empty() || running(lab)) return false;
    const bool known = progress_.passed(exercise->id) || progress_.prediction(exercise->id);
    return !known || session(lab).again;
}

void ExercisesTab::select(const Lab& lab, std::size_t exercise) {
    Session& open = session(lab);
    if (open.selected == exercise) return;
    open.selected = exercise;
    open.again = false;
    open.draft.clear();
}

void ExercisesTab::begin(Lab& lab, Prediction prediction) {
    const Exercise* exercise = selected(lab);
    if (!exercise) return;
    Session& open = session(lab);
    const bool passed = progress_.passed(exercise->id) != nullptr;
    std::vector<Evidence::EventGroup> groups;
    if (auto kept = kept_events(lab, *exercise); !kept.empty()) groups.push_back({std::move(kept), {}});
    if (open.run)
        hooks_.lose(lab, "Another attempt begun", "Ctrl Z brings " + open.run->exercise().id + " back");
    else if (passed && !groups.empty())
        hooks_.lose(lab, "Begun from the start", "Ctrl Z brings back what was done before");
    else if (passed && !open.again)
        hooks_.lose(lab, "Begun again", "Ctrl Z brings the verdict back");
    else
        hooks_.lose(lab, "", "");
    if (passed) groups.clear();  // with what passed it there would be nothing left to do
    open.run.reset();            // stops listening before the next one starts
    if (!exercise->predict.empty() && !prediction.at.empty()) {
        try {
            progress_.keep(exercise->id, prediction);
        } catch (const Error& error) {
            hooks_.say("The prediction was not saved", error.what());
        }
    }
    open.run = std::make_unique<ExerciseRun>(lab, *exercise, std::move(prediction), groups, 0);
    open.noted = 0;
    open.again = false;
    open.draft.clear();
    open.typed.clear();
    if (open.run->verdict().passed()) finish(lab);  // by what was kept
}

void ExercisesTab::do_again(Lab& lab) {
    const Exercise& exercise = *selected(lab);
    if (exercise.predict.empty()) return begin(lab, {.skipped = true, .values = {}, .at = {}});
    hooks_.lose(lab, "To be done again", "Ctrl Z brings the verdict back");
    session(lab).again = true;
}

bool ExercisesTab::restart(Lab& lab) {
    Session& open = session(lab);
    if (!open.run) return false;
    const Exercise& exercise = open.run->exercise();
    Prediction prediction = open.run->prediction();
    open.run.reset();
    open.run = std::make_unique<ExerciseRun>(lab, exercise, std::move(prediction));
    open.noted = 0;
    open.typed.clear();
    return true;
}

void ExercisesTab::follow(Lab& lab) {
    Session& open = session(lab);
    if (!open.run) return;
    try {
        if (!open.run->follow(!ImGui::GetIO().MouseDown[0])) return;
    } catch (const std::exception&) {
        return;  // the stage says what the lab refuses
    }
    context_.wants_redraw = true;  // the panel was drawn before there was this verdict
    if (open.run->verdict().passed()) finish(lab);
}

const State* ExercisesTab::start(const Lab& lab) const {
    const Session& open = session(lab);
    return open.run ? &open.run->trail().start : nullptr;
}

void ExercisesTab::finish(Lab& lab) {
    Session& open = session(lab);
    Evidence evidence = open.run->evidence();
    if (const Evidence* before = progress_.passed(evidence.exercise))
        evidence.explanation = before->explanation;
    const std::string title = open.run->exercise().title;
    const std::vector<std::string>& uncovers = open.run->exercise().uncovers;
    open.run.reset();
    for (const std::string& assignment : uncovers) set_field(lab.fields(), assignment);
    try {
        progress_.keep(evidence);
        hooks_.say("Passed: " + title, "Evidence kept, under Exercises");
    } catch (const Error& error) {
        hooks_.say("Passed, but not saved", error.what());
    }
    reveal(lab);
}

void ExercisesTab::reveal(Lab& lab) const {
    if (under_way(lab)) return;
    for (const Exercise& exercise : lab.exercises())
        if (!exercise.reveals.empty() && progress_.passed(exercise.id)) lab.act(exercise.reveals);
}

bool ExercisesTab::has_hint(const Lab& lab) const {
    const ExerciseRun* run = running(lab);
    return run && run->hints() < static_cast<int>(run->exercise().hints.size());
}

void ExercisesTab::next_hint(const Lab& lab) {
    if (has_hint(lab)) session(lab).run->open_hint();
}

// Over the figure: what was predicted for it, once the run is on.
void ExercisesTab::lay_over(const Lab& lab) {
    const Exercise* exercise = selected(lab);
    const auto* curve = exercise ? std::get_if<CurvePrediction>(&exercise->prediction) : nullptr;
    if (!curve || predicting(lab)) return;
    const ExerciseRun* run = running(lab);
    const Evidence* evidence = progress_.passed(exercise->id);
    const Prediction* prediction = run ? &run->prediction() : evidence ? &evidence->prediction : nullptr;
    if (!prediction || prediction->skipped ||
        prediction->values.size() != curve->at.size() * curve->lines.size())
        return;
    for (std::size_t line = 0; line < curve->lines.size(); ++line) {
        const auto first = prediction->values.begin() + static_cast<std::ptrdiff_t>(line * curve->at.size());
        context_.overlays[curve->figure].push_back(
            {.name = curve->lines[line] + ", " + clock_of(*prediction),
             .shape = LineSeries{data(curve->at),
                                 data({first, first + static_cast<std::ptrdiff_t>(curve->at.size())})},
             .style = {.color = {Role::text},
                       .dash = line == 0 ? Dash::dash : Dash::dot,
                       .marker = Marker::ring,
                       .marker_size = 5}});
    }
}

}  // namespace fp8lab
