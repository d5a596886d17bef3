// Everything inside the window: rail, stage, panel, status line. Draws with ImGui only: no window and no
// OpenGL, so that tests can draw every screen without a display.
#pragma once

#include "app/shell/drawn.h"

namespace fp8lab {

class Shell {
  public:
    Shell(ui::Context& context, Settings settings, Machine machine, ProfileFolders folders, Host host = {});

    // One frame, between ImGui::NewFrame() and ImGui::Render(). `frame_ms`: our own work for the last one; <
    // 0: not shown.
    void frame(double frame_ms);
    bool fonts_outdated() const {  // the scale was changed: call load_fonts() before the next frame
        return loaded_scale_ != context_.scale;
    }

    void open(std::string_view lab) { parts_.labs.open(lab); }  // id; empty: home
    void show(Tab tab) { parts_.labs.show(tab); }
    Lab* lab() { return parts_.labs.lab(); }  // the one on the stage; null on home
    void say(std::string title, std::string line) {
        parts_.common.toasts.say(std::move(title), std::move(line));
    }
    void warn(std::string title, std::string line) {
        parts_.common.toasts.warn(std::move(title), std::move(line));
    }
    double rest(double now_s) { return parts_.keeping.rest(now_s); }
    std::string close() { return parts_.keeping.close(); }
    void restore_left() { parts_.keeping.restore_left(); }
    void open(Sheet sheet) { parts_.over.open(sheet); }
    void add_to_manual(std::function<ManualPart()> part) { parts_.over.add_to_manual(std::move(part)); }
    void start_tour() { parts_.over.start_tour(); }
    void explain(std::string_view control) { parts_.over.explain(control); }
    void open_by_name(std::string_view name) { parts_.over.open_by_name(name); }
    void offer(std::function<std::vector<Find>()> more) { parts_.over.offer(std::move(more)); }
    void present(Deck deck) { parts_.scenes.present(std::move(deck)); }
    void present() { parts_.scenes.present(); }
    void open(const Scene& scene) { parts_.scenes.open(scene); }
    void open_link(std::string_view fragment) { parts_.scenes.open_link(fragment); }
    void open_files(std::span<const std::string> paths) { parts_.scenes.open_files(paths); }
    void open_file(const std::filesystem::path& path) { parts_.scenes.open_file(path); }

    Presentation& presentation() { return parts_.presentation; }
    ExercisesTab& exercises() { return parts_.exercises; }
    const Settings& settings() const { return parts_.common.settings; }  // what is to be saved

  private:
    void keys();
    void run_command(const Chord& chord);
    static void begin_whole_window();
    void frame_desk(const WindowLayout& layout, double frame_ms);
    void use_lab(const WindowLayout& layout, Labs::Entry& entry);
    float draw_heading(const Labs::Entry& entry, Rect stage);
    void draw_lab(const WindowLayout& layout, Labs::Entry& entry);

    ui::Context& context_;
    Parts parts_;
    Rail rail_{parts_};
    HomeScreen home_{parts_};
    Panel panel_{parts_};
    float loaded_scale_ = 0;
    const bool probing_;  // the probes are recorded, whether help and tour need them or not
};

}  // namespace fp8lab
