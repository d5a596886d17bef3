// The loss, and under it a lane for each tensor: what becomes 0 as a column, a triangle where it saturates.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"
#include "labs/workbench/view_run.h"

namespace fp8lab::workbench {
namespace {

using ui::Context;

constexpr float kLane = 26, kColumn = 20;  // a lane, and a column of 100 %
constexpr float kLeastShown = 0.5F;        // % of a step: less is lower than a pixel

void triangle(Context& c, Point at, float reach) {
    const float r = c.px(reach);
    ImGui::GetWindowDrawList()->AddTriangleFilled({at.x - r, at.y + 0.75F * r}, {at.x, at.y - r},
                                                  {at.x + r, at.y + 0.75F * r}, c.color(Color{Role::sat}));
}

}  // namespace

float RunView::Time::x_of(double step) const {
    return x0 + (x1 - x0) * static_cast<float>((step - first) / (static_cast<double>(last) - first));
}
double RunView::Time::step_at(float x) const {
    const double share = static_cast<double>((x - x0) / (x1 - x0));
    return first + std::clamp(share, 0.0, 1.0) * (static_cast<double>(last) - first);
}

float RunView::label_width(const Context& c, Rect area, const std::vector<std::size_t>& lanes) const {
    float widest = c.px(70);
    for (std::size_t i = 0; i < std::min<std::size_t>(lanes.size(), 40); ++i)
        widest = std::max(widest, ui::text_width(c, run().diagnoses->short_name(lanes[i]), kMonoBold13));
    return std::round(std::min(widest + c.px(16 + 14), 0.3F * area.width()));
}

float RunView::draw_loss(Context& c, Rect area, const Time& time) {
    Figure figure = run().figures()[0];
    const std::string name = figure.series.empty() ? "" : figure.series[0].name;
    ui::text_mid(c, {area.x0, area.y0 + c.px(12)}, "loss", {Role::muted}, kSans13);
    ui::text_mid(c, {area.x1, area.y0 + c.px(8)}, name, {figure.series[0].style.color.role, Tone::ink},
                 kBold13, Anchor::right);
    for (Series& series : figure.series) series.style.in_legend = false;
    figure.x.visible = figure.y.visible = true;
    figure.x.label.clear(), figure.y.label.clear(), figure.title.clear();
    figure.x.visible = false;
    figure.x.range = Range{static_cast<double>(time.first), static_cast<double>(time.last)};
    const Rect plot{area.x0, area.y0 + c.px(4), area.x1, area.y1};
    ui::plot(c, "doctor.loss", figure, loss_, plot,
             {.interactive = false,
              .crosshair = false,
              .y_tick_width = (time.x0 - area.x0) / c.scale - 12,
              .title_height = 0});
    draw_loss_words(c, {time.x0, area.y0, area.x1 - ui::text_width(c, name, kBold13) - c.px(12), area.y1},
                    time);
    return area.y1;
}

// Beside the line where the loss is not finite for the first time; left of it where the right has no room.
void RunView::draw_loss_words(Context& c, Rect area, const Time& time) {
    const std::string words = run().loss_words();
    if (words.empty()) return;
    const float y = area.y0 + c.px(8), gap = c.px(8), width = ui::text_width(c, words, kBold13);
    const float x = time.x_of(first_nonfinite_loss(log())->step);
    const bool right = x + gap + width <= area.x1;
    const float from = right ? x + gap : std::max(area.x0, std::min(x, area.x1) - gap - width);
    ui::text_mid(c, {from, y}, words, {Role::sat, Tone::ink}, kBold13);
    ui::probe(c, "doctor.loss.odd", {from, y - gap, from + width, y + gap}, {}, words);
}

// Columns of the same height beside each other are one rectangle.
void RunView::draw_lane(Context& c, const Time& time, std::size_t tensor, Rect line) {
    const Diagnosis& now = *run().diagnoses;
    const Lane& lane = now.lanes[tensor];
    const float base = line.y0 + c.px(22), tall = c.px(kColumn);
    const auto height = [&](std::size_t b) {
        const float pct = lane.pct[b];
        return pct < kLeastShown ? 0.0F : std::max(1.0F, std::round(tall * pct / 100));
    };
    for (std::size_t b = 0; b < lane.pct.size();) {
        std::size_t end = b + 1;
        const float h = height(b);
        // A step that was not logged shows what was last.
        while (end < lane.pct.size() && (lane.pct[end] < 0 || height(end) == h)) ++end;
        if (h > 0) {
            const float x0 = time.x_of(now.step_of(static_cast<double>(b)) - 0.5),
                        x1 = time.x_of(now.step_of(static_cast<double>(end)) - 0.5);
            const float left = std::max(x0, time.x0), right = std::min(x1, time.x1);
            ui::fill_rect(c, {left, base - h, std::max(right, left + 1), base}, {Role::under, Tone::fill});
        }
        b = end;
    }
    ui::hline(c, time.x0, time.x1, line.y0 + c.px(23), {Role::line});
    float last = -1e9F;  // triangles that lie on one another are one
    for (const std::size_t b : lane.over) {
        const float x = time.x_of(now.step_of(static_cast<double>(b)));
        if (x - last < c.px(2)) continue;
        triangle(c, {x, line.y0 + c.px(6)}, 4);
        last = x;
    }
}

// In the wider of the free ends of a lane: what its finding is.
void RunView::draw_words(Context& c, const Time& time, std::size_t tensor, Rect line) {
    const Diagnosis& now = *run().diagnoses;
    const RunFinding* const finding = now.finding_of(tensor);
    if (!finding || covered()) return;
    const Lane& lane = now.lanes[tensor];
    const bool first = finding == &now.findings.front();
    std::string words = first ? run().lane_words(tensor) : "";
    if (words.empty()) words = finding->cause.substr(0, finding->cause.find_first_of(":;"));
    const Font font = first ? kBold13 : kSans13;
    const float width = ui::text_width(c, words, font), air = c.px(12), y = line.y0 + c.px(11);
    // Ends of what is drawn, from left to right; the words take the widest gap.
    float gap_from = time.x0, gap_to = time.x0, reach = time.x0;
    const auto meet = [&](double from, double to) {
        const float x0 = time.x_of(from);
        if (x0 - reach > gap_to - gap_from) gap_from = reach, gap_to = x0;
        reach = std::max(reach, time.x_of(to));
    };
    std::size_t next = 0;
    for (std::size_t b = 0; b < lane.pct.size(); ++b) {
        const bool over = next < lane.over.size() && lane.over[next] == b;
        if (over) ++next;
        if (over || lane.pct[b] >= kLeastShown)
            meet(now.step_of(static_cast<double>(b)), now.step_of(static_cast<double>(b + 1)));
    }
    // After the last mark, where it fits there: beside what it speaks of.
    if (time.x1 - reach >= width + air) gap_from = reach, gap_to = time.x1;
    meet(time.last, time.last);
    if (gap_to - gap_from < width + 2 * air - c.px(4)) return;
    float from = gap_from + air;
    // Words that the cursor would run through stand behind it.
    const float cursor = std::round(time.x_of(run().cursor())), beside = c.px(6);
    if (cursor > from - beside && cursor < from + width + beside) from = cursor + beside;
    if (from + width > gap_to) return;
    ui::text_mid(c, {from, y}, words, {first ? Role::text : Role::muted}, font);
}

float RunView::draw_lanes(Context& c, Rect area, const Time& time, const std::vector<std::size_t>& lanes,
                          std::size_t rows, float top) {
    const float pitch = c.px(kLane), bleed = c.px(4);
    const auto selected = run().selected();
    const float all = pitch * static_cast<float>(lanes.size()), shown = pitch * static_cast<float>(rows);
    ui::region(c, "lanes", area);
    ImGui::SetCursorScreenPos({area.x0 - bleed, area.y0});
    ImGui::BeginChild("doctor.lanes", {area.width() + 2 * bleed + c.px(10), shown}, false,
                      ImGuiWindowFlags_NoScrollbar);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    if (to_lane_ && selected) {
        const auto at = static_cast<float>(std::ranges::find(lanes, *selected) - lanes.begin());
        if (pitch * at < ImGui::GetScrollY()) ImGui::SetScrollY(pitch * at);
        if (pitch * (at + 1) > ImGui::GetScrollY() + shown) ImGui::SetScrollY(pitch * (at + 1) - shown);
        to_lane_ = false;
    }
    const auto first = static_cast<std::size_t>(std::max(0.0F, std::floor(ImGui::GetScrollY() / pitch)));
    for (std::size_t i = first; i < std::min(lanes.size(), first + rows + 1); ++i) {
        const float y = origin.y + pitch * static_cast<float>(i);
        const Rect line{area.x0, y, area.x1, y + pitch};
        const std::size_t tensor = lanes[i];
        const bool chosen = selected == tensor;
        const TensorSeries& series = log().tensors[tensor];
        if (chosen)
            ui::fill_rect(c, {line.x0 - bleed, y - 1, line.x1 + bleed, y + c.px(24)}, {Role::field}, 4);
        const CastPlan plan = cast_plan(run().diagnoses->recipe, series.tensor_class());
        ui::fill_rect(c, {line.x0 + c.px(2), y + c.px(8), line.x0 + c.px(10), y + c.px(16)},
                      {plan.format->role, Tone::fill}, 2);
        const Font font = chosen ? kMonoBold13 : kMono13;
        ui::text_mid(
            c, {line.x0 + c.px(16), y + c.px(12)},
            ui::cut_middle(c, run().diagnoses->short_name(tensor), font, time.x0 - line.x0 - c.px(16 + 8)),
            {Role::text}, font);
        draw_lane(c, time, tensor, line);
        draw_words(c, time, tensor, line);
        ui::probe(c, fmt::format("doctor.lane.{}", i), line, {}, series.name());
    }
    scrolled_ = ImGui::GetScrollY();
    if (lanes.size() > rows) ui::advance({origin.x, origin.y, origin.x + 1, origin.y + all});
    take_hand(c, {area.x0, area.y0, area.x1, area.y0 + shown}, time, lanes,
              {area.x0, origin.y, area.x1, origin.y + all});
    ui::scroll_thumbs(c);
    ImGui::EndChild();
    const float x = std::round(time.x_of(run().cursor()));
    ui::fill_rect(c, {x, top + c.px(18), x + ui::hairline(c), area.y0 + shown}, {Role::axis});
    ui::probe(c, "doctor.cursor", {x, top, x + 1, area.y0 + shown}, {}, std::to_string(run().cursor()));
    return area.y0 + shown;
}

// A press on a lane selects its tensor; right of the names it moves the cursor too, and a drag takes it along.
void RunView::take_hand(Context& c, Rect area, const Time& time, const std::vector<std::size_t>& lanes,
                        Rect rows) {
    const ui::Press press = ui::press(c, "doctor.time", area, 4);
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    if (press.held && mouse.x >= time.x0 - c.px(6)) {
        const auto tensor = run().selected();
        const std::int32_t wanted = static_cast<std::int32_t>(std::lround(time.step_at(mouse.x)));
        // Of the logged steps the one nearest to the mouse.
        const TensorPoint* const before = tensor ? log().tensors[*tensor].at(wanted) : nullptr;
        if (wanted != run().cursor()) set(fmt::format("run_step={}", before ? before->step : wanted));
    }
    if (press.held && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        const float at = (mouse.y - rows.y0) / c.px(kLane);
        const auto lane = static_cast<std::size_t>(std::max(0.0F, at));
        if (lane < lanes.size() && run().selected() != lanes[lane]) choose(lanes[lane]), to_finding_ = true;
    }
    if (press.focused) {
        const int by = ui::arrow_step();
        if (by != 0) set(fmt::format("run_step={}", run().step_beside(by)));
        for (const ui::Key each : {ui::Key::up, ui::Key::down, ui::Key::home, ui::Key::end})
            if (ui::key_pressed(each)) key(each);
    }
}

void RunView::draw_steps(Context& c, const Time& time, float left, float y) {
    ui::text_mid(c, {left, y}, "step", {Role::muted}, kSans13);
    const double span = static_cast<double>(time.last) - time.first;
    double pitch = std::pow(10.0, std::floor(std::log10(span / 4)));
    for (const double factor : {1.0, 2.0, 3.0, 5.0, 6.0, 10.0})
        if (span / (pitch * factor) <= 5) {
            pitch = std::max(1.0, pitch * factor);
            break;
        }
    const auto label = [&](double step, Anchor anchor) {
        const std::string words = group_thousands(static_cast<std::int64_t>(step));
        ui::text_mid(c, {time.x_of(step), y}, words, {Role::muted}, kMono13, anchor);
    };
    label(time.first, Anchor::left);
    label(time.last, Anchor::right);
    const float apart = c.px(12) + ui::text_width(c, group_thousands(time.last), kMono13);
    for (double k = std::floor(time.first / pitch) + 1; k * pitch < time.last; ++k)
        if (time.x_of(k * pitch) - time.x0 > apart && time.x1 - time.x_of(k * pitch) > 1.5F * apart)
            label(k * pitch, Anchor::center);
}

}  // namespace fp8lab::workbench
