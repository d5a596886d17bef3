#include "labs/wide/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::wide {
namespace {

using ui::Context;

constexpr float kBetween = 17;  // from the rule between the lower parts to either

}  // namespace

float draw_heading(Context& c, std::string_view words, Rect area) {
    float y = area.y0;
    for (const std::string_view line : ui::wrap_lines(c, words, kBold15, area.width())) {
        ui::text_at(c, {area.x0, y}, line, {Role::text}, kBold15);
        y += c.px(ui::line_height(15));
    }
    return y;
}

void draw_note(Context& c, std::string_view words, Rect area) {
    const auto lines = ui::wrap_lines(c, words, kSans13, area.width());
    float y = area.y0;
    if (y + c.px(ui::line_height(13)) * static_cast<float>(lines.size()) > area.y1 + 1) return;
    for (const std::string_view line : lines) {
        ui::text_at(c, {area.x0, y}, line, {Role::muted}, kSans13);
        y += c.px(ui::line_height(13));
    }
}

void draw_ends(Context& c, std::vector<EndWords> ends, float x, Rect area) {
    std::ranges::sort(ends, {}, &EndWords::y);
    const float pitch = c.px(18);
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const float least = i == 0 ? area.y0 : ends[i - 1].y + pitch;
        ends[i].y = std::max(ends[i].y, least);
    }
    for (std::size_t i = ends.size(); i-- > 0;) {
        const float most = i + 1 == ends.size() ? area.y1 : ends[i + 1].y - pitch;
        ends[i].y = std::min(ends[i].y, most);
    }
    for (const EndWords& end : ends) {
        float at = x;
        if (!end.value.empty()) {
            ui::text_mid(c, {at, end.y}, end.value, end.ink, kMono13);
            at += ui::text_width(c, end.value, kMono13) + c.px(6);
        }
        const bool fits = at + ui::text_width(c, end.name, kSans13) <= area.x1 + 1;
        if (fits) ui::text_mid(c, {at, end.y}, end.name, {Role::muted}, kSans13);
    }
}

void draw_axis(Context& c, const ui::PlotResult& plot, std::string_view name,
               std::span<const std::pair<double, std::string_view>> ticks, float left) {
    const float y = plot.area.y1 + c.px(14);
    ui::text_mid(c, {left, y}, name, {Role::muted}, kSans13);
    for (const auto& [value, words] : ticks) {
        const float x = std::round(plot.to_px(value, plot.extents.y.lo).x);
        ui::fill_rect(c, {x, plot.area.y1, x + ui::hairline(c), plot.area.y1 + c.px(4)}, {Role::axis});
        ui::text_mid(c, {x, y}, words, {Role::muted}, kMono13, Anchor::center);
    }
}

float draw_row(Context& c, const RowWords& row, Rect area, float height) {
    const float y = area.y0 + height / 2;
    ui::hline(c, area.x0, area.x1, area.y0, {Role::line});
    ui::text_mid(c, {area.x0, y}, row.words, {Role::text}, row.strong ? kBold13 : kSans13);
    ui::text_mid(c, {area.x1, y}, row.value, row.ink, row.strong ? kMonoBold13 : kMono13, Anchor::right);
    return area.y0 + height;
}

WideView::Below WideView::split(Context& c, Rect area, const std::array<std::string, 2>& names) {
    if (area.width() < c.px(680)) {
        const float wide = c.px(200);
        ImGui::SetCursorScreenPos({area.x1 - wide, area.y0});
        ImGui::BeginChild("wide.switch", {wide, c.px(34)}, false, ImGuiWindowFlags_NoScrollbar);
        ui::segmented(c, "wide.part", names, part_);
        ImGui::EndChild();
        const Rect rest{area.x0, area.y0 + c.px(40), area.x1, area.y1};
        return {rest, rest, part_ == 0, part_ == 1};
    }
    const float middle = std::round((area.x0 + area.x1) / 2 - c.px(10));
    ui::fill_rect(c, {middle, area.y0 - c.px(12), middle + ui::hairline(c), area.y1}, {Role::line});
    return {{area.x0, area.y0, middle - c.px(kBetween), area.y1},
            {middle + c.px(kBetween), area.y0, area.x1, area.y1}};
}

void WideView::stage(Context& c, Rect area) {
    if (lab_.shows("swiglu")) return draw_swiglu(c, area);
    if (lab_.shows("optimiser")) return draw_optimiser(c, area);
    draw_attention(c, area);
}

void WideView::go_to(int step) { set(fmt::format("step={}", std::clamp(step, 0, kSteps - 1))); }

bool WideView::key(Context&, ui::Key key) {
    if (!lab_.shows("swiglu") || (key != ui::Key::comma && key != ui::Key::period)) return false;
    go_to(lab_->params.step + (key == ui::Key::period ? 1 : -1));
    return true;
}

std::span<const ViewKey> WideView::keys() const {
    static constexpr std::array kKeys = {
        ViewKey{".", "one step forward", ui::Key::period, ui::Key::period},
        ViewKey{",", "one step back", ui::Key::comma, ui::Key::comma},
    };
    if (!lab_.shows("swiglu")) return {};  // the others have no steps
    return kKeys;
}

std::vector<std::pair<std::string, std::string>> WideView::status() const {
    const Params& p = lab_->params;
    const std::string seed = std::to_string(p.seed);
    if (lab_.shows("swiglu"))
        return {{"seed", seed},
                {"batch", fmt::format("{} tokens, {} channels", kTokens, kChannels)},
                {"history", std::to_string(p.swiglu.history)}};
    if (lab_.shows("optimiser"))
        return {{"seed", seed},
                {"gradient", p.optimiser.signal == "noise" ? "N(0, 1)" : "g = 0 from step 1"},
                {"elements", group_thousands(kElements)}};
    return {{"seed", seed},
            {"scores", fmt::format("{} rows, sigma {}", kRows, screen_number(p.sigma, 3))},
            {"keys", group_thousands(std::stoi(p.keys))}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<WideView>(static_cast<WideLab&>(lab));
}

}  // namespace fp8lab::wide
