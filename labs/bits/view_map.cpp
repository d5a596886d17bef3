// The map of all codes: drawn here and not by the plot, because its cells are controls.
#include <algorithm>
#include <cmath>

#include "core/figure/legible.h"
#include "labs/bits/view_stage.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::bits {

namespace {

using ui::Context;

struct Grid {
    Rect area;
    float width, height;  // of a cell, whole physical px
    const CodeMap* map;

    Rect cell(int index) const {
        const float x = area.x0 + static_cast<float>(index % map->cols) * width;
        const float y = area.y0 + static_cast<float>(index / map->cols) * height;
        return {x, y, x + width, y + height};
    }
    int at(ImVec2 mouse) const {
        const int col = std::clamp(static_cast<int>((mouse.x - area.x0) / width), 0, map->cols - 1);
        const int row = std::clamp(static_cast<int>((mouse.y - area.y0) / height), 0, map->rows - 1);
        return row * map->cols + col;
    }
};

// Cells fill the room, a little wider than high; where there are few, they grow up to 96 px.
Grid grid_in(const Context& context, const CodeMap& map, Rect room) {
    const float cols = static_cast<float>(map.cols), rows = static_cast<float>(map.rows);
    const float height = std::min({room.height(), room.width() * 13 / 14, context.px(96) * rows});
    Grid grid{room, std::floor(room.width() / cols), std::max(2.0F, std::floor(height / rows)), &map};
    grid.area.x1 = room.x0 + grid.width * cols;
    grid.area.y1 = room.y0 + grid.height * rows;
    return grid;
}

// Pale to full; the palest still differs from the ground.
Color shade_color(Role role, double shade) {
    return {role, Tone::fill, 0.06F + 0.94F * static_cast<float>(shade)};
}

void draw_cells(Context& context, const Grid& grid, Role role) {
    const float gap = ui::hairline(context);
    const bool big = std::all_of(grid.map->cells.begin(), grid.map->cells.end(), [&](const MapCell& cell) {
        return grid.map->cols <= 8 &&
               ui::text_width(context, cell.label, kMono18) <= grid.width - context.px(8);
    });
    for (std::size_t i = 0; i < grid.map->cells.size(); ++i) {
        const MapCell& cell = grid.map->cells[i];
        const Rect outer = grid.cell(static_cast<int>(i)),
                   inner{outer.x0, outer.y0, outer.x1 - gap, outer.y1 - gap};
        const bool number = cell.code_class != CodeClass::nan && cell.code_class != CodeClass::infinity;
        Color ink{Role::text};
        if (std::isnan(cell.shade)) {
            ui::stroke_rect(context, inner, {number ? Role::line : Role::text});
        } else {
            const Ground ground = ground_for_words(context.theme, shade_color(role, cell.shade));
            ui::fill_rect(context, inner, ground.fill);
            ink = ground.ink;
        }
        if (!big && ui::text_width(context, cell.label, kMono13) > inner.width()) continue;
        ui::text_mid(context, {(inner.x0 + inner.x1) / 2, (inner.y0 + inner.y1) / 2}, cell.label, ink,
                     big ? kMono18 : kMono13, Anchor::center);
    }
}

void draw_subnormals(Context& context, const Grid& grid, Role role) {
    const float line = ui::hairline(context);
    for (const CellRun& run : grid.map->subnormals) {
        const Rect a = grid.cell(run.row * grid.map->cols + run.first),
                   b = grid.cell(run.row * grid.map->cols + run.last);
        ui::stroke_rect(context, {a.x0 - line, a.y0 - line, b.x1, b.y1}, {role});
    }
}

void draw_labels(Context& context, const Grid& grid, float notes_to) {
    const CodeMap& map = *grid.map;
    for (int col = 0; col < map.cols; ++col) {
        const Rect cell = grid.cell(col);
        ui::text_mid(context, {(cell.x0 + cell.x1) / 2, cell.y0 - context.px(12)},
                     map.column_labels[static_cast<std::size_t>(col)], {Role::muted}, kMono13,
                     Anchor::center);
    }
    for (int row = 0; row < map.rows; ++row) {
        const Rect cell = grid.cell(row * map.cols);
        ui::text_mid(context, {cell.x0 - context.px(12), (cell.y0 + cell.y1) / 2},
                     map.row_labels[static_cast<std::size_t>(row)], {Role::muted}, kMono13, Anchor::right);
    }
    for (const RowNote& note : map.notes) {
        const Font font = note.strong ? kBold13 : kSans13;
        const float x = grid.area.x1 + context.px(16);
        if (x + ui::text_width(context, note.text, font) > notes_to) continue;
        const Rect cell = grid.cell(note.row * map.cols);
        const float y = std::round((cell.y0 + cell.y1) / 2);
        ui::hline(context, grid.area.x1 + context.px(4), grid.area.x1 + context.px(10), y, {Role::axis});
        ui::text_mid(context, {x, y}, note.text, {note.strong ? Role::text : Role::muted}, font);
    }
}

}  // namespace

void draw_map(Context& context, BitsLab& lab, Rect area, bool with_notes) {
    const CodeMap& map = lab->outcome->map;
    ui::text_mid(context, {area.x0, area.y0 + context.px(10)}, map.title, {Role::text}, kBold15);
    const float x_subtitle = area.x0 + ui::text_width(context, map.title, kBold15) + context.px(12);
    if (x_subtitle + ui::text_width(context, map.subtitle, kSans13) <= area.x1)
        ui::text_mid(context, {x_subtitle, area.y0 + context.px(10)}, map.subtitle, {Role::muted}, kSans13);

    const float notes = context.px(with_notes ? 168 : 0);
    const Grid grid =
        grid_in(context, map, {area.x0 + context.px(40), area.y0 + context.px(54), area.x1 - notes, area.y1});
    const ui::Press press = ui::press(context, "bits.map", grid.area, 0);
    const auto select_cell = [&](int index) {  // a cell of many codes keeps the low bits
        const std::uint32_t low = lab->outcome->reading.code % map.codes_per_cell;
        select(lab, map.cells[static_cast<std::size_t>(index)].code + low);
    };
    if (press.hovered) {
        const Reading under = read_code(
            lab->outcome->format, map.cells[static_cast<std::size_t>(grid.at(ImGui::GetIO().MousePos))].code);
        ui::tooltip(context, under.code_text + "  " + under.headline, under.note);
    }
    if (press.held) select_cell(grid.at(ImGui::GetIO().MousePos));
    if (press.focused) {
        const int step = ui::arrow_step() + map.cols * ((ui::key_pressed(ui::Key::down) ? 1 : 0) -
                                                        (ui::key_pressed(ui::Key::up) ? 1 : 0));
        const int to = map.cell_of(lab->outcome->reading.code) + step;
        if (step != 0 && to >= 0 && to < map.rows * map.cols) select_cell(to);
    }
    // From here on the map of the code selected above: select() rebuilt it in place.
    const Role role = lab->outcome->format.role;
    draw_cells(context, grid, role);
    draw_subnormals(context, grid, role);
    draw_labels(context, grid, area.x1 + context.px(8));  // the room to the list is 12
    const Rect here = grid.cell(map.cell_of(lab->outcome->reading.code));
    ui::stroke_rect(context, ui::inset(here, context.px(1)), {Role::surface}, 0,
                    1);  // between the outline and a dark cell
    ui::stroke_rect(context, ui::inset(here, -context.px(2)), {Role::text}, 0, 3);
}

}  // namespace fp8lab::bits
