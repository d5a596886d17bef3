// The view of the Workbench: the table of all tensors, and below it the selected one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"
#include "labs/workbench/model.h"
#include "labs/workbench/view_run.h"

namespace fp8lab::workbench {

class WorkbenchView final : public table::TableView<Workbench> {
  public:
    explicit WorkbenchView(WorkbenchLab& lab) : TableView(lab), run_(lab) {}
    std::string_view question() const override;
    void stage(ui::Context& context, Rect area) override;
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
    struct RecipeColumns {  // of numbers: right edges, px
        bool rows = false;  // whether the worst row has room
        float bar = 0, bar_end = 0, sqnr = 0, worst = 0, zero = 0, bits = 0, meets = 0;
    };
    // view.cpp
    void draw_tabs(ui::Context& context, Rect area);
    void draw_strip(ui::Context& context, Rect strip);
    // view_table.cpp
    float draw_table(ui::Context& context, Rect area, std::size_t rows);
    float row_height() const;  // logical px; two lines where a second file is compared
    float draw_filter(ui::Context& context, Rect area);  // right of the title, while there is one; its width
    void draw_missing(ui::Context& context, Rect line, std::size_t index);
    std::vector<Column> columns_in(const ui::Context& context, Rect area) const;
    void draw_heads(ui::Context& context, const std::vector<Column>& columns, Rect area, float y);
    void draw_row(ui::Context& context, const std::vector<Column>& columns, const TableRow& row, Rect line,
                  bool selected);
    void draw_row_verified(ui::Context& context, const TableRow& row, Rect line);  // its second line
    void draw_foot(ui::Context& context, const std::vector<Column>& columns, Rect line);
    // view_tensor.cpp
    void draw_tensor(ui::Context& context, Rect area);
    float draw_fault(ui::Context& context, Rect area);  // above the histogram; returns where it ends
    void draw_places(ui::Context& context, Rect area);
    void draw_values(ui::Context& context, std::vector<Figure> figures, Rect area, bool narrow);
    void draw_recipes(ui::Context& context, Rect area);
    void draw_recipe(ui::Context& context, std::size_t recipe, const RecipeColumns& at, Rect line);
    // view_browse.cpp: the folder at hand, under the file field that it is for.
    void draw_browser(ui::Context& context);
    void open(const std::filesystem::path& path);
    // view_panel.cpp
    std::string more_words() const override {
        return lab_->shows_run() ? "layers, rank, also show healthy ones"
                                 : "name, worst row, bits, cast as, MX rule";
    }
    void draw_above(ui::Context& context, float width) override;  // the files
    bool draw_own(ui::Context& context, const table::Row& row, const Field& default_field) override;
    void draw_below(ui::Context& context, float width) override;
    void draw_class(ui::Context& context);
    void draw_uses(ui::Context& context, float width);
    void draw_before(ui::Context& context, float width);
    void draw_compare_as(ui::Context& context);
    void draw_verified(ui::Context& context, float width);
    void draw_counts(ui::Context& context, float width);

    void choose(std::size_t table_row);
    void unfold(std::size_t table_row);

    RunView run_;  // the tab "A run"
    ui::PlotState histogram_, change_;
    int part_ = 0;              // on a narrow stage: figures, recipes, or the change between two files
    bool to_selected_ = false;  // the table scrolls to it
    std::string shown_tensor_;  // the field `tensor` when it last did
    float rows_shown_ = 1;
    // The browser: the field that it opens a file for, empty: closed; what was typed; the folder's names.
    std::string browsing_, path_, listed_;
    std::vector<std::string> names_;
    std::string trouble_;
};

}  // namespace fp8lab::workbench
