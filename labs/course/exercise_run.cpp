#include "labs/course/exercise_run.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>

#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/threads/worker.h"

namespace fp8lab {

namespace {

std::vector<std::pair<std::string, std::string>> fields_of(Lab& lab) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Field& field : lab.fields()) out.emplace_back(field.info.name, field_text(field));
    return out;
}

// What the lab shows is of its present fields. The first update() asks for it; the second takes a result that
// was there before busy() looked.
bool rests(Lab& lab) {
    if (lab.busy()) return false;
    lab.update();
    if (lab.busy()) return false;
    lab.update();
    return true;
}

// Headless labs compute inline; one that trains or has a window does not.
void settle(Lab& lab, const Between& between = {}) {
    while (!rests(lab)) {
        if (between) between();
        wait_for_workers();
        lab.update();
    }
}

void set_fields(Lab& lab, std::span<const Event> events) {
    for (const Event& event : events)
        if (event.kind == Event::Kind::set) set_field(lab.fields(), event.name + "=" + event.value);
}

}  // namespace

State observe(Lab& lab) {
    State state{.fields = fields_of(lab), .metrics = {}};
    if (!lab.live()) {
        state.metrics = lab.metrics();
        return state;
    }
    const std::string record = lab.record();
    if (record.empty()) return state;
    // Not from the lab itself: the numbers must be those that `check` gets from the record.
    const auto other = find_lab(lab.info().id).make();
    for (const auto& [name, value] : state.fields) set_field(other->fields(), name + "=" + value);
    other->replay(record);
    state.metrics = other->metrics();
    return state;
}

void begin_exercise(Lab& lab, const Exercise& exercise) {
    lab.reset();
    for (const std::string& entry : exercise.start)
        if (entry.find('=') != entry.npos) set_field(lab.fields(), entry);
    settle(lab);
}

std::vector<Event> kept_events(Lab& lab, const Exercise& exercise) {
    std::vector<Event> out;
    const std::vector<Field> fields = lab.fields(), defaults = lab.defaults();
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const std::string &name = fields[i].info.name, value = field_text(fields[i]);
        const auto kept = [&](const std::string& entry) { return keeps(entry, name); };
        const auto sets_it = [&](const std::string& entry) { return entry.starts_with(name + "="); };
        if (value != field_text(defaults[i]) && std::ranges::any_of(exercise.start, kept) &&
            std::ranges::none_of(exercise.start, sets_it))
            out.push_back(sets(name, value));
    }
    return out;
}

void carry_out(Lab& lab, std::span<const Event> events, const Between& between) {
    for (const Event& event : events) {
        if (between) between();
        if (event.kind == Event::Kind::set) set_fields(lab, {&event, 1});
        if (event.kind == Event::Kind::act) {
            settle(lab, between);
            lab.act(event.name);
        }
    }
    settle(lab, between);
}

Trail replay(Lab& lab, const Exercise& exercise, std::span<const Evidence::EventGroup> groups,
             const Between& between) {
    begin_exercise(lab, exercise);
    Trail trail{.start = observe(lab), .steps = {}};
    for (const Evidence::EventGroup& group : groups) {
        if (lab.live()) {
            if (between) between();
            set_fields(lab, group.events);
            lab.replay(group.record);
        } else {
            // A state on the way may be one that the lab refuses: in the window it says so, and the learner goes on.
            try {
                carry_out(lab, group.events, between);
            } catch (const Error&) {
                if (&group == &groups.back()) throw;
            }
        }
        trail.steps.push_back({group.events, observe(lab), group.record});
    }
    return trail;
}

Trail perform(Lab& lab, const Exercise& exercise, std::span<const Event> events) {
    begin_exercise(lab, exercise);
    Trail trail{.start = observe(lab), .steps = {}};
    for (const Event& event : events) {
        carry_out(lab, {&event, 1});
        trail.steps.push_back({{event}, observe(lab), lab.record()});
    }
    return trail;
}

// ---- one attempt in the window

ExerciseRun::ExerciseRun(Lab& lab, const Exercise& exercise, Prediction prediction)
    : ExerciseRun(lab, exercise, std::move(prediction), {}, 0) {}

ExerciseRun::ExerciseRun(Lab& lab, const Exercise& exercise, Prediction prediction,
                         std::span<const Evidence::EventGroup> groups, int hints)
    : lab_(lab), exercise_(exercise), prediction_(std::move(prediction)), hints_(hints) {
    trail_ = replay(lab_, exercise_, groups);
    lab_.set_listener([this](std::string_view action) {
        note_edits();
        pending_.push_back(acts(std::string(action)));
        acted_ = true;
    });
    seen_ = fields_of(lab_);
    judge();
}

ExerciseRun::~ExerciseRun() { lab_.set_listener({}); }

void ExerciseRun::note_edits() {
    const Fields now = fields_of(lab_);
    for (std::size_t i = 0; i < now.size(); ++i)
        if (now[i] != seen_[i]) pending_.push_back(sets(now[i].first, now[i].second));
    seen_ = now;
}

bool ExerciseRun::follow(bool hands_off) {
    if (acted_) seen_ = fields_of(lab_);
    acted_ = false;
    if (hands_off) note_edits();
    if (pending_.empty()) return false;
    if (!rests(lab_)) return look_at_training(), false;
    trail_.steps.push_back({std::move(pending_), observe(lab_), lab_.record()});
    pending_.clear();
    judge();
    return true;
}

void ExerciseRun::answer(std::string_view name, std::string text) {
    pending_.push_back(types(std::string(name), std::move(text)));
}

void ExerciseRun::open_hint() { hints_ = std::min(hints_ + 1, static_cast<int>(exercise_.hints.size())); }

namespace {
constexpr double kNotCounted = -2;  // a step that no training has
}

void ExerciseRun::judge() {
    verdict_ = present_ = judge_exercise(exercise_, trail_, &prediction_);
    judged_step_ = -1;
    if (!trail_.steps.empty() && trail_.steps.back().record.empty()) look_at_training();
}

// A step that is taken away again: what the training has not ended with is no part of the trail. A run that will
// leave no record is judged by none of its numbers.
void ExerciseRun::look_at_training() {
    if (!lab_.live()) return;
    const bool counts = lab_.no_record().empty();
    State state{.fields = fields_of(lab_), .metrics = counts ? lab_.metrics() : std::vector<Metric>{}};
    const double step = counts ? state.number("step") : kNotCounted;
    if (step == judged_step_) return;
    judged_step_ = step;
    trail_.steps.push_back({pending_, std::move(state), {}});
    present_ = judge_exercise(exercise_, trail_, &prediction_);
    trail_.steps.pop_back();
}

Evidence ExerciseRun::evidence() const {
    Evidence out{.lab = std::string(lab_.info().id),
                 .exercise = exercise_.id,
                 .version = FP8LAB_VERSION,
                 .provenance = std::string(to_string(lab_.provenance())),
                 .device = lab_.device().empty() ? cpu_backend()->device().name : lab_.device(),
                 .seed = trail_.now().text("seed"),
                 .at = local_time(),
                 .prediction = prediction_,
                 .hints = hints_,
                 .explanation = {},
                 .start = trail_.start.fields,
                 .groups = {},
                 .values = trail_.now().metrics,
                 .conditions = verdict_.conditions,
                 .measured = verdict_.measured};
    // What was not computed, as after a stop, is not claimed.
    std::erase_if(out.values, [](const Metric& m) { return m.text.empty() && std::isnan(m.value); });
    for (const Step& step : trail_.steps) out.groups.push_back({step.events, step.record});
    return out;
}

std::vector<ExerciseEntry> all_exercises() {
    std::vector<ExerciseEntry> out;
    for (const LabEntry& entry : lab_registry())
        for (const Exercise& exercise : entry.make()->exercises()) out.push_back({&entry, &exercise});
    return out;
}

std::string local_time() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::localtime(now));
}

}  // namespace fp8lab
