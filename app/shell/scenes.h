// Scenes, lectures and files: from the disk into the window.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/shell/past.h"
#include "app/shell/present/present.h"
#include "app/shell/sheets/finder.h"

namespace fp8lab {

// A row of the palette and what it does.
struct Find {
    FindRow row;
    std::function<void()> run;
};

class Scenes {
  public:
    Scenes(Common& common, Labs& labs, Past& past, Presentation& presentation)
        : common_(common), labs_(labs), past_(past), presentation_(presentation) {}

    // A lecture; throws input_error where a scene does not fit. present(): the lab on the stage, as it stands.
    void present(Deck deck);
    void present();
    void open(const Scene& scene);  // its lab, on the desk; throws input_error
    // Scenes, decks or tensors that were dropped on the window; a toast says what is wrong with one. Several tensors are
    // one list where the lab takes it, else the last is opened. Logs of a run open the Workbench.
    void open_files(std::span<const std::string> paths);
    void open_file(const std::filesystem::path& path);
    // That lab, with these fields; a toast says what is wrong.
    // `from_defaults`: on top of the lab's defaults, and not of its settings.
    void lead_to(const ui::Context::WantedLab& wanted, bool from_defaults = false);
    void paste();      // a scene as text, from the clipboard
    void copy();       // the lab on the stage, as such a text
    void copy_link();  // the same as an address; only where the host has one
    // What stands behind the "#" of the page's address; a toast says what is wrong with it.
    void open_link(std::string_view fragment);
    std::vector<Find> finds();  // shipped and own ones, for the palette

    // Fields that a scene locks. hold() sets back what a view has moved since.
    using Held = std::vector<std::pair<std::string, std::string>>;
    Held held(Labs::Entry& entry);
    void hold(Labs::Entry& entry, const Held& held);

  private:
    void open_run(const std::string& paths);  // logs, one per line
    void set_file(Labs::Entry& entry, const Field& file, const std::string& paths);

    Common& common_;
    Labs& labs_;
    Past& past_;
    Presentation& presentation_;
};

}  // namespace fp8lab
