// Everything inside the window: rail, stage, panel, status line. Draws with ImGui only: no window and no
// OpenGL, so that tests can draw every screen without a display.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/shell/claims.h"
#include "app/shell/exercises_tab.h"
#include "app/shell/export_panel.h"
#include "app/shell/layout.h"
#include "app/shell/machine.h"
#include "app/shell/profile.h"
#include "labs/lab.h"
#include "labs/ui/context.h"
#include "labs/view.h"

namespace fp8lab {

enum class Tab { explore, learn, exercises };

class Shell {
  public:
    // `wake` is handed to live labs: called from their workers when there is something new to draw.
    Shell(ui::Context& context, Settings settings, Machine machine, std::filesystem::path profile_folder,
          std::function<void()> wake = {});

    // One frame, between ImGui::NewFrame() and ImGui::Render(). `frame_ms`: our own work for the last one; <
    // 0: not shown.
    void frame(double frame_ms);

    void open(std::string_view lab);                // id; empty: home
    void show(Tab tab);                             // and the panel
    void say(std::string title, std::string line);  // toast; on home in the status line

    Lab* lab();  // the one on the stage; null on home
    ExercisesTab& exercises() { return exercises_; }
    const Settings& settings() const { return settings_; }  // what is to be saved
    bool fonts_outdated() const;  // the scale was changed: call load_fonts() before the next frame

  private:
    struct Entry {  // a lab of the registry; its view is made when it is first shown
        std::unique_ptr<Lab> lab;
        std::unique_ptr<LabView> view;
        Figure thumbnail;
        std::string failure;  // what update() threw, as a sentence
    };
    struct Toast {
        std::string title, line;
    };

    void keys();
    void update(Entry& entry);
    void draw_rail(const WindowLayout& layout);
    void rail_item(std::string_view id, std::string_view number, std::string_view title, float share,
                   float top, bool full);  // share: of its exercises passed; NaN: it has none
    void draw_theme_switch(Point center);
    void draw_machine(const WindowLayout& layout, float labs_end);
    void draw_home(const WindowLayout& layout);
    void draw_continue(Rect stage);
    float draw_card(Entry& entry, Rect card);
    void draw_keys(Rect area);
    void draw_lab(const WindowLayout& layout, Entry& entry);
    float draw_heading(const LabInfo& info, Rect stage);
    void draw_panel(const WindowLayout& layout, Entry& entry);
    void draw_tab(Entry& entry, Tab tab);
    std::vector<Tab> tabs_of(const Entry& entry);
    Tab shown_tab(const Entry& entry);
    bool predicting(const Entry& entry);  // the stage shows a prediction's sheet, and nothing of the lab
    void reset(Entry& entry);
    void draw_panel_buttons(Entry& entry, Rect panel);
    void draw_toast(Rect area);
    void draw_status(const WindowLayout& layout, double frame_ms);
    void toggle_panel(bool narrow);
    void set_theme(Theme theme);
    void set_scale(float scale);
    Entry* current();

    ui::Context& context_;
    Settings settings_;
    Machine machine_;
    std::filesystem::path profile_folder_;
    std::function<void()> wake_;
    std::vector<Entry> entries_;
    ExercisesTab exercises_;
    ExportPanel export_;
    ClaimCards claims_;
    std::string open_;           // id; empty: home
    std::string last_at_start_;  // what Continue continues with
    Tab tab_ = Tab::explore;
    bool panel_open_narrow_ = false;
    bool panel_shown_ = false;  // in this frame
    bool greeted_ = false;      // the focus was put on Continue once
    float loaded_scale_ = 0;
    Toast toast_;
    std::map<std::string, std::string> lessons_;  // id -> Markdown, read when first shown
};

}  // namespace fp8lab
