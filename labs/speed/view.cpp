#include "labs/speed/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/units.h"
#include "labs/speed/model_figures.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/choose.h"
#include "labs/ui/widgets.h"

namespace fp8lab::speed {

namespace {

using ui::Context;

constexpr std::array<std::string_view, 4> kViews = {"sweep", "qkv", "align", "formats"};

// Returns where the title ends.
float figure_title(Context& c, Rect area, const std::string& words) {
    float y = area.y0 + c.px(10);
    for (const auto line : ui::wrap_lines(c, words, kBold15, area.width())) {
        ui::text_mid(c, {area.x0, y}, line, {Role::text}, kBold15);
        y += c.px(22);
    }
    return y;
}

}  // namespace

void SpeedView::stage(Context& c, Rect area) {
    const float upper = std::round(0.46F * area.height());
    draw_roofline(c, {area.x0, area.y0, area.x1, area.y0 + upper});
    const float top = area.y0 + upper + c.px(20), split = std::round(area.x0 + 0.49F * area.width());
    draw_lower(c, {area.x0, top, split - c.px(16), area.y1});
    ui::fill_rect(c, {split, top, split + ui::hairline(c), area.y1}, {Role::line});
    draw_step(c, {split + c.px(20), top, area.x1, area.y1});
}

void SpeedView::draw_roofline(Context& c, Rect area) {
    Figure figure = roofline_figure(lab_.outcome());
    if (area.height() < c.px(300))  // a line each
        for (Series& series : figure.series)
            if (auto* words = std::get_if<TextMark>(&series.shape))
                words->text.resize(std::min(words->text.find('\n'), words->text.size()));
    // The roofs end where their names have room beside them.
    constexpr float kNames = 112, kTicks = 56;  // logical px
    const double share = c.px(kNames) / (area.width() - c.px(kTicks));
    Range& shown = *figure.x.range;
    if (share < 0.5)
        shown.hi = std::max(shown.hi, kRoofsEnd * std::pow(kRoofsEnd / shown.lo, share / (1 - share)));
    const ui::PlotResult plot = ui::plot(c, "speed.roofline", figure, roofline_, area, {.crosshair = false});
    const auto layer_of = [&](const ui::PlotResult::Hit& hit) -> const Layer* {
        const std::string& name = figure.series[hit.series].name;
        return name.ends_with("8##notebook") || name.ends_with("16##notebook") ? &kNotebook
               : name.ends_with("8##middle") || name.ends_with("16##middle")   ? &kMiddle
                                                                               : nullptr;
    };
    if (const auto hit =
            ui::chosen_mark(c, plot, [&](const auto& near) { return layer_of(near) != nullptr; }))
        set(*layer_of(*hit));
    draw_handle(c, plot);
    draw_hover(c, plot);
}

void SpeedView::set(const Layer& layer) {
    for (const auto& [name, value] : {std::pair{"m", layer.m}, {"n", layer.n}, {"k", layer.k}})
        set(fmt::format("{}={}", name, value));
    for (const char* name : {"m_off", "n_off", "k_off"}) set(std::string(name) + "=0");
}

// The BF16 disc of the chosen layer drags M along the recorded values.
void SpeedView::draw_handle(Context& c, const ui::PlotResult& plot) {
    const Product& fprop = lab_.outcome().products.front();
    if (!fprop.ran(false)) return;
    const Point at = plot.to_px(fprop.ai_bf16, fprop.tflops(false));
    if (!(at.x >= plot.area.x0 && at.x <= plot.area.x1 && at.y >= plot.area.y0 && at.y <= plot.area.y1))
        return;
    const float reach = c.px(11);
    const ui::Press press =
        ui::press(c, "speed.disc", {at.x - reach, at.y - reach, at.x + reach, at.y + reach}, 11);
    const float drawn = c.px(6);  // the words beside it keep off that, and not off its reach
    ui::probe(c, "speed.disc", {at.x - drawn, at.y - drawn, at.x + drawn, at.y + drawn});
    if (press.hovered || press.held || press.focused) {
        auto& list = *ImGui::GetWindowDrawList();
        list.AddCircleFilled({at.x, at.y}, c.px(10), c.color(Role::surface));
        list.AddCircleFilled({at.x, at.y}, c.px(8), c.color(Role::text));
    }
    if (press.held && std::abs(ImGui::GetMouseDragDelta(0).x) > c.px(3))
        lab_.choose_by_intensity(plot.x_at(ImGui::GetIO().MousePos.x));
    if (press.focused && ui::key_pressed(ui::Key::right)) lab_.step_m(1);
    if (press.focused && ui::key_pressed(ui::Key::left)) lab_.step_m(-1);
}

// What the point under the mouse is.
void SpeedView::draw_hover(Context& c, const ui::PlotResult& plot) {
    if (!plot.hovered) return;
    const Outcome& o = lab_.outcome();
    std::array<const Product*, 5> shown = {&o.products[0], &o.products[1], &o.products[2], &o.notebook,
                                           &o.middle};
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    for (const Product* product : shown) {
        for (const bool fp8 : {false, true}) {
            if (!product->ran(fp8)) continue;
            const Point at = plot.to_px(product->ai(fp8), product->tflops(fp8));
            if (std::hypot(at.x - mouse.x, at.y - mouse.y) > c.px(12)) continue;
            const GridPoint& time = fp8 ? *product->fp8 : *product->bf16;
            const bool over = product->tflops(fp8) > o.roofs.memory * product->ai(fp8);
            const std::string body = fmt::format(
                "{} x {} x {}, {} ms, quartiles {} to {}, {} TFLOP/s at {} FLOP per byte.{}{}",
                product->shape[0], product->shape[1], product->shape[2], ms_text(time.median_ms),
                ms_text(time.q1_ms), ms_text(time.q3_ms), screen_number(product->tflops(fp8), 4),
                screen_number(product->ai(fp8), 4), time.kernel.empty() ? "" : " Kernel " + time.kernel + ".",
                over ? " Above the memory roof: its operands are in the cache." : "");
            const bool other = product == &o.notebook || product == &o.middle;
            ImGui::SetCursorScreenPos({at.x - c.px(6), at.y - c.px(6)});
            ImGui::Dummy({c.px(12), c.px(12)});
            ui::tooltip(c, fmt::format("{}, {}", product->name, fp8 ? "FP8" : "BF16"),
                        body + (other ? " A click chooses this layer." : ""));
            return;
        }
    }
}

void SpeedView::draw_lower(Context& c, Rect area) {
    ui::region(c, "lower", area);
    const Outcome& o = lab_.outcome();
    const std::array<std::string, 4> labels = {area.width() < c.px(270) ? "Sweep" : "M sweep", "QKV", "Align",
                                               "Formats"};
    const Rect bar{area.x0, area.y1 - ui::segmented_height(c, labels, area.width()), area.x1, area.y1};
    const auto chosen = std::ranges::find(kViews, o.params.view);
    int selected = static_cast<int>(chosen - kViews.begin());
    ImGui::SetCursorScreenPos({bar.x0, bar.y0});
    ImGui::BeginChild("speed.view", {bar.width(), bar.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
    if (ui::segmented(c, "speed.view", labels, selected))
        set("view=" + std::string(kViews.at(static_cast<std::size_t>(selected))));
    ImGui::EndChild();
    const Rect picture{area.x0, area.y0, area.x1, bar.y0 - c.px(10)};
    if (o.params.view == "align" && !o.align.empty()) return draw_align(c, picture);
    if (o.params.view == "formats") return draw_formats(c, picture);
    const Figure figure = lower_figure(o);
    const bool empty = std::ranges::none_of(figure.series, [](const Series& series) {
        const auto* line = std::get_if<LineSeries>(&series.shape);
        return line && !line->x->empty();
    });
    if (empty) {
        figure_title(c, picture, figure.title);
        return;
    }
    const ui::PlotResult plot = ui::plot(c, "speed.lower", figure, lower_, picture);
    // A point of a curve is a size.
    if (const auto hit = ui::chosen_mark(c, plot, [&](const ui::PlotResult::Hit& near) {
            return std::holds_alternative<LineSeries>(figure.series[near.series].shape);
        }))
        set(fmt::format("m={:.0f}", hit->x));
}

// The nine products as buttons: a press chooses that size.
void SpeedView::draw_align(Context& c, Rect area) {
    const Outcome& o = lab_.outcome();
    const Figure figure = align_figure(o);
    const bool told = figure.title == roofline_figure(o).title;  // above the other figure
    const float top = told ? area.y0 : figure_title(c, area, figure.title) + c.px(4);
    const float head = c.px(56);
    const float pitch = (area.width() - head) / 3;
    const float row = std::min(c.px(44), (area.y1 - top - c.px(44)) / 4);
    for (std::size_t column = 0; column < 3; ++column)
        ui::text_mid(c, {area.x0 + head + pitch * (static_cast<float>(column) + 0.5F), top + row / 2},
                     fmt::format("{} = {}", o.align[column].dimension, kAlignEdge + 1), {Role::muted},
                     kMono13, Anchor::center);
    for (std::size_t i = 0; i < o.align.size(); ++i) {
        const AlignCell& cell = o.align[i];
        const auto line = static_cast<float>(i / 3 + 1), column = static_cast<float>(i % 3);
        const float y = top + line * row;
        if (i % 3 == 0) ui::text_mid(c, {area.x0, y + row / 2}, cell.product, {Role::text}, kSans13);
        const Rect box{area.x0 + head + column * pitch + c.px(3), y + c.px(3),
                       area.x0 + head + (column + 1) * pitch - c.px(3), y + row - c.px(3)};
        const ui::Press press =
            ui::press(c, fmt::format("speed.align.{}.{}", cell.product, cell.dimension), box, 4);
        ui::fill_rect(c, box, {Role::field}, 4);
        const Params& p = o.params;
        const int offset = cell.dimension == 'M' ? p.m_off : cell.dimension == 'N' ? p.n_off : p.k_off;
        const bool chosen = offset == 1 && p.m == kAlignEdge && p.n == kAlignEdge && p.k == kAlignEdge;
        ui::stroke_rect(c, box, {press.hovered || chosen ? Role::axis : Role::line}, 4);
        std::string said = cell_text(cell);
        if (ui::text_width(c, said, kMono13) > box.width() - c.px(6))
            said = cell.fp8 ? said.substr(0, said.find(' ')) : "\u2013";
        ui::text_mid(c, {(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2}, said,
                     {cell.refused() ? Role::sat : Role::text, Tone::ink}, kMono13, Anchor::center);
        if (!press.clicked) continue;
        for (const char* name : {"m", "n", "k"}) set(fmt::format("{}={}", name, kAlignEdge));
        for (const auto& [name, dimension] : {std::pair{"m_off", 'M'}, {"n_off", 'N'}, {"k_off", 'K'}})
            set(fmt::format("{}={}", name, cell.dimension == dimension ? 1 : 0));
    }
    const Product& fprop = o.products.front();
    const Layer wide = padded(o.params.layer());
    const std::string words =
        !o.params.off() ? "Press a cell, then Pad to 16 (under More)."
        : o.params.pad ? fmt::format("Padded to {} x {} x {}: {} ms, {} % more work.", wide.m, wide.n, wide.k,
                                     ms_text(fprop.ms(true)), screen_number(o.waste_pct(), 2))
                       : fmt::format("Pad to 16 makes it {} x {} x {}: {} % more work.", wide.m, wide.n,
                                     wide.k, screen_number(o.waste_pct(), 2));
    float y = top + 4 * row + c.px(18);
    for (const std::string_view line : ui::wrap_lines(c, words, kSans13, area.width())) {
        ui::text_mid(c, {area.x0, y}, line, {Role::muted}, kSans13);
        y += c.px(20);
    }
}

void SpeedView::draw_formats(Context& c, Rect area) {
    const Outcome& o = lab_.outcome();
    const float top = figure_title(c, area, formats_figure(o).title);
    const std::array<std::string, 4> sizes = {"1024\u00b3", "2048\u00b3", "4096\u00b3", "8192\u00b3"};
    static constexpr std::array kSizes = {"1024", "2048", "4096", "8192"};
    int selected = static_cast<int>(std::ranges::find(kSizes, o.params.n3) - kSizes.begin());
    ImGui::SetCursorScreenPos({area.x0, top});
    ImGui::BeginChild("speed.formats", {area.width(), area.y1 - top}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
    if (ui::segmented(c, "speed.n3", sizes, selected))
        set(std::string("n3=") + kSizes.at(static_cast<std::size_t>(selected)));
    const auto rows = static_cast<float>(o.formats.size() + 1);
    const float high = std::clamp((area.y1 - top - c.px(48)) / rows, c.px(21), c.px(30));
    Rect table = ui::next_area(c, rows * high / c.scale);
    table.x1 -= c.px(10);  // for the thumb
    const float width = table.width();
    // Right edges of ms, TFLOP/s, times FP16, MB and what the chapter prints; the last two need room.
    const bool narrow = width < c.px(360);
    const std::array edges =
        narrow ? std::array{0.54F, 0.8F, 1.0F, 0.0F, 0.0F} : std::array{0.44F, 0.62F, 0.77F, 0.87F, 1.0F};
    const std::size_t columns = narrow ? 3 : 5;
    const auto line = [&](std::size_t index, const std::string& name, const std::array<std::string, 5>& cells,
                          const std::array<Role, 5>& roles, bool head) {
        const float y = table.y0 + (static_cast<float>(index) + 0.5F) * high;
        if (!head) ui::hline(c, table.x0, table.x1, y - high / 2, {Role::line});
        ui::text_mid(c, {table.x0, y}, name, {Role::text}, kSans13);
        for (std::size_t i = 0; i < columns; ++i)
            ui::text_mid(c, {table.x0 + edges.at(i) * width, y}, cells.at(i), {roles.at(i), Tone::ink},
                         head ? kSans13 : kMono13, Anchor::right);
    };
    constexpr Role kMuted = Role::muted, kText = Role::text;
    const bool printed = o.params.n3 == "4096";
    line(0, "", {"ms", "TFLOP/s", "\u00d7 FP16", "MB", printed ? "ch. 19" : ""},
         {kMuted, kMuted, kMuted, kMuted, kMuted}, true);
    const auto fp16 = std::ranges::find(o.formats, "fp16", &FormatRow::kind);
    for (std::size_t i = 0; i < o.formats.size(); ++i) {
        const FormatRow& row = o.formats[i];
        const bool ran = row.time && row.time->ran(), refused = row.time && row.time->status != 0;
        const bool against = ran && fp16->time && fp16->time->ran();
        const std::string speed = ran       ? fmt::format("{:.0f}", row.time->tflops())
                                  : refused ? fmt::format("refused ({})", row.time->status)
                                            : "\u2013";
        line(i + 1, row.label,
             {ran ? ms_text(row.time->median_ms) : "", speed,
              against ? fmt::format("{:.2f}", fp16->time->median_ms / row.time->median_ms) : "",
              row.time ? fmt::format("{:.0f}", row.time->bytes / 1e6) : "",
              row.printed_tflops > 0 ? fmt::format("{:.0f}", row.printed_tflops) : ""},
             {kText, refused ? Role::sat : kText, kText, kText, kMuted}, false);
    }
    ui::advance(table);
    ui::scroll_thumbs(c);
    ImGui::EndChild();
}

void SpeedView::draw_step(Context& c, Rect area) {
    ui::region(c, "step", area);
    const Outcome& o = lab_.outcome();
    const StepOutcome& step = o.step;
    std::vector<std::string> lines = amdahl_lines(o);
    if (!step.found) {
        const float below = figure_title(c, area, step_figure(o).title);
        float y = below + c.px(6);
        for (const auto line :
             ui::wrap_lines(c, "A step trains the network K-N-K with batch M.", kSans13, area.width())) {
            ui::text_mid(c, {area.x0, y}, line, {Role::muted}, kSans13);
            y += c.px(20);
        }
        if (step.nearest) {
            ImGui::SetCursorScreenPos({area.x0, y});
            const std::string words = "Show " + step_name(*step.nearest);
            const bool fits = ui::text_width(c, words, kSans15) + c.px(40) <= area.width();
            if (ui::button(c, "speed.nearest", fits ? words : "Show the nearest step", {.width = 0})) {
                set(Layer{step.nearest->batch, step.nearest->layers.at(1), step.nearest->layers.at(0)});
            }
        }
        return;
    }
    std::vector<std::pair<std::string_view, Role>> below;
    std::size_t asked_for = 0;  // the lines of f and r, from which an exercise computes
    for (const std::string& line : lines) {
        for (const auto part : ui::wrap_lines(c, line, kSans13, area.width()))
            below.emplace_back(part, Role::text);
        if (asked_for == 0) asked_for = below.size();
    }
    for (const auto part :
         ui::wrap_lines(c, "The casts of the step write the transposed copies too.", kSans13, area.width()))
        below.emplace_back(part, Role::muted);
    // The bars need their room before the rest; what does not fit below them is in the lesson.
    constexpr float kBars = 190, kLine = 20;
    const float room = area.height() - c.px(kBars + 12);
    const auto fit = static_cast<std::size_t>(std::max(0.0F, room / c.px(kLine)));
    below.resize(std::min(below.size(), std::max(fit, asked_for)));
    const float height = below.empty() ? 0 : c.px(kLine) * static_cast<float>(below.size()) + c.px(12);
    const Rect picture{area.x0, area.y0, area.x1, area.y1 - height};
    Figure figure = step_figure(o);
    if (picture.height() < c.px(kBars)) figure.x.label.clear();  // the bars say ms too, and need its row
    ui::plot(c, "speed.step", figure, step_, picture,
             {.interactive = false, .crosshair = false, .y_tick_width = 0});
    if (below.empty()) return;
    ui::hline(c, area.x0, area.x1, picture.y1 + c.px(4), {Role::line});
    float y = picture.y1 + c.px(20);
    for (const auto& [line, role] : below) {
        ui::text_mid(c, {area.x0, y}, line, {role}, kSans13);
        y += c.px(kLine);
    }
}

bool SpeedView::key(Context&, ui::Key key) {
    static constexpr std::array kActions = {std::pair{ui::Key::space, "measure"},
                                            std::pair{ui::Key::g, "measure_grid"},
                                            std::pair{ui::Key::s, "measure_step"}};
    const auto action = std::ranges::find(kActions, key, &std::pair<ui::Key, const char*>::first);
    if (action != kActions.end()) {  // without a GPU the button says why nothing happens
        if (lab_.gpu_reason().empty() && !lab_.busy()) lab_.act(action->second);
        return true;
    }
    if (key == ui::Key::escape && lab_.busy()) {
        lab_.act("stop");
        return true;
    }
    return false;
}

std::span<const ViewKey> SpeedView::keys() const {
    static constexpr std::array kKeys = {
        ViewKey{"Space", "measures the layer on this GPU", ui::Key::space, ui::Key::space},
        ViewKey{"G", "measures every M on this GPU", ui::Key::g, ui::Key::g},
        ViewKey{"S", "measures one step on this GPU", ui::Key::s, ui::Key::s}};
    return kKeys;
}

std::vector<std::pair<std::string, std::string>> SpeedView::status() const {
    const Params& p = lab_.params();
    const Layer layer = p.layer();
    const auto& fprop = lab_.outcome().products.front();
    const int repeats = fprop.ran(false) ? fprop.bf16->repeats : p.repeats;
    return {
        {"layer", layer_text(layer)}, {"M", std::to_string(layer.m)}, {"repeats", std::to_string(repeats)}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<SpeedView>(static_cast<SpeedLab&>(lab));
}

}  // namespace fp8lab::speed
