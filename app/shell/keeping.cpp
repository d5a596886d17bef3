#include "app/shell/keeping.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/shell/past.h"
#include "core/base/names.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;
constexpr double kRetry_s = 10;
constexpr int kSteps = 100;  // of a training are noted: one line of the journal for so many

}  // namespace

Keeping::Keeping(Common& common, Labs& labs, ExercisesTab& exercises)
    : common_(common),
      labs_(labs),
      exercises_(exercises),
      recovery_(common.folders, !common.host.reloads, [this](std::string title, std::string line) {
          common_.toasts.warn(std::move(title), std::move(line));
      }) {
    for (const Labs::Entry& entry : labs_.entries())
        recovery_.journal().assume("lab." + std::string(entry.info().id), entry.lab->state());
    for (const Labs::Entry& entry : labs_.entries())
        if (entry.lab->live()) recovery_.journal().assume("trained." + std::string(entry.info().id), 0);
    recovery_.journal().assume("desk", {{"lab", ""}, {"tab", "explore"}});
}

void Keeping::journal(Journal& journal) {
    const std::string at = local_time();
    for (Labs::Entry& entry : labs_.entries()) {
        const std::string id(entry.info().id);
        if (!entry.view) continue;  // never shown
        exercises_.note(journal, *entry.lab, at);
        journal.note("lab." + id, entry.lab->state(), at);
        if (entry.lab->live())
            journal.note("trained." + id, entry.lab->trained_steps() / kSteps * kSteps, at);
    }
    Labs::Entry* entry = labs_.current();
    const Tab tab = entry == nullptr ? Tab::explore : labs_.shown_tab(*entry);
    journal.note("desk", {{"lab", labs_.open_id()}, {"tab", name_of(tab)}}, at);
    const ui::Context::Typing& typing = common_.context.typing;
    const Json typed = {{"lab", labs_.open_id()}, {"name", typing.name}, {"text", typing.text}};
    if (typing.name.empty()) journal.assume("typing", nullptr);
    journal.note("typing", typing.name.empty() ? Json() : typed, at);
}

bool Keeping::ask() {
    if (!recovery_.asking()) return false;
    common_.context.focus.reach = ui::Focus::Reach::live;
    if (!recovery_.draw(common_.context)) return false;
    if (const auto left = recovery_.restoring()) restore(*left);
    return true;
}

void Keeping::restore_left() {
    if (!recovery_.asking()) return;
    recovery_.accept();
    if (const auto left = recovery_.restoring()) restore(*left);
}

void Keeping::restore(const Journal::Left& left) {
    std::string lost;
    std::vector<std::string> note_lost;  // trainings that are told, and not again at the next start
    for (Labs::Entry& entry : labs_.entries()) {
        const std::string id(entry.info().id);
        try {
            exercises_.restore(*entry.lab, left.values);
            const auto state = left.values.find("lab." + id);
            if (state != left.values.end()) entry.lab->restore(state->second);
        } catch (const std::exception& error) {
            lost += fmt::format("{}{}: {}", lost.empty() ? "" : "; ", entry.info().name(), error.what());
        }
        const auto steps = left.values.find("trained." + id);
        if (steps == left.values.end() || !steps->second.is_number_integer() || steps->second < kSteps)
            continue;
        note_lost.push_back("trained." + id);
        common_.toasts.warn("A training was lost",
                            fmt::format("that of {} ended at step {} or up to {} later", entry.info().name(),
                                        steps->second.get<long>(), kSteps - 1));
    }
    const auto value = [&](const char* key) {
        const auto found = left.values.find(key);
        return found != left.values.end() && found->second.is_object() ? found->second : Json::object();
    };
    const auto word = [](const Json& json, const char* name) {
        const auto found = json.find(name);
        return found != json.end() && found->is_string() ? found->get<std::string>() : "";
    };
    const Json desk = value("desk"), typing = value("typing");
    const std::string lab = word(desk, "lab");
    if (labs_.find(lab) != nullptr) labs_.open(lab);
    const std::string& open = labs_.open_id();
    for (const Tab tab : {Tab::explore, Tab::learn, Tab::exercises})
        if (!open.empty() && word(desk, "tab") == name_of(tab)) common_.settings.tabs[open] = name_of(tab);
    if (!word(typing, "name").empty() && word(typing, "lab") == open)
        common_.context.typing = {word(typing, "name"), word(typing, "text"), true};
    if (!lost.empty()) common_.toasts.warn("Not everything was restored", lost);
    recovery_.note([&](Journal& journal) {
        for (const std::string& training : note_lost) journal.note(training, 0, local_time());
    });
}

double Keeping::rest(double now_s) {
    double due = std::numeric_limits<double>::infinity();
    if (!exercises_.progress().unsaved().empty()) {
        if (now_s >= retried_s_ + kRetry_s) {
            retried_s_ = now_s;
            if (exercises_.retry()) common_.toasts.say("Saved now", "What could not be saved before is");
            common_.context.wants_redraw = true;
        }
        due = retried_s_ + kRetry_s - now_s;
    }
    due = std::min(due, common_.toasts.rest(now_s));
    if (!recovery_.keeps()) return due;
    const bool was_refused = !recovery_.problem().empty();
    if (!any_button_down()) recovery_.note([this](Journal& to) { journal(to); });
    due = std::min(due, recovery_.sync(now_s));
    const bool refused = !recovery_.problem().empty();
    if (refused != was_refused) common_.context.wants_redraw = true;
    return refused ? std::min(due, kRetry_s) : due;
}

std::string Keeping::close() {
    const auto& unsaved = exercises_.progress().unsaved();
    if (!unsaved.empty() && !exercises_.retry())
        return fmt::format("{} could not be saved in {}",
                           some_names(unsaved, [](const std::string& id) { return id; }),
                           common_.folders.data.string());
    recovery_.close();
    return {};
}

std::vector<std::pair<std::string, std::string>> Keeping::notices() const {
    std::vector<std::pair<std::string, std::string>> out;
    if (!common_.folders.why_read_only.empty()) out.emplace_back("Read only", common_.folders.why_read_only);
    if (!recovery_.problem().empty()) out.emplace_back(kCrashWould, recovery_.problem());
    const std::size_t unsaved = exercises_.progress().unsaved().size();
    if (unsaved > 0)
        out.emplace_back("Not saved yet",
                         fmt::format("{} {}, tried again", unsaved, unsaved == 1 ? "file" : "files"));
    return out;
}

}  // namespace fp8lab
