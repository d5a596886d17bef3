#include "labs/memory/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::memory {

namespace {

using ui::Context;

constexpr double kFewest = 512, kMost = 131072;  // tokens of a sequence

}  // namespace

void MemoryView::stage(Context& c, Rect area) {
    std::vector<Figure> figures = lab_.figures();
    const float height = area.height() / c.scale;
    // Where it is low the table scrolls and the other plans go; where it is narrow the title takes two lines.
    const bool narrow = area.width() < c.px(680);
    const float bars = std::clamp(0.36F * height, narrow ? 232.0F : 190.0F, 262.0F);
    if (narrow ||
        bars < 230)  // above a bar is room for one line: the name of the plan, not those of the segments
        std::erase_if(figures[0].series, [](const Series& series) {
            const auto* mark = std::get_if<TextMark>(&series.shape);
            return mark && mark->room && !mark->ground;
        });
    ui::plot(c, "memory.bars", figures[0], bars_, {area.x0, area.y0, area.x1, area.y0 + c.px(bars)},
             {.interactive = false, .crosshair = false, .y_tick_width = 0});
    const float top = area.y0 + c.px(bars + 12);
    const float split = std::round(area.x0 + 0.565F * area.width());
    Rect table{area.x0, top, split - c.px(20), area.y1}, right{split + c.px(20), top, area.x1, area.y1};
    if (narrow) {  // one of the two
        static const std::array<std::string, 2> kPictures = {"Table", "Tokens"};
        ImGui::SetCursorScreenPos({area.x0, top});
        ImGui::BeginChild("memory.switch", {c.px(220), c.px(36)}, false, ImGuiWindowFlags_NoScrollbar);
        ui::segmented(c, "memory.picture", kPictures, picture_);
        ImGui::EndChild();
        table = right = {area.x0, top + c.px(42), area.x1, area.y1};
    } else {
        ui::fill_rect(c, {split, top, split + ui::hairline(c), area.y1}, {Role::line});
    }
    if (!narrow || picture_ == 0) draw_table(c, table);
    if (!narrow || picture_ == 1) draw_right(c, figures, right);
}

// The difference over tokens and, below it, the other plans; of L8's network what its bars are.
void MemoryView::draw_right(Context& c, const std::vector<Figure>& figures, Rect area) {
    if (!lab_->outcome->ours()) {
        const bool room = area.height() >= c.px(400);
        const float middle = room ? area.y0 + 0.55F * area.height() : area.y1;
        draw_tokens(c, figures[1], {area.x0, area.y0, area.x1, middle - (room ? c.px(12) : 0)});
        if (room) draw_plans(c, figures[2], {area.x0, middle, area.x1, area.y1});
        return;
    }
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::BeginChild("memory.mlp", {area.width(), area.height()}, false, ImGuiWindowFlags_NoScrollbar);
    ui::text(c, "What is counted", Role::text, kBold15);
    ui::wrapped(
        c,
        "The bars are the list of everything that the trainer allocates: weights in FP32, Adam’s m and v, "
        "the "
        "gradient, the operands of each GEMM, outputs, scales, statistics and records. Sizes are padded to "
        "multiples of 16; more than 1 MiB takes whole pages of 2 MiB.");
    if (const double saved = lab_->outcome->trainer[1].saved; saved > 0)
        ui::wrapped(
            c,
            fmt::format("Activations and gradients that are not needed at the same time share memory: they "
                        "stand under activations. In FP8 this saves {}.",
                        gb_text(saved)));
    ImGui::EndChild();
}

// The plot with its dot "now" as a handle: dragging it changes the sequence.
void MemoryView::draw_tokens(Context& c, const Figure& figure, Rect area) {
    const ui::PlotResult plot =
        ui::plot(c, "memory.tokens", figure, tokens_, area, {.interactive = false, .y_tick_width = 32});
    const Outcome& o = *lab_->outcome;
    const double now = std::clamp(o.load.tokens(), plot.extents.x.lo, plot.extents.x.hi);
    const Point at = plot.to_px(now, difference_at(o, now) / kGB);
    const float reach = c.px(12);
    const ui::Press press =
        ui::press(c, "memory.seq", {at.x - reach, at.y - reach, at.x + reach, at.y + reach}, 12);
    ui::tooltip(c, "Sequence",
                "Drag: the tokens of a sequence change. Arrow keys: by a quarter of a binade.");
    double tokens = 0;
    if (press.held && ImGui::IsMouseDragging(ImGuiMouseButton_Left, c.px(3)))
        tokens = plot.x_at(ImGui::GetIO().MousePos.x);
    else if (press.focused && (ui::key_pressed(ui::Key::left) || ui::key_pressed(ui::Key::right)))
        tokens = o.load.tokens() * std::exp2(ui::key_pressed(ui::Key::left) ? -0.25 : 0.25);
    if (!(tokens > 0)) return;
    const double sequence = std::clamp(tokens / o.load.batch, kFewest, kMost);
    set_field(lab_.fields(), fmt::format("seq={}", std::lround(sequence)));
}

// Thin bars between names and totals; a press makes the plan the compared one.
void MemoryView::draw_plans(Context& c, Figure figure, Rect area) {
    ui::region(c, "plans", area);
    const std::vector<Plan> others = other_plans(lab_->params, *lab_->outcome);
    ui::text_at(c, {area.x0, area.y0}, figure.title, {Role::text}, kBold15);
    figure.title.clear();
    figure.x.visible = false;
    float names = 0;
    for (const Plan& plan : others)
        names = std::max(names, ui::text_width(c, plan.label, kSans13) + c.px(12));
    names = std::min(names, 0.49F * area.width());
    const float top = area.y0 + c.px(28), foot = c.px(24), totals = c.px(44);
    const float row = std::min(c.px(27), (area.y1 - foot - top) / static_cast<float>(others.size()));
    const Rect bars{area.x0 + names, top, area.x1 - totals, top + row * static_cast<float>(others.size())};
    ui::plot(c, "memory.plans", figure, plans_, bars,
             {.bare = true, .interactive = false, .crosshair = false});
    for (std::size_t i = 0; i < others.size(); ++i) {
        const float y = top + row * (static_cast<float>(i) + 0.5F);
        const Rect line{area.x0 - c.px(6), y - row / 2, area.x1 + c.px(6), y + row / 2};
        if (ui::press_row(c, "memory.plan." + std::string(others[i].id), line, false))
            set("compare=" + std::string(others[i].id));
        ui::advance(line);
        ui::tooltip(c, others[i].name, "Press: the plan becomes the second bar.");
        ui::text_mid(c, {area.x0, y}, ui::cut_middle(c, others[i].label, kSans13, names - c.px(8)),
                     {Role::text}, kSans13);
        const double total =
            account(others[i], lab_->outcome->model, lab_->outcome->load, lab_->params.pcie * kGB).on_gpu();
        ui::text_mid(c, {area.x1, y}, gb_short(total), {Role::text}, kMono13, Anchor::right);
    }
    ui::text_at(c, {area.x0, area.y1 - c.px(20)}, "GB per GPU. The tutorial counts no activations.",
                {Role::muted}, kSans13);
}

std::vector<std::pair<std::string, std::string>> MemoryView::status() const {
    const Outcome& o = *lab_->outcome;
    if (o.ours())
        return {{"network", std::string(o.own_model->sizes)}, {"batch", std::string(o.own_model->batch)}};
    return {{"parameters", fmt::format("{:.4g} × 10^9", o.parameters / kGB)},
            {"tokens per GPU", group_thousands(std::llround(o.load.tokens()))},
            {"GPUs", fmt::format("{:.0f}", o.load.gpus)}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<MemoryView>(static_cast<MemoryLab&>(lab));
}

}  // namespace fp8lab::memory
