#include "labs/blocks/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::blocks {

namespace {

using ui::Context;

constexpr float kInfo = 28, kHeads = 24;

std::string number_text(double value) { return format_number(value, 4, true); }

std::string block_text(const Block& block) {
    return fmt::format(
        "{}×{} elements from row {}, column {}: amax {}, scale {}, {} fits, SQNR {} dB, {} became 0, "
        "{} saturated",
        block.rows, block.cols, block.row, block.col, number_text(block.amax), number_text(block.scale),
        number_text(block.top), format_number(block.sqnr_db, 3, true), block.underflow, block.saturated);
}

// A figure's title and, below it, its subtitle, wrapped to the width; draws nothing without a place.
float heading(Context& context, const Figure& figure, float width, std::optional<Point> at = {}) {
    float height = 0;
    const auto lines = [&](std::string_view words, Role role, Font font) {
        for (const std::string_view line : ui::wrap_lines(context, words, font, width)) {
            if (at) ui::text_at(context, {at->x, at->y + height}, line, {role}, font);
            height += context.px(ui::line_height(font.size));
        }
    };
    lines(figure.title, Role::text, kBold15);
    lines(figure.subtitle, Role::muted, kSans13);
    return height;
}

struct Column {
    const char *head, *term;  // term: the glossary's entry
    double Score::*value;
    float from, pitch;  // logical px: shown where the table is as wide; its own width
};
constexpr std::array kColumns = {Column{"scales", "scale", &Score::scales, 700, 64},
                                 Column{"bits/element", "block-scale", &Score::bits_per_element, 0, 92},
                                 Column{"becomes 0 %", "underflow", &Score::underflow_pct, 0, 92},
                                 Column{"lost L1 %", "lost-mass", &Score::lost_l1_pct, 600, 80},
                                 Column{"lost energy %", "lost-mass", &Score::lost_energy_pct, 900, 104},
                                 Column{"worst row dB", "sqnr", &Score::worst_row_db, 0, 96},
                                 Column{"copies differ %", "transposed-copy", &Score::differ_pct, 700, 112}};

void draw_rows(Context& context, const ui::PlotResult& plot, Rect table, std::size_t count) {
    for (std::size_t i = 0; i <= count; ++i)
        ui::hline(context, table.x0, table.x1, std::round(plot.to_px(0, static_cast<double>(i)).y),
                  {Role::line});
}

}  // namespace

void BlocksView::stage(Context& context, Rect area) {
    const std::vector<Figure> figures = lab_.figures();
    // The rows of the table close up where the maps would become too low to read.
    const auto rows = static_cast<float>(lab_->outcome->contenders.size());
    const float fixed = heading(context, figures.back(), area.width()) + context.px(kHeads + 8);
    const float room = area.height() - fixed - context.px(kInfo + 52 + 16);
    const float row = std::clamp(0.5F * room / rows, context.px(18), context.px(32));
    const float table = row * rows + fixed;
    draw_maps(context, figures, {area.x0, area.y0, area.x1, area.y1 - table - context.px(16)});
    draw_schemes(context, figures.back(), {area.x0, area.y1 - table, area.x1, area.y1});
}

void BlocksView::draw_maps(Context& context, const std::vector<Figure>& figures, Rect area) {
    const float gap = context.px(16), width = (area.width() - 2 * gap) / 3;
    std::array<ui::PlotResult, 3> plots;
    float head = 0;
    for (std::size_t i = 0; i < plots.size(); ++i) head = std::max(head, heading(context, figures[i], width));
    for (std::size_t i = 0; i < plots.size(); ++i) {
        const float x = area.x0 + static_cast<float>(i) * (width + gap);
        heading(context, figures[i], width, Point{x, area.y0});
        Figure map = figures[i];
        map.title.clear(), map.subtitle.clear();
        Rect cells{x, area.y0 + head, x + width, area.y1 - context.px(kInfo)};
        if (const Tensor& tensor = lab_->outcome->tensor; tensor.picture) {  // square pixels
            const float ratio = static_cast<float>(tensor.cols) / static_cast<float>(tensor.rows);
            const float wide = std::min(cells.width(), cells.height() * ratio);
            cells.x1 = cells.x0 + std::floor(wide), cells.y1 = cells.y0 + std::floor(wide / ratio);
        }
        plots[i] = ui::plot(context, "blocks." + map.id, map, map_plots_[i], cells,
                            {.crosshair = false, .y_tick_width = 0});
    }
    // Zoomed together: whichever map the mouse is in leads.
    const auto leader = std::ranges::find_if(plots, [](const ui::PlotResult& p) { return p.hovered; });
    if (leader != plots.end())
        for (ui::PlotState& plot : map_plots_) {
            const ui::PlotState& state = map_plots_[static_cast<std::size_t>(leader - plots.begin())];
            plot.view = state.view;
            plot.follow = state.follow;
        }
    draw_block(context, plots, {area.x0, area.y1 - context.px(kInfo), area.x1, area.y1});
}

void BlocksView::draw_block(Context& context, std::span<const ui::PlotResult> plots, Rect line) {
    const Point middle{line.x0, (line.y0 + line.y1) / 2};
    const auto hovered = std::ranges::find_if(plots, [](const ui::PlotResult& p) { return p.hovered; });
    if (hovered == plots.end() || !hovered->cursor_x || !hovered->cursor_y) {
        ui::text_mid(context, middle, "Point at a map to see the block there, its amax and its scale",
                     {Role::muted}, kSans13);
        return;
    }
    const CellGrid& cells = lab_->outcome->maps.grid;
    const Tensor& tensor = lab_->outcome->tensor;
    const auto element = [](double at, std::size_t size, std::size_t count) {
        const double index = std::clamp(at * static_cast<double>(size), 0.0, static_cast<double>(count) - 1);
        return static_cast<std::size_t>(index);
    };
    const std::size_t row = element(*hovered->cursor_y, cells.height, tensor.rows),
                      col = element(*hovered->cursor_x, cells.width, tensor.cols);
    const bool by_rows = lab_->params.maps == "transpose" && hovered - plots.begin() == 1;
    const Block block = lab_->block_at(row, col, by_rows);
    for (std::size_t i = 0; i < plots.size(); ++i) {
        const ui::PlotResult& plot = plots[i];
        const auto at = [&](std::size_t r, std::size_t c) {
            return plot.to_px(static_cast<double>(c) / static_cast<double>(cells.width),
                              static_cast<double>(r) / static_cast<double>(cells.height));
        };
        const Point from = at(block.row, block.col), to = at(block.row + block.rows, block.col + block.cols);
        const Rect outline{
            std::max(std::min(from.x, to.x), plot.area.x0), std::max(std::min(from.y, to.y), plot.area.y0),
            std::min(std::max(from.x, to.x), plot.area.x1), std::min(std::max(from.y, to.y), plot.area.y1)};
        ui::stroke_rect(context, ui::inset(outline, -context.px(3)), {Role::surface}, 0, 2);
        ui::stroke_rect(context, ui::inset(outline, -context.px(1)), {Role::text}, 0, 2);
        ui::probe(context, "blocks.outline." + std::to_string(i), outline);
    }
    ui::text_mid(context, middle, block_text(block), {Role::text}, kSans13);
}

void BlocksView::draw_schemes(Context& context, Figure figure, Rect area) {
    ui::region(context, "schemes", area);
    const auto shown = [&](const Column& column) { return area.width() >= context.px(column.from); };
    float columns = 0;
    for (const Column& column : kColumns) columns += shown(column) ? context.px(column.pitch) : 0;
    const float head = area.y0 + heading(context, figure, area.width(), Point{area.x0, area.y0}) +
                       context.px(8 + kHeads / 2);
    figure.title.clear();
    const Rect bars{area.x0, head + context.px(kHeads / 2), area.x1 - columns, area.y1};
    const std::vector<Contender>& contenders = lab_->outcome->contenders;
    const std::size_t count = contenders.size(), chosen = lab_->outcome->chosen;
    const float row = bars.height() / static_cast<float>(count);
    const float top = bars.y0 + row * static_cast<float>(chosen);
    ui::fill_rect(context, {area.x0 - context.px(8), top, area.x1 + context.px(8), top + row}, {Role::field},
                  4);
    const ui::PlotResult plot =
        ui::plot(context, "blocks.schemes", figure, schemes_plot_, bars, {.bare = true});
    ui::head(context, {plot.to_px(0, 0).x, head}, "SQNR dB", "sqnr", Anchor::left);
    draw_rows(context, plot, area, count);
    for (std::size_t i = 0; i < count; ++i) {
        const float y = bars.y0 + row * (static_cast<float>(i) + 0.5F);
        const float pad = context.px(8);
        choose(context, contenders[i].scheme, {area.x0 - pad, y - row / 2, bars.x1, y + row / 2},
               area.x1 + pad);
        float x = bars.x1;
        int place = 0;
        for (const Column& column : kColumns) {
            if (!shown(column)) continue;
            x += context.px(column.pitch);
            ++place;
            if (i == 0) ui::head(context, {x, head}, column.head, column.term);
            const double value = contenders[i].score.*column.value;
            // Digits that say something: one element of a large tensor is 0.0015 %.
            const bool is_pct = std::string_view(column.head).ends_with('%');
            const bool fault = (column.value == &Score::underflow_pct && value >= 0.1) ||
                               (column.value == &Score::worst_row_db && value < 10);
            const std::string text = format_number(value, is_pct ? 2 : 4, true);
            const Font font = i == chosen || fault ? kMonoBold13 : kMono13;
            ui::text_mid(context, {x, y}, text,
                         {fault                  ? Role::sat
                          : is_pct && value == 0 ? Role::muted
                                                 : Role::text,
                          Tone::ink},
                         font, Anchor::right);
            const float reach = ui::text_width(context, text, font) + context.px(6),
                        half = std::min(row / 2, context.px(12));
            ui::copyable(context, fmt::format("value.{}.{}", contenders[i].scheme.id, place),
                         {x - reach, y - half, x, y + half}, value);
        }
    }
}

// A row is chosen by a press, as in the panel: its maps are shown.
void BlocksView::choose(Context& context, const Scheme& scheme, Rect row, float right) {
    const ui::Press press = ui::press(context, "blocks.scheme." + scheme.id, row, 4);
    if (press.hovered) ui::stroke_rect(context, {row.x0, row.y0, right, row.y1}, {Role::axis}, 4);
    if (!press.clicked) return;
    set_field(lab_.fields(), "scheme=" + scheme.family);
    if (!scheme.rule.empty()) set_field(lab_.fields(), "rule=" + scheme.rule);
}

std::vector<std::pair<std::string, std::string>> BlocksView::status() const {
    const Tensor& tensor = lab_->outcome->tensor;
    return {{"seed", std::to_string(lab_->params.tensor.seed)},
            {"tensor",
             fmt::format("{}, {}×{}{}", tensor.name, tensor.rows, tensor.cols, tensor.excluded.note())}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<BlocksView>(static_cast<BlocksLab&>(lab));
}

}  // namespace fp8lab::blocks
