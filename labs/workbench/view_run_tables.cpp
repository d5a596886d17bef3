// Below the lanes: the findings, and of the selected tensor its histories and a step.
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

constexpr float kFindingRow = 28;

std::string cause_words(const RunFinding& finding) {
    return finding.number.empty() ? finding.cause : fmt::format("mode {}: {}", finding.number, finding.cause);
}

}  // namespace

RunView::FindingColumns RunView::finding_columns(const Context& c, Rect area) const {
    float name = c.px(72);
    for (const RunFinding* each : run().shown_findings())
        name = std::max(name, ui::text_width(c, run().diagnoses->short_name(each->tensor), kMonoBold13));
    FindingColumns at;
    at.step = area.x0 + std::min(name, 0.24F * area.width()) + c.px(72);
    at.lost = at.step + c.px(66);
    at.cause = at.lost + c.px(20);
    at.treats = area.x1 - at.cause > c.px(400);
    return at;
}

void RunView::draw_finding(Context& c, const RunFinding& finding, const FindingColumns& at, Rect line,
                           bool chosen) {
    const float y = (line.y0 + line.y1) / 2;
    const Font font = chosen ? kMonoBold13 : kMono13;
    const float name_end = at.step - c.px(64);
    ui::text_mid(c, {line.x0, y},
                 ui::cut_middle(c, run().diagnoses->short_name(finding.tensor), font, name_end - line.x0),
                 {Role::text}, font);
    ui::text_mid(c, {at.step, y}, group_thousands(finding.step), {Role::text}, kMono13, Anchor::right);
    const bool loses = finding.lost_known && finding.lost_pct > 0;
    ui::text_mid(c, {at.lost, y}, lost_text(finding),
                 loses ? Color{Role::sat, Tone::ink} : Color{Role::muted}, loses ? kMonoBold13 : kMono13,
                 Anchor::right);
    const float treatment =
                    std::min(ui::text_width(c, finding.treatment, kSans13), 0.5F * (line.x1 - at.cause)),
                cause_end = at.treats ? line.x1 - treatment - c.px(16) : line.x1;
    std::string cause = cause_words(finding);
    if (ui::text_width(c, cause, kSans13) > cause_end - at.cause)
        cause.resize(std::min(cause.size(), cause.find_last_of(",;")));
    ui::text_mid(c, {at.cause, y}, ui::cut_end(c, cause, kSans13, cause_end - at.cause), {Role::text},
                 kSans13);
    if (at.treats)
        ui::text_mid(c, {line.x1, y}, ui::cut_end(c, finding.treatment, kSans13, treatment + 1),
                     {chosen ? Role::text : Role::muted}, kSans13, Anchor::right);
}

// Returns where it ends.
float RunView::draw_findings(Context& c, Rect area) {
    ui::region(c, "findings", area);
    if (covered()) {
        const float end = ui::heading(c, "Findings are covered", area) + c.px(2);
        return ui::paragraph(c,
                             "They are shown once the exercise is passed. The lanes show what they rest on.",
                             {area.x0, end, area.x1, area.y1});
    }
    const auto findings = run().shown_findings();
    float y = ui::heading(c, run().findings_title(), area) + c.px(2);
    ui::probe(c, "doctor.findings", {area.x0, area.y0, area.x1, y}, {}, run().findings_title());
    if (!run().diagnoses->judged) {
        const char* const words = "The rules are about the whole run. The lanes show what is read so far.";
        return ui::paragraph(c, words, {area.x0, y, area.x1, area.y1});
    }
    if (findings.empty()) {
        std::string words = "No finding has this in its name.";
        if (run().diagnoses->findings.empty())
            words =
                run().diagnoses->from_above
                    ? fmt::format("Under {}, all values are finite.", run().recipe_words())
                    : fmt::format("Under {}, no tensor loses more than {} % in the mean, and all are finite.",
                                  run().recipe_words(), format_number(Thresholds{}.mean_lost));
        if (const std::string unknown = run().not_known_words(); !unknown.empty()) words += " " + unknown;
        if (run().diagnoses->unknown > 0) words += " assets/hooks/fp8lab_hook.py counts binades.";
        return ui::paragraph(c, words, {area.x0, y, area.x1, area.y1});
    }
    const FindingColumns at = finding_columns(c, area);
    const float heads = y + c.px(9);
    ui::text_mid(c, {area.x0, heads}, "tensor", {Role::muted}, kSans13);
    ui::text_mid(c, {at.step, heads}, "from step", {Role::muted}, kSans13, Anchor::right);
    ui::head(c, {at.lost, heads}, "lost %", "underflow");
    ui::text_mid(c, {at.cause, heads}, "cause", {Role::muted}, kSans13);
    if (at.treats)
        ui::text_mid(c, {area.x1, heads}, "one change that treats it", {Role::muted}, kSans13, Anchor::right);
    y += c.px(22);
    y = draw_finding_rows(c, findings, at, {area.x0, y, area.x1, area.y1});
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    return y;
}

float RunView::draw_finding_rows(Context& c, const std::vector<const RunFinding*>& findings,
                                 const FindingColumns& at, Rect area) {
    const float pitch = c.px(kFindingRow), bleed = c.px(4);
    const auto rows = static_cast<std::size_t>(std::max(1.0F, std::floor((area.height() + 1) / pitch)));
    const float shown = pitch * static_cast<float>(std::min(rows, findings.size()));
    ImGui::SetCursorScreenPos({area.x0 - bleed, area.y0});
    ImGui::BeginChild("doctor.rows", {area.width() + 2 * bleed + c.px(10), shown}, false,
                      ImGuiWindowFlags_NoScrollbar);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const auto selected = run().selected();
    if (to_finding_) {
        const auto found =
            std::ranges::find_if(findings, [&](const RunFinding* each) { return each->tensor == selected; });
        const float top = pitch * static_cast<float>(found - findings.begin());
        if (found != findings.end() &&
            (top < ImGui::GetScrollY() || top + pitch > ImGui::GetScrollY() + shown))
            ImGui::SetScrollY(top);
        to_finding_ = false;
    }
    const auto first = static_cast<std::size_t>(std::max(0.0F, std::floor(ImGui::GetScrollY() / pitch)));
    for (std::size_t i = first; i < std::min(findings.size(), first + rows + 1); ++i) {
        const RunFinding& finding = *findings[i];
        const float top = origin.y + pitch * static_cast<float>(i);
        const Rect line{area.x0, top, area.x1, top + pitch};
        const bool chosen = selected == finding.tensor;
        if (!chosen) ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
        if (ui::press_row(c, fmt::format("doctor.finding.{}", i),
                          {line.x0 - bleed, line.y0, line.x1 + bleed, line.y1}, chosen)) {
            choose(finding.tensor);
            set(fmt::format("run_step={}", finding.step));
            to_lane_ = true;
        }
        ui::tooltip(c, finding.name,
                    fmt::format("{}.{} One change that treats it: {}.", cause_words(finding),
                                lost_text(finding) == "?" ? " ? means that it was not counted." : "",
                                finding.treatment));
        draw_finding(c, finding, at, line, chosen);
    }
    if (findings.size() > rows) {
        ui::advance(
            {origin.x, origin.y, origin.x + 1, origin.y + pitch * static_cast<float>(findings.size())});
        ui::scroll_thumbs(c);
    }
    ImGui::EndChild();
    return area.y0 + shown;
}

// The selected tensor under other histories; a press takes one.
void RunView::draw_histories(Context& c, Rect area) {
    ui::region(c, "histories", area);
    const Chosen& now = *run().choices;
    float y = ui::heading(c, run().histories_title(), area) + c.px(2);
    ui::probe(c, "doctor.histories", {area.x0, area.y0, area.x1, y}, {}, run().histories_title());
    if (now.histories.empty()) return;
    const float w = area.width();
    const float history = area.x0 + 0.2F * w, saturated = area.x0 + 0.48F * w, lost = area.x0 + 0.76F * w;
    const float heads = y + c.px(9);
    const bool wide = w > c.px(380);
    ui::head(c, {history, heads}, "history", "amax-history");
    ui::head(c, {saturated, heads}, wide ? "saturated steps" : "saturated", "saturation");
    ui::head(c, {lost, heads}, wide ? "lost %, bounds" : "lost %", "underflow");
    ui::text_mid(c, {area.x1, heads}, "steps > 50 %", {Role::muted}, kSans13, Anchor::right);
    y += c.px(22);
    const float pitch =
        std::clamp((area.y1 - y) / static_cast<float>(now.histories.size()), c.px(17), c.px(24));
    const Recipe& recipe = run().diagnoses->recipe;
    for (const HistoryRow& row : now.histories) {
        const bool recent = row.algo == AmaxAlgo::most_recent;
        const bool chosen = recipe.scale == ScaleSource::delayed && recipe.algo == row.algo &&
                            (recent || recipe.history == row.history);
        const Rect line{area.x0, y, area.x1, y + pitch},
            whole{line.x0 - c.px(4), y, line.x1 + c.px(4), y + pitch};
        if (!chosen) ui::hline(c, line.x0, line.x1, y, {Role::line});
        const std::string name = recent ? "most_recent" : std::to_string(row.history);
        if (ui::press_row(c, "doctor.history." + name, whole, chosen)) {
            set("run_recipe=delayed");
            set(recent ? "algo=most_recent" : "algo=max");
            if (!recent) set("history=" + name);
        }
        const float middle = y + pitch / 2;
        const Font font = chosen ? kMonoBold13 : kMono13;
        if (recent)
            ui::text_mid(c, {area.x0, middle}, "most_recent", {Role::muted}, kSans13);
        else
            ui::text_mid(c, {history, middle}, group_thousands(row.history), {Role::text}, font,
                         Anchor::right);
        ui::text_mid(c, {saturated, middle}, std::to_string(row.saturated), {Role::text}, kMono13,
                     Anchor::right);
        const bool loses = row.lost.low > 1;
        ui::text_mid(c, {lost, middle}, bounds_text(row.lost),
                     loses ? Color{Role::sat, Tone::ink} : Color{Role::text}, loses ? kMonoBold13 : kMono13,
                     Anchor::right);
        ui::text_mid(c, {area.x1, middle}, std::to_string(row.mostly_lost), {Role::text}, kMono13,
                     Anchor::right);
        y += pitch;
    }
}

void RunView::draw_binades(Context& c, Rect area) {
    Figure figure = run().figures()[2];
    const float y = ui::heading(c, figure.title, area) + c.px(2);
    ui::probe(c, "doctor.step", {area.x0, area.y0, area.x1, y}, {}, figure.title);
    ui::region(c, "binades", area);
    figure.title.clear(), figure.x.label.clear();
    for (Series& series : figure.series)
        series.style.in_legend =
            std::holds_alternative<XSpan>(series.shape) || std::holds_alternative<VLine>(series.shape);
    ui::plot(c, "doctor.binades", figure, binades_, {area.x0, y, area.x1, area.y1},
             {.crosshair = false, .y_tick_width = 0, .title_height = 0});
}

}  // namespace fp8lab::workbench
