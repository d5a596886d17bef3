// What lies over the window: palette, sheet of keys, glossary, scene, words; help and tour; the export.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/shell/export/export_panel.h"
#include "app/shell/scenes.h"
#include "app/shell/sheets/commands.h"
#include "app/shell/sheets/glossary_sheet.h"
#include "app/shell/sheets/help_mode.h"
#include "app/shell/sheets/manual_sheet.h"
#include "app/shell/sheets/scene_sheet.h"
#include "app/shell/sheets/tour.h"
#include "app/shell/sheets/words_sheet.h"

namespace fp8lab {

enum class Sheet { none, palette, keys, glossary, manual, scene, words };  // one at a time

class Over {
  public:
    // `commands`: of the window, for the palette, the sheet of keys and the help.
    Over(Common& common, Labs& labs, ExercisesTab& exercises, const std::vector<ShellCommand>& commands);

    void open(Sheet sheet);  // none: closes what is open
    Sheet sheet() const { return sheet_; }
    void show_term(std::string_view id);  // in the glossary
    void show_page(std::string_view id);  // of the manual
    // Pages of the manual that the shell does not know of.
    void add_to_manual(std::function<ManualPart()> part) { manual_sheet_.add(std::move(part)); }
    void start_tour();
    void explain(std::string_view control = {});  // F1 on it
    void toggle_help();
    // "palette", "keys", "glossary", "glossary:amax", "manual", "manual:how-to/memory", "help:history", "tour", "words". Throws usage_error.
    void open_by_name(std::string_view name);
    // More rows for the palette: scenes, say. Asked each time it opens.
    void offer(std::function<std::vector<Find>()> more) { offers_.push_back(std::move(more)); }
    void find_among(std::vector<Find> finds);  // the palette, with these rows
    void export_files(ExportPanel::What what, Lab* lab) { export_.open(what, lab); }  // lab null: home

    bool covers() const { return sheet_ != Sheet::none || help_.on(); }  // a sheet, or help
    bool takes_keys() const { return export_.is_open(); }
    bool types() const {
        return sheet_ == Sheet::palette || sheet_ == Sheet::glossary || sheet_ == Sheet::manual;
    }
    bool needs_probes() const { return help_.on() || tour_.on(); }

    // At the beginning of a frame; `covered`: something else lies over the window. Returns whether anything does.
    bool begin_frame(bool covered);
    void draw();  // at its end
    const Glossary& glossary();

  private:
    std::vector<Find> finds();
    void add_exercises(std::vector<Find>& finds);
    void add_pages(std::vector<Find>& finds);
    void draw_palette();
    void draw_sheet();
    bool draw_manual(std::string& go_to);
    void draw_help();
    void draw_tour();
    Tour::Seen seen();
    std::optional<ControlHelp> help_of(std::string_view probe);
    std::map<std::string, std::string> lab_names();  // id -> "L5 Delayed scaling"

    Common& common_;
    ui::Context& context_;
    Labs& labs_;
    ExercisesTab& exercises_;
    const std::vector<ShellCommand>& commands_;
    Sheet sheet_ = Sheet::none;
    std::string ring_before_;  // the control with the ring, when the sheet was opened
    std::vector<std::function<std::vector<Find>()>> offers_;
    std::vector<Find> finds_;
    Finder palette_;
    GlossarySheet glossary_sheet_;
    ManualSheet manual_sheet_;
    WordsSheet words_sheet_;
    SceneSheet scene_sheet_;
    ExportPanel export_;
    std::optional<Glossary> glossary_;
    HelpMode help_;
    Tour tour_;
    bool free_ = true;  // nothing lay over the window when this frame began
};

}  // namespace fp8lab
