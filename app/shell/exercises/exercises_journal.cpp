// An attempt under way, set aside and brought back; as the journal has it: everything of a session but its event
// groups, and each of them.
#include <fmt/format.h>

#include <algorithm>

#include "app/shell/exercises/exercises_tab.h"
#include "core/base/error.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;
constexpr int kMost = 1'000'000;  // event groups of an attempt

std::string group_key(const Lab& lab, std::size_t i) { return fmt::format("deed.{}.{}", lab.info().id, i); }

}  // namespace

ExercisesTab::Aside ExercisesTab::aside(const Lab& lab) const {
    const Session& open = session(lab);
    Aside out{open.selected, open.again, open.draft, open.typed, {}};
    if (!open.run) return out;
    out.run = {&open.run->exercise(), open.run->prediction(), {}, open.run->hints()};
    for (const Step& step : open.run->trail().steps) out.run->groups.push_back({step.events, step.record});
    return out;
}

void ExercisesTab::bring_back(Lab& lab, const Aside& aside) {
    Session& open = session(lab);
    open.run.reset();  // stops listening before the lab is set
    open.selected = aside.selected;
    open.again = aside.again;
    open.draft = aside.draft;
    open.typed = aside.typed;
    open.noted = 0;
    if (aside.run)
        open.run = std::make_unique<ExerciseRun>(lab, *aside.run->exercise, aside.run->prediction,
                                                 aside.run->groups, aside.run->hints);
}

void ExercisesTab::note(Journal& journal, const Lab& lab, const std::string& at) {
    const auto found = sessions_.find(lab.info().id);
    if (found == sessions_.end()) return;
    Session& open = found->second;
    Json json = {{"selected", open.selected}, {"again", open.again}, {"draft", open.draft}};
    if (open.run) {
        const auto& steps = open.run->trail().steps;
        for (; open.noted < steps.size(); ++open.noted) {
            const Step& step = steps[open.noted];
            journal.note(group_key(lab, open.noted), to_json(Evidence::EventGroup{step.events, step.record}),
                         at);
        }
        json["run"] = {{"exercise", open.run->exercise().id},
                       {"prediction", to_json(open.run->prediction())},
                       {"hints", open.run->hints()},
                       {"typed", open.typed},
                       {"deeds", open.noted}};
    }
    const std::string key = fmt::format("attempt.{}", lab.info().id);
    // A tab that was only looked at has nothing to lose.
    if (!open.run && open.draft.empty() && !open.again) journal.assume(key, json);
    journal.note(key, std::move(json), at);
}

void ExercisesTab::restore(Lab& lab, const std::map<std::string, Json>& values) {
    const auto found = values.find(fmt::format("attempt.{}", lab.info().id));
    if (found == values.end()) return;
    const Json& json = found->second;
    const auto last = static_cast<int>(lab.exercises().size()) - 1;
    Aside aside;
    aside.selected = static_cast<std::size_t>(std::min(integer_from(json.at("selected"), 0, kMost), last));
    aside.again = json.at("again").get<bool>();
    aside.draft = json.at("draft").get<std::vector<double>>();
    if (json.contains("run")) {
        const Json& run = json["run"];
        const auto exercise = std::ranges::find(lab.exercises(), run.at("exercise").get<std::string>(),
                                                [](const Exercise& e) { return e.id; });
        if (exercise == lab.exercises().end())
            throw input_error("journal", "there is no exercise " + run["exercise"].dump());
        std::vector<Evidence::EventGroup> groups;
        const int count = integer_from(run.at("deeds"), 0, kMost);
        for (int i = 0; i < count; ++i)
            groups.push_back(event_group_from(values.at(group_key(lab, static_cast<std::size_t>(i)))));
        aside.run = {&*exercise, prediction_from(run.at("prediction")), std::move(groups),
                     integer_from(run.at("hints"), 0, kMost)};
        aside.typed = run.at("typed").get<std::map<std::string, std::string>>();
    }
    bring_back(lab, aside);
    if (!aside.run) return;
    Session& open = session(lab);
    open.noted = aside.run->groups.size();
    if (open.run->verdict().passed()) finish(lab);  // it crashed between the pass and its evidence
}

}  // namespace fp8lab
