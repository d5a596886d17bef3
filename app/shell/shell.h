// Everything inside the window: rail, stage, panel, status line. Draws with ImGui only: no window and no
// OpenGL, so that tests can draw every screen without a display.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/shell/claims.h"
#include "app/shell/exercises/exercises_tab.h"
#include "app/shell/export/export_panel.h"
#include "app/shell/layout.h"
#include "app/shell/machine.h"
#include "app/shell/present/present.h"
#include "app/shell/profile/profile.h"
#include "app/shell/profile/recovery.h"
#include "app/shell/sheets/commands.h"
#include "app/shell/sheets/finder.h"
#include "app/shell/sheets/glossary_sheet.h"
#include "app/shell/sheets/help_mode.h"
#include "app/shell/sheets/scene_sheet.h"
#include "app/shell/sheets/term_picture.h"
#include "app/shell/sheets/tour.h"
#include "app/shell/sheets/words_sheet.h"
#include "app/shell/toasts.h"
#include "labs/course/undo.h"
#include "labs/lab.h"
#include "labs/ui/context.h"
#include "labs/view.h"

namespace fp8lab {

enum class Tab { explore, learn, exercises };
std::string_view name_of(Tab tab);                                 // "learn", as in files
enum class Sheet { none, palette, keys, glossary, scene, words };  // what lies over the window; one at a time

// A row of the palette and what it does.
struct Find {
    FindRow row;
    std::function<void()> run;
};

class Shell {
  public:
    // `wake` is handed to live labs: called from their workers when there is something new to draw.
    Shell(ui::Context& context, Settings settings, Machine machine, ProfileFolders folders,
          std::function<void()> wake = {});

    // One frame, between ImGui::NewFrame() and ImGui::Render(). `frame_ms`: our own work for the last one; <
    // 0: not shown.
    void frame(double frame_ms);

    void open(std::string_view lab);                // id; empty: home
    void show(Tab tab);                             // of the lab on the stage, and the panel
    void say(std::string title, std::string line);  // toast; on home in the status line
    // The same, of something that Ctrl Z takes back: the toast has a button for it.
    void say_undoable(std::string title, std::string line);
    // A fault that is not about what was just done: stays until it is closed.
    void warn(std::string title, std::string line);

    // Called between frames: notes what changed and is kept nowhere else, and saves again what could not be saved.
    // Returns in how many seconds it wants to be called at the latest; infinity: it does not.
    double rest(double now_s);
    // The window was closed. Returns what is lost by that, as a sentence; empty: nothing.
    std::string close();

    void open(Sheet sheet);               // none: closes what is open
    void show_term(std::string_view id);  // in the glossary
    void start_tour();
    void explain(std::string_view control);  // F1 on it
    // "palette", "keys", "glossary", "glossary:amax", "help:history", "tour", "words". Throws usage_error.
    void open_by_name(std::string_view name);
    // More rows for the palette: scenes, say. Asked each time it opens.
    void offer(std::function<std::vector<Find>()> more) { offers_.push_back(std::move(more)); }

    Lab* lab();  // the one on the stage; null on home
    // A lecture; throws input_error where a scene does not fit. present(): the lab on the stage, as it
    // stands.
    void present(Deck deck);
    void present();
    void open(const Scene& scene);  // its lab, on the desk; throws input_error
    // Scenes, decks or tensors that were dropped on the window; a toast says what is wrong with one. Several tensors are
    // one list where the lab takes it, else the last is opened.
    void open_files(std::span<const std::string> paths);
    void open_file(const std::filesystem::path& path);
    void lead_to(
        const ui::Context::WantedLab& wanted);  // that lab, with these fields; a toast says what is wrong
    void paste();                               // a scene as text, from the clipboard
    Presentation& presentation() { return presentation_; }
    ExercisesTab& exercises() { return exercises_; }
    const Settings& settings() const { return settings_; }  // what is to be saved
    bool fonts_outdated() const;  // the scale was changed: call load_fonts() before the next frame

  private:
    struct Entry {  // a lab of the registry; its view is made when it is first shown
        std::unique_ptr<Lab> lab;
        std::unique_ptr<LabView> view;
        Figure thumbnail;
        std::optional<Scene> scene;  // that it was brought to; Reset all lets go of it
        std::string failure;         // what update() threw, as a sentence
        UndoHistory undo;
    };
    // What an action may lose beside the fields.
    struct Lost {
        nlohmann::json state;
        std::string record;  // of a finished training
        std::optional<Scene> scene;
        ExercisesTab::Aside attempt;
    };

    void add_commands();  // command_table.cpp
    void keys();
    void presentation_keys();
    std::vector<Find> scenes();                                           // shipped and own, for the palette
    std::vector<std::pair<std::string, std::string>> held(Entry& entry);  // fields that a scene locks
    void hold(Entry& entry, const std::vector<std::pair<std::string, std::string>>& held);
    static void begin_whole_window();
    void frame_presentation();
    void run_command(const Chord& chord);
    // shell_state.cpp
    void note_undo(Entry& entry);
    void travel(Entry& entry, const nlohmann::json* state);  // null: nowhere to go
    Lost what_is(Entry& entry);
    void bring_back(Entry& entry, const Lost& lost);
    // Ctrl Z brings it back, whatever the action that comes now loses of it.
    void set_aside(Entry& entry, Lost lost);
    void set_file(Entry& entry, const Field& file, const std::string& paths);
    Entry& entry_of(const Lab& lab);
    void reset_control(Entry& entry);  // the one with the focus; without: those of the panel
    void journal(Journal& journal);
    void answer();  // the question after a crash
    void restore(const Journal::Left& left);
    std::vector<std::pair<std::string, std::string>> notices() const;  // status line: what is not kept
    void update(Entry& entry);
    // over.cpp: what lies over the window
    std::vector<Find> finds();
    void draw_over();
    void draw_tour();
    Tour::Seen seen();
    void draw_palette();
    std::optional<ControlHelp> help_of(std::string_view probe);
    const Glossary& glossary();
    std::map<std::string, std::string> lab_names() const;  // id -> "L5 Delayed scaling"
    void draw_rail(const WindowLayout& layout);
    float draw_labs(const WindowLayout& layout);
    void rail_item(std::string_view id, std::string_view number, std::string_view title, float share,
                   float top, bool full);  // share: of its exercises passed; NaN: it has none
    void draw_theme_switch(Point center);
    void draw_keys_switch(Point center);
    void draw_machine(const WindowLayout& layout, float labs_end);
    void draw_home(const WindowLayout& layout);
    float draw_continue(Rect stage);
    float draw_card(Entry& entry, Rect card);
    void draw_keys(Rect area);
    std::string keys_of(std::string_view command) const;
    void draw_lab(const WindowLayout& layout, Entry& entry);
    float draw_heading(const LabInfo& info, Rect stage);
    void draw_panel(const WindowLayout& layout, Entry& entry);
    void draw_tab(Entry& entry, Tab tab);
    std::vector<Tab> tabs_of(const Entry& entry);
    Tab shown_tab(const Entry& entry);
    bool predicting(const Entry& entry);  // the panel asks for a prediction
    void reset(Entry& entry);
    void draw_panel_buttons(Entry& entry, Rect panel);
    void draw_toast(const WindowLayout& layout);
    std::string progress_words() const;
    void draw_status(const WindowLayout& layout, double frame_ms);
    void toggle_panel(bool narrow);
    void set_theme(Theme theme);
    void set_scale(float scale);
    Entry* current();

    ui::Context& context_;
    Settings settings_;
    Machine machine_;
    ProfileFolders folders_;
    std::function<void()> wake_;
    Toasts toasts_;  // before those that tell something
    std::vector<Entry> entries_;
    std::vector<ShellCommand> commands_;
    ExercisesTab exercises_;
    Recovery recovery_;
    ClaimCards claims_;
    Presentation presentation_;
    SceneSheet scene_sheet_;
    ExportPanel export_;
    std::string open_;           // id; empty: home
    std::string rail_shows_;     // the lab that the list of the rail was scrolled to
    std::string last_at_start_;  // what Continue continues with
    bool panel_open_narrow_ = false;
    bool panel_shown_ = false;  // in this frame
    bool narrow_ = false;       // WindowLayout::narrow, in this frame
    bool greeted_ = false;      // the focus was put on Continue once
    float loaded_scale_ = 0;
    Sheet sheet_ = Sheet::none;
    std::string ring_before_;  // the control with the ring, when the sheet was opened
    std::vector<std::function<std::vector<Find>()>> offers_;
    std::vector<Find> finds_;
    Finder palette_;
    GlossarySheet glossary_sheet_;
    WordsSheet words_sheet_;
    std::optional<Glossary> glossary_;
    HelpMode help_;
    Tour tour_;
    const bool probing_;    // the probes are recorded, whether help and tour need them or not
    bool free_ = true;      // nothing lay over the window when this frame began
    bool apart_ = false;    // a button was pressed since the last note_undo(), or Reset: no burst of keys
    std::string focused_;   // the control with the ring, as last drawn
    double retried_s_ = 0;  // when what could not be saved was tried again
    std::map<std::string, std::string> lessons_;  // id -> Markdown, read when first shown
    TermPictures pictures_;                       // in lessons
};

}  // namespace fp8lab
