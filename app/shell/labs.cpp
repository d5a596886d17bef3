#include "app/shell/labs.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/lesson/lesson.h"

namespace fp8lab {

std::string_view name_of(Tab tab) {
    return tab == Tab::explore ? "explore" : tab == Tab::learn ? "learn" : "exercises";
}

std::string Labs::Entry::name() const { return info().mark_before() + std::string(info().short_title); }

Labs::Labs(Common& common, ExercisesTab& exercises, std::function<void()> leaving)
    : common_(common), exercises_(exercises), leaving_(std::move(leaving)) {
    for (const LabEntry& entry : lab_registry()) {
        Entry made;
        made.lab = entry.make();
        made.lab->set_wake(common_.host.wake);
        made.thumbnail = made.lab->thumbnail();
        entries_.push_back(std::move(made));
    }
}

void Labs::update(Entry& entry) {
    try {
        entry.lab->update();
        entry.failure.clear();
    } catch (const std::exception& error) {  // the lab stops, the window goes on
        entry.failure = error.what();
    }
}

Labs::Entry* Labs::find(std::string_view id) {
    const auto found = std::ranges::find(entries_, id, [](const Entry& entry) { return entry.info().id; });
    return found == entries_.end() ? nullptr : &*found;
}

Labs::Entry& Labs::entry_of(const Lab& lab) { return *find(lab.info().id); }

Lab* Labs::lab() {
    Entry* entry = current();
    return entry == nullptr ? nullptr : entry->lab.get();
}

void Labs::open(std::string_view id) {
    leaving_();
    if (open_ == id) return;
    if (Entry* left = current()) left->thumbnail = left->lab->thumbnail();
    open_ = id;
    common_.toasts.let_go();
    common_.context.focus = {};
    Entry* entry = current();
    if (entry == nullptr) return;
    common_.settings.last_lab = open_;
    if (!entry->view) entry->view = make_view(*entry->lab);
    update(*entry);
}

std::string Labs::progress_words() const {
    std::size_t all = 0, passed = 0;
    for (const Entry& entry : entries_)
        for (const Exercise& exercise : entry.lab->exercises()) {
            ++all;
            passed += exercises_.progress().passed(exercise.id) != nullptr ? 1 : 0;
        }
    return fmt::format("{} of {} exercises", passed, all);
}

void Labs::show(Tab tab) {
    if (!open_.empty()) common_.settings.tabs[open_] = name_of(tab);
    common_.settings.panel_open = true;
    panel_open_narrow = true;
}

void Labs::toggle_panel() {
    bool& open = narrow ? panel_open_narrow : common_.settings.panel_open;
    open = !open;
}

std::vector<Tab> Labs::tabs_of(const Entry& entry) {
    const auto [lesson, is_new] = lessons_.try_emplace(std::string(entry.info().id));
    if (is_new) lesson->second = lesson_of(lesson->first);
    std::vector<Tab> tabs = {Tab::explore};
    if (!lesson->second.empty()) tabs.push_back(Tab::learn);
    if (!entry.lab->exercises().empty()) tabs.push_back(Tab::exercises);
    return tabs;
}

// The one that it was left with, where the lab has it; at first the lesson.
Tab Labs::shown_tab(const Entry& entry) {
    const auto tabs = tabs_of(entry);
    const auto& left_with = common_.settings.tabs;
    const auto left = left_with.find(entry.info().id);
    const std::string_view wanted = left == left_with.end() ? name_of(Tab::learn) : left->second;
    const auto tab = std::ranges::find(tabs, wanted, name_of);
    return tab == tabs.end() ? Tab::explore : *tab;
}

bool Labs::predicting(const Entry& entry) {
    return panel_shown && shown_tab(entry) == Tab::exercises && exercises_.predicting(*entry.lab);
}

}  // namespace fp8lab
