// The labs, which of them is on the stage, and which tab its panel shows.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/shell/common.h"
#include "app/shell/exercises/exercises_tab.h"
#include "core/lesson/scene.h"
#include "labs/course/undo.h"
#include "labs/lab.h"
#include "labs/view.h"

namespace fp8lab {

enum class Tab { explore, learn, exercises };
std::string_view name_of(Tab tab);  // "learn", as in files

class Labs {
  public:
    struct Entry {  // a lab of the registry; its view is made when it is first shown
        std::unique_ptr<Lab> lab;
        std::unique_ptr<LabView> view;
        Figure thumbnail;
        std::optional<Scene> scene;  // that it was brought to; Reset all lets go of it
        std::string failure;         // what update() threw, as a sentence
        UndoHistory undo;
        const LabInfo& info() const { return lab->info(); }
        std::string name() const;  // "L5 Delayed scaling"
    };

    // `leaving` is called before another lab is opened, or the same again.
    Labs(Common& common, ExercisesTab& exercises, std::function<void()> leaving);

    std::span<Entry> entries() { return entries_; }
    Entry* find(std::string_view id);  // null: there is none
    Entry& entry_of(const Lab& lab);
    static void update(Entry& entry);  // a failure stops the lab, not the window

    void open(std::string_view id);  // empty: home
    const std::string& open_id() const { return open_; }
    Entry* current() { return find(open_); }  // null on home
    Lab* lab();                               // of current()
    std::string progress_words() const;       // "3 of 76 exercises"

    void show(Tab tab);  // of the lab on the stage, and the panel
    void toggle_panel();
    std::vector<Tab> tabs_of(const Entry& entry);
    Tab shown_tab(const Entry& entry);
    const std::string& lesson() { return lessons_[open_]; }  // Markdown, of the lab on the stage
    bool predicting(const Entry& entry);                     // the panel asks for a prediction

    // Of the frame at hand.
    bool narrow = false;             // WindowLayout::narrow
    bool panel_shown = false;        // it is open
    bool panel_open_narrow = false;  // in a narrow window; in a wide one Settings::panel_open

  private:
    Common& common_;
    ExercisesTab& exercises_;
    std::function<void()> leaving_;
    std::vector<Entry> entries_;
    std::string open_;                            // id; empty: home
    std::map<std::string, std::string> lessons_;  // id -> Markdown, read when first shown
};

}  // namespace fp8lab
