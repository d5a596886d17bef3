// The two maps of L12 side by side, or the picture and its two casts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/four/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::four {
namespace {

using ui::Context;

constexpr float kTitle = 26, kHeads = 22, kFoot = 26;

// One cell of the legend: the code's colour as the map has it.
Color shade(double code) {
    if (code == 0) return {Role::under, Tone::fill, 0.3F};
    return {Role::block, Tone::fill, static_cast<float>(0.12 + 0.88 * code / 6)};
}

constexpr std::array<std::pair<const char*, double>, 8> kCodes = {
    {{"0", 0}, {"½", 0.5}, {"1", 1}, {"1½", 1.5}, {"2", 2}, {"3", 3}, {"4", 4}, {"6", 6}}};
constexpr float kLegendPitch = 8;  // px between entries

float legend_width(const Context& c) {
    float width = ui::text_width(c, "|code|", kMono13) + c.px(kLegendPitch);
    for (const auto& [name, code] : kCodes)
        width += c.px(15 + kLegendPitch) + ui::text_width(c, name, kMono13);
    return width + c.px(24) + ui::text_width(c, "above 6", kSans13);
}

}  // namespace

float FourView::draw_tiles(Context& c, Figure figure, Rect area) {
    const Outcome& o = *lab_->outcome;
    const TilesLayout layout = tiles_layout(o);
    const float height = area.height() / c.scale;
    const bool words = o.problem.empty();
    // The title, and the legend at its right, or below it where there is no room.
    const bool legend = words && !layout.picture;
    const float title = ui::text_width(c, figure.title, kBold15);
    const bool beside = title + legend_width(c) + c.px(24) <= area.width();
    float y = ui::heading(c, figure.title, area);
    if (legend && beside) draw_legend(c, {area.x1 - legend_width(c), area.y0, area.x1, y});
    if (legend && !beside) {
        draw_legend(c, {area.x0, y, area.x1, y + c.px(20)});
        y += c.px(20);
    }
    y += c.px(kTitle - 22);
    if (!words) {
        const Rect room{area.x0, y, area.x1, y + c.px(std::clamp(0.2F * height, 90.0F, 260.0F))};
        draw_problem(c, room);
        return room.y1;
    }
    Rect cells{area.x0, y + c.px(kHeads), area.x1, 0};
    const float block = shows_block(c, area) ? kBlockHeight : 0;
    const float wanted =
        layout.picture ? height - block - 236 - kTitle - kHeads - kFoot - 20 : 0.235F * height;
    cells.y1 = cells.y0 + c.px(std::clamp(wanted, 92.0F, layout.picture ? 420.0F : 320.0F));
    if (layout.picture) {  // square pixels
        const auto ratio = static_cast<float>(layout.end / layout.height);
        const float high = std::min(cells.height(), area.width() / ratio);
        cells.y1 = cells.y0 + std::floor(high), cells.x1 = cells.x0 + std::floor(high * ratio);
    }
    std::erase_if(figure.series, [&](const Series& series) {
        const auto* line = std::get_if<LineSeries>(&series.shape);
        return std::holds_alternative<TextMark>(series.shape) || (line && series.style.width == 2);
    });
    figure.title.clear();
    figure.y.range = Range{0, layout.height};
    const ui::PlotResult plot = ui::plot(c, "four.tiles", figure, tiles_, cells,
                                         {.bare = true, .interactive = false, .crosshair = false});
    for (std::size_t which = 0; which < 2; ++which) {
        draw_heads(c, plot, which, area.x1);
        if (!layout.picture) draw_map(c, plot, which);
    }
    if (layout.picture)
        ui::text_mid(c, {cells.x0, cells.y0 - c.px(kHeads / 2)}, "The picture", {Role::text}, kBold13);
    return cells.y1 + c.px(kFoot);
}

void FourView::draw_legend(Context& c, Rect line) {
    const float y = line.y0 + c.px(10), box = c.px(11);
    float x = line.x0;
    ui::text_mid(c, {x, y}, "|code|", {Role::muted}, kMono13);
    x += ui::text_width(c, "|code|", kMono13) + c.px(kLegendPitch);
    for (const auto& [name, code] : kCodes) {
        ui::fill_rect(c, {x, y - box / 2, x + box, y + box / 2}, shade(code));
        ui::text_mid(c, {x + c.px(15), y}, name, {Role::muted}, kMono13);
        x += c.px(15 + kLegendPitch) + ui::text_width(c, name, kMono13);
    }
    const float half = c.px(4.5F);
    x += half;
    ImGui::GetWindowDrawList()->AddTriangleFilled({x, y - half}, {x + half, y + half}, {x - half, y + half},
                                                  c.color({Role::sat, Tone::fill}));
    ui::text_mid(c, {x + c.px(9), y}, "above 6", {Role::sat, Tone::ink}, kSans13);
}

// Names above, numbers below.
void FourView::draw_heads(Context& c, const ui::PlotResult& plot, std::size_t which, float right) {
    const Outcome& o = *lab_->outcome;
    const TilesLayout layout = tiles_layout(o);
    const bool counts = o.shown() == which;
    const double from = layout.picture ? layout.cells[which] : layout.scales[which],
                 to = layout.cells[which] + static_cast<double>(layout.cols);
    const float x0 = plot.to_px(from, 0).x, x1 = std::min(plot.to_px(to, 0).x, right);
    const float y0 = plot.area.y0 - c.px(kHeads / 2);
    const std::string name = layout.picture
                                 ? (which == 0 ? format_name(o.params) : "Rotated, cast, rotated back")
                             : which == 0 ? "As it is"
                                          : "Rotated: RHT, 16×16";
    ui::text_mid(c, {x0, y0}, name, {counts ? Role::text : Role::muted}, counts ? kBold13 : kSans13);
    if (!layout.picture) {
        const std::size_t blocks = layout.cols / std::max<std::size_t>(o.cast[which].grid.width, 1);
        const std::string size =
            which == 1 ? "the same blocks × H"
                       : fmt::format("{} of {} rows, {} block{} of {} each", layout.rows, o.tensor[0].rows,
                                     blocks, blocks == 1 ? "" : "s", o.params.nvfp4() ? 16 : 32);
        const float taken = ui::text_width(c, name, kBold13) + ui::text_width(c, size, kSans13) + c.px(16);
        if (taken <= x1 - x0) ui::text_mid(c, {x1, y0}, size, {Role::muted}, kSans13, Anchor::right);
    }
    draw_numbers(c, which, {x0, plot.area.y1, x1, plot.area.y1 + c.px(kFoot + 2)}, !layout.picture);
    if (which == 0 && !layout.picture) {  // between the maps
        const float left = plot.to_px(layout.cells[0] + static_cast<double>(layout.cols), 0).x,
                    middle = (left + plot.to_px(layout.scales[1], 0).x) / 2;
        const float y = (plot.area.y0 + plot.area.y1) / 2;
        ui::text_mid(c, {middle, y - c.px(9)}, "× H", {Role::muted}, kMono13, Anchor::center);
        ui::fill_rect(c, {middle - c.px(12), y + c.px(3), middle + c.px(12), y + c.px(3) + ui::hairline(c)},
                      {Role::muted});
        ui::chevron(c, {middle + c.px(10), y + c.px(3)}, ui::Direction::right, {Role::muted});
    }
}

// SQNR, gain, zero from the right; what has no room is left out.
void FourView::draw_numbers(Context& c, std::size_t which, Rect line, bool scale) {
    const Numbers& numbers = lab_->outcome->cast[which].numbers;
    struct Part {
        const char *id, *word;
        std::string value;
        double exact;
        Color ink = {Role::text};
    };
    const char* const unit = std::isfinite(numbers.sqnr_db) ? " dB" : "";
    const char* const percent = std::isnan(numbers.sqnr_db) ? "" : " %";
    const std::array parts = {
        Part{"sqnr", "SQNR", db_text(numbers.sqnr_db) + unit, numbers.sqnr_db, {Role::block, Tone::ink}},
        Part{"gain", "gain", pct_text(numbers.gain_pct, 2) + percent, numbers.gain_pct},
        Part{"zero", "zero", pct_text(numbers.zero_pct, 0) + " %", numbers.zero_pct}};
    const bool wide = line.width() >= c.px(330);
    const Font words = wide ? kSans15 : kSans13, digits = wide ? kMono15 : kMono13;
    const float y = (line.y0 + line.y1) / 2;
    float x = line.x1;
    for (const Part& part : parts) {
        const float value = ui::text_width(c, part.value, digits), word = ui::text_width(c, part.word, words);
        if (x - value - word - c.px(5) < line.x0 - 1) break;
        ui::text_mid(c, {x, y}, part.value, part.ink, digits, Anchor::right);
        ui::copyable(c, fmt::format("value.{}.{}", part.id, which),
                     {x - value, y - c.px(11), x, y + c.px(11)}, part.exact);
        ui::text_mid(c, {x - value - c.px(5), y}, part.word, {Role::muted}, words, Anchor::right);
        x -= value + word + c.px(wide ? 21 : 14);
    }
    if (scale && x - line.x0 > c.px(44)) ui::text_mid(c, {line.x0, y}, "scale", {Role::muted}, kSans13);
}

// The cells are one control: a press marks a block, arrow keys go to its neighbours.
void FourView::draw_map(Context& c, const ui::PlotResult& plot, std::size_t which) {
    const Outcome& o = *lab_->outcome;
    const TilesLayout layout = tiles_layout(o);
    const Tensor& tensor = o.tensor[which];
    const BlockCast& cast = o.cast[which];
    const Point from = plot.to_px(layout.cells[which], layout.height),
                to = plot.to_px(layout.cells[which] + static_cast<double>(layout.cols), 0);
    const Rect cells{from.x, from.y, to.x, to.y};
    const ui::Press press = ui::press(c, fmt::format("four.map.{}", which), cells, 0);
    const std::size_t width = o.block_width();
    const auto across = static_cast<int>(o.blocks_across());
    const auto mark = [&](int index) {
        if (index >= 0 && index < static_cast<int>(o.blocks_shown()))
            set(fmt::format("block_index={}", index));
    };
    if (press.hovered) {
        const auto cell = [](double at, std::size_t count) {
            return static_cast<std::size_t>(std::clamp(at, 0.0, static_cast<double>(count) - 1));
        };
        const std::size_t col = cell(plot.x_at(ImGui::GetIO().MousePos.x) - layout.cells[which], layout.cols),
                          row = cell(layout.height - plot.y_at(ImGui::GetIO().MousePos.y), layout.rows);
        const std::size_t at = row * tensor.cols + col, block = cast.block_of(row, col);
        const auto x = static_cast<double>(tensor.values[at]), back = static_cast<double>(cast.back[at]);
        const double code = cast.units[block] > 0 ? back / static_cast<double>(cast.units[block]) : 0;
        ui::advance(cells);
        ui::tooltip(c, fmt::format("row {}, column {}", row, col),
                    fmt::format("x {}, code {}, back {}, error {}.{}", screen_number(x, 4),
                                screen_number(std::round(2 * code) / 2), screen_number(back, 4),
                                screen_number(back - x, 3),
                                cast.clips(tensor.values[at], block) ? " Above 6 units." : ""));
        if (press.clicked) mark(static_cast<int>(row) * across + static_cast<int>(col / width));
    }
    if (press.focused) {
        const auto pressed = [](ui::Key key) { return ui::key_pressed(key) ? 1 : 0; };
        const int step = pressed(ui::Key::right) - pressed(ui::Key::left) +
                         across * (pressed(ui::Key::down) - pressed(ui::Key::up));
        if (step != 0) mark(static_cast<int>(lab_->marked_index()) + step);
    }
    const Marked marked = lab_->marked();
    const double top = layout.height - static_cast<double>(marked.row),
                 left = layout.cells[which] + static_cast<double>(marked.col);
    const Point a = plot.to_px(left, top), b = plot.to_px(left + static_cast<double>(marked.width), top - 1);
    const Rect box{a.x - c.px(1), a.y - c.px(1), b.x, b.y};
    const bool counts = o.shown() == which;
    if (counts) ui::stroke_rect(c, ui::inset(box, -c.px(3)), {Role::surface}, 0, 1);
    ui::stroke_rect(c, ui::inset(box, -c.px(2)), {counts ? Role::text : Role::axis}, 0, 2);
    marked_[which] = box;
    ui::probe(c, fmt::format("four.marked.{}", which), box);
}

void FourView::draw_problem(Context& c, Rect area) {
    ImGui::SetCursorScreenPos({area.x0, area.y0 + c.px(8)});
    ImGui::BeginChild("four.problem", {area.width(), area.height() - c.px(8)}, false,
                      ImGuiWindowFlags_NoScrollbar);
    ui::warning(c, lab_->outcome->problem, kSans15);
    ui::wrapped(c, "The figures below are of generated tensors.");
    ImGui::EndChild();
}

}  // namespace fp8lab::four
