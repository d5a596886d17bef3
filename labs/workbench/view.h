// The view of the Workbench: the table of all tensors, and below it the selected one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "labs/ui/plot/plot.h"
#include "labs/view.h"
#include "labs/workbench/model.h"

namespace fp8lab::workbench {

class WorkbenchView final : public LabView {
  public:
    explicit WorkbenchView(WorkbenchLab& lab) : lab_(lab) {}
    void stage(ui::Context& context, Rect area) override;
    void explore(ui::Context& context, float width) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    bool key(ui::Context& context, ui::Key key) override;
    bool character(ui::Context& context, unsigned typed) override;
    std::span<const ViewKey> keys() const override;

  private:
    struct Column {
        std::string id, head, term;  // id: of the field `order`; term: of the glossary
        float right;                 // px
        int recipe = -1;             // of the list; -1: another number
    };
    // view.cpp
    float draw_strip(ui::Context& context, Rect area);
    // view_table.cpp
    float draw_table(ui::Context& context, Rect area, std::size_t rows);
    float row_height() const;  // logical px; two lines where a second file is compared
    float draw_filter(ui::Context& context, Rect area);  // right of the title, while there is one; its width
    void draw_missing(ui::Context& context, Rect line, std::size_t index);
    std::vector<Column> columns_in(const ui::Context& context, Rect area) const;
    void draw_heads(ui::Context& context, const std::vector<Column>& columns, Rect area, float y);
    void draw_row(ui::Context& context, const std::vector<Column>& columns, const TableRow& row, Rect line,
                  bool selected);
    void draw_foot(ui::Context& context, const std::vector<Column>& columns, Rect line);
    // view_tensor.cpp
    void draw_tensor(ui::Context& context, Rect area);
    void draw_places(ui::Context& context, Rect area);
    void draw_recipes(ui::Context& context, Rect area);
    // view_browse.cpp: the folder at hand, under the file field that it is for.
    void draw_browser(ui::Context& context);
    void open(const std::filesystem::path& path);
    // view_panel.cpp
    void draw_files(ui::Context& context, float width);
    void draw_class(ui::Context& context);
    void draw_show(ui::Context& context, const Field& field);
    void draw_uses(ui::Context& context, float width);
    void draw_before(ui::Context& context, float width);
    void draw_counts(ui::Context& context, float width);

    void set(const std::string& assignment) { set_field(lab_.fields(), assignment); }
    void choose(std::size_t table_row);
    void unfold(std::size_t table_row);

    WorkbenchLab& lab_;
    ui::PlotState histogram_, change_;
    int part_ = 0;  // on a narrow stage: figures, recipes, or the change between two files
    bool more_open_ = false;
    bool to_selected_ = false;  // the table scrolls to it
    std::string shown_tensor_;  // the field `tensor` when it last did
    float rows_shown_ = 1;
    // The browser: the field that it opens a file for, empty: closed; what was typed; the folder's names.
    std::string browsing_, path_, listed_;
    std::vector<std::string> names_;
    std::string trouble_;
};

}  // namespace fp8lab::workbench
