// A list that is searched while one types: the palette, and the terms of the glossary. Letters, Backspace and
// Ctrl V go to the query, Up, Down, PgUp and PgDn move the selection, Enter and a click take a row. The query
// is no text field of ImGui's, so that Escape, Tab and the chords of the window mean here what they mean
// everywhere.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "labs/ui/context.h"

namespace fp8lab {

struct FindRow {
    std::string kind = {};    // "Lab": a column of its own; empty: none
    std::string title = {};   //
    std::string detail = {};  // muted, after the title; left out where there is no room
    std::string keys = {};    // mono, at the right: "Ctrl K"
    std::string also = {};    // searched, not shown
};

class Finder {
  public:
    void open(std::string query = {});
    // Draws the list in `area`, physical px. Probes: "<name>.query", "<name>.<place in the list>". Returns the row
    // that was taken.
    std::optional<std::size_t> draw(ui::Context& context, std::string_view name,
                                    std::span<const FindRow> rows, Rect area, std::string_view placeholder);
    // Index of the row under the selection, of the last draw(); none: nothing fits.
    std::optional<std::size_t> selected() const;
    void select(std::size_t row);  // the query is cleared

  private:
    void type(const ui::Context& context);
    void match(std::span<const FindRow> rows);
    bool draw_row(ui::Context& context, const std::string& name, const FindRow& row, Rect area,
                  bool selected);

    std::string query_;
    std::optional<std::string> matched_;  // the query that found_ is of
    std::vector<std::size_t> found_;      // rows, best first
    std::size_t at_ = 0;                  // in found_
    bool moved_ = false;                  // the selection scrolls into view
};

// A sheet with a finder at its left, and what is selected in it at its right.
struct FinderSheet {
    std::string_view name, title;  // of the sheet
    std::string_view list;         // the name of the finder
    float width, height;           // logical px
    float list_width;              // at most; less in a small window
    // The name of the part that scrolls, of this row: each keeps its place. And what is drawn in it.
    std::function<std::string(std::size_t row)> part;
    std::function<void(std::size_t row)> draw;
};
// Returns whether the sheet was closed.
bool draw_finder_sheet(ui::Context& context, const FinderSheet& sheet, Finder& finder,
                       std::span<const FindRow> rows);

}  // namespace fp8lab
