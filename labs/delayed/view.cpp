#include "labs/delayed/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/imgui_canvas.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::delayed {

namespace {

using ui::Context;

constexpr double kPlayStep_s = 0.5;

enum class Glyph { first, back, on };

bool glyph_button(Context& c, std::string_view name, Point at, Glyph glyph) {
    const float side = c.px(40), tall = c.px(32);
    const Rect area{at.x, at.y, at.x + side, at.y + tall};
    const ui::Press press = ui::press(c, name, area);
    ui::fill_rect(c, area, {Role::field}, 6);
    ui::stroke_rect(c, area, {press.hovered ? Role::axis : Role::line}, 6);
    const Point middle{(area.x0 + area.x1) / 2, (area.y0 + area.y1) / 2};
    const float reach = c.px(5), way = glyph == Glyph::on ? 1.0F : -1.0F;
    ImDrawList& list = *ImGui::GetWindowDrawList();
    const ImVec2 tip{middle.x + way * reach, middle.y}, up{middle.x - way * reach, middle.y - reach},
        down{middle.x - way * reach, middle.y + reach};
    way > 0 ? list.AddTriangleFilled(up, tip, down, c.color(Role::text))
            : list.AddTriangleFilled(up, down, tip, c.color(Role::text));
    if (glyph == Glyph::first)
        ui::fill_rect(
            c, {middle.x - reach - c.px(3), middle.y - reach, middle.x - reach - c.px(1), middle.y + reach},
            {Role::text});
    return press.clicked;
}

}  // namespace

// Heights in logical px from the bottom: boxes, transport, scrub, strips; the timeline takes what is left.
void DelayedView::stage(Context& c, Rect area) {
    play(c);
    const float height = area.height() / c.scale;
    const bool roomy = height >= 620;
    const float boxes = roomy ? 196 : height >= 440 ? 150 : 0;
    const float strips = roomy ? 5 * 32.0F : 3 * 26.0F;
    const float transport = roomy ? 52 : 44;
    const float below = boxes + transport + 26 + strips;
    const ui::PlotResult plot = draw_timeline(c, {area.x0, area.y0, area.x1, area.y1 - c.px(below)});
    const Rect strip_area{area.x0, area.y1 - c.px(below), area.x1, area.y1 - c.px(below - strips)};
    ui::region(c, "strips", strip_area);
    draw_strips(c, *lab_, plot, strip_area, roomy);
    draw_scrub(c, plot, strip_area.y1 + c.px(10));
    const float top = strip_area.y1 + c.px(26);
    draw_transport(c, {area.x0, top, area.x1, top + c.px(32)});
    if (boxes == 0) return;
    const float boxes_top = area.y1 - c.px(boxes);
    ui::hline(c, area.x0, area.x1, boxes_top, {Role::line});
    draw_boxes(c, *lab_, {area.x0, boxes_top + c.px(12), area.x1, area.y1});
}

ui::PlotResult DelayedView::draw_timeline(Context& c, Rect area) {
    Figure figure = lab_.figures().front();
    figure.x.visible = false;  // the strips show the steps
    if (area.height() < c.px(170)) drop_words(figure);
    const double at = lab_->cursor();
    figure.series.insert(
        figure.series.begin(),
        {"cursor", XSpan{at, at + 1}, {.color = {Role::field, Tone::fill, 0.75F}, .in_legend = false}});
    const ui::PlotResult plot = ui::plot(c, "delayed.timeline", figure, plot_, area,
                                         {.crosshair = false, .y_tick_width = kLabelWidth - 12});
    const bool clicked = plot.hovered && ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
                         ImGui::GetIO().MouseDragMaxDistanceSqr[0] < c.px(3) * c.px(3);
    if (clicked && plot.cursor_x) lab_->go_to(static_cast<int>(std::floor(*plot.cursor_x)));
    if (lab_->shown().machine.order == "notebook") {
        ui::ImGuiCanvas canvas(c);
        const float x0 = plot.area.x0 / c.scale, y0 = plot.area.y0 / c.scale, x1 = plot.area.x1 / c.scale,
                    y1 = plot.area.y1 / c.scale;
        const std::array<Point, 4> corners = {Point{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}};
        canvas.line_strip(corners, {Role::text}, 1.5F, Dash::dash, true);
        // At the end where the curve is lower: a ramp rises to the right.
        const auto& steps = lab_->shown().steps;
        const bool rises = !steps.empty() && steps.back().amax > steps.front().amax;
        ui::text_mid(c, {rises ? plot.area.x0 + c.px(12) : plot.area.x1 - c.px(12), plot.area.y0 + c.px(16)},
                     "notebook’s order", {Role::text}, kBold15, rises ? Anchor::left : Anchor::right);
        ui::probe(c, "delayed.notebooks_order", plot.area);
    }
    return plot;
}

void DelayedView::draw_scrub(Context& c, const ui::PlotResult& plot, float y) {
    const Rect area{plot.area.x0, y - c.px(10), plot.area.x1, y + c.px(10)};
    const ui::Press press = ui::press(c, "delayed.scrub", area);
    if (press.held) lab_->go_to(static_cast<int>(std::floor(plot.x_at(ImGui::GetIO().MousePos.x))));
    if (press.focused) {
        const int arrows = ui::arrow_step();
        if (arrows != 0) lab_->go_to(lab_->cursor() + arrows);
        if (ui::key_pressed(ui::Key::home)) lab_->go_to(0);
        if (ui::key_pressed(ui::Key::end)) lab_->go_to(lab_->steps() - 1);
    }
    const float thick = 2 * ui::hairline(c), top = std::round(y - thick / 2);
    const float knob = std::clamp(plot.to_px(lab_->cursor() + 0.5, 1).x, area.x0, area.x1);
    ui::fill_rect(c, {area.x0, top, area.x1, top + thick}, {Role::line});
    ui::fill_rect(c, {area.x0, top, knob, top + thick}, {Role::text});
    ImDrawList& list = *ImGui::GetWindowDrawList();
    list.AddCircleFilled({knob, y}, c.px(10), c.color(Role::surface));
    list.AddCircleFilled({knob, y}, c.px(8), c.color(Role::text));
}

void DelayedView::draw_transport(Context& c, Rect area) {
    const float pitch = c.px(48);
    if (glyph_button(c, "delayed.first", {area.x0, area.y0}, Glyph::first)) lab_->go_to(0);
    if (glyph_button(c, "delayed.back", {area.x0 + pitch, area.y0}, Glyph::back))
        lab_->go_to(lab_->cursor() - 1);
    if (glyph_button(c, "delayed.on", {area.x0 + 2 * pitch, area.y0}, Glyph::on))
        lab_->go_to(lab_->cursor() + 1);
    ImGui::SetCursorScreenPos({area.x0 + 3 * pitch, area.y0});
    if (ui::button(c, "delayed.play", playing_ ? "Pause" : "Play", {.key = "Space", .width = 116}))
        toggle_play();
    const float y = area.y0 + c.px(16);
    float x = area.x0 + 3 * pitch + c.px(128);
    for (const auto& [words, role, face] :
         {std::tuple<std::string, Role, Face>{"Step ", Role::text, Face::sans},
          {group_thousands(lab_->cursor()), Role::text, Face::sans_bold},
          {" of " + group_thousands(lab_->steps() - 1), Role::muted, Face::sans}}) {
        ui::text_mid(c, {x, y}, words, {role}, {face, 15});
        x += ui::text_width(c, words, {face, 15});
    }
    const float left = area.x1 - c.px(184);
    if (left - x > c.px(90))
        ui::text_mid(c, {left - c.px(12), y}, "Compare", {Role::muted}, {Face::sans, 15}, Anchor::right);
    if (left < x + c.px(8)) return;  // the panel has the same choice
    static constexpr std::array<const char*, 3> kIds = {"a", "ab", "b"};
    const std::array<std::string, 3> labels = {"A", "A + B", "B"};
    int selected = 0;
    for (int i = 0; i < 3; ++i)
        if (lab_->params.compare == kIds.at(static_cast<std::size_t>(i))) selected = i;
    ImGui::SetCursorScreenPos({left, area.y0});
    ImGui::BeginChild("delayed.compare", {c.px(184), c.px(32)}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
    if (ui::segmented(c, "delayed.compare", labels, selected))
        set_field(lab_.fields(), std::string("compare=") + kIds.at(static_cast<std::size_t>(selected)));
    ImGui::EndChild();
}

// One step every half second, and it ends with the series.
void DelayedView::play(Context& c) {
    if (!playing_) return;
    c.wants_redraw = true;
    if (ImGui::GetTime() < next_at_) return;
    next_at_ = ImGui::GetTime() + kPlayStep_s;
    lab_->go_to(lab_->cursor() + 1);
    playing_ = lab_->cursor() + 1 < lab_->steps();
}

void DelayedView::toggle_play() {
    playing_ = !playing_;
    if (!playing_) return;
    if (lab_->cursor() + 1 >= lab_->steps()) lab_->go_to(0);
    next_at_ = ImGui::GetTime() + kPlayStep_s;
}

bool DelayedView::key(Context&, ui::Key key) {
    const std::string& compare = lab_->params.compare;
    if (key == ui::Key::space) {
        toggle_play();
    } else if (key == ui::Key::comma || key == ui::Key::period) {
        lab_->go_to(lab_->cursor() + (key == ui::Key::period ? 1 : -1));
    } else if (key == ui::Key::b) {
        set_field(lab_.fields(), compare == "a" ? "compare=ab" : compare == "ab" ? "compare=b" : "compare=a");
    } else {
        return false;
    }
    return true;
}

std::span<const ViewKey> DelayedView::keys() const {
    static constexpr std::array kKeys = {
        ViewKey{"Space", "plays and pauses", ui::Key::space, ui::Key::space},
        ViewKey{".", "one step forward", ui::Key::period, ui::Key::period},
        ViewKey{",", "one step back", ui::Key::comma, ui::Key::comma},
        ViewKey{"B", "A, A + B or B", ui::Key::b, ui::Key::b},
    };
    return kKeys;
}

std::vector<std::pair<std::string, std::string>> DelayedView::status() const {
    const TensorSpec& tensor = lab_->params.scenario.tensor;
    const std::string size =
        group_thousands(static_cast<std::int64_t>(lab_->tensors().elements())) + " elements";
    if (!tensor.file.empty()) return {{"tensor", tensor.file + ", " + size + lab_->tensors().note()}};
    std::string kind = tensor.kind;
    if (tensor.kind == "lognormal") kind += ", sigma " + format_number(tensor.sigma);
    return {{"seed", std::to_string(tensor.seed)}, {"tensor", kind + ", " + size}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<DelayedView>(static_cast<DelayedLab&>(lab));
}

}  // namespace fp8lab::delayed
