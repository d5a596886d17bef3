// What a GPU was measured to do, for a machine without one.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "labs/train/model_cost.h"
#include "labs/train/view.h"
#include "labs/ui/draw.h"

namespace fp8lab::train {
namespace {

ui::Cell head(const char* words) { return {.text = words, .role = Role::muted, .mono = false}; }

std::string milliseconds(const RecordedArm* arm) { return arm ? step_text(arm->median_ms) : ""; }

}  // namespace

void recorded_table(ui::Context& c, Rect area, const Recorded& recorded) {
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::BeginChild("train.recorded", {area.width(), area.height()}, false, ImGuiWindowFlags_NoScrollbar);
    if (!recorded.recording) {
        ui::warning(c, recorded.problem);
        ImGui::EndChild();
        return;
    }
    const Recording& recording = *recorded.recording;
    const bool wide = area.width() >= c.px(270);
    const float width = area.width() - c.px(10);  // beside the thumb of a place too low for all rows
    ui::badge(c, Provenance::recorded);
    const std::string where = recording.gpu + ", " + recording.date;
    if (wide) {
        const float y = ui::next_area(c, 0).y0 - c.px(20);  // beside the badge
        ui::text_mid(c, {area.x0 + width, y}, where, {Role::muted}, kSans13, Anchor::right);
    } else {
        ui::wrapped(c, where);
    }
    // In a narrow place the times go; a speed-up without its size would say nothing.
    const std::vector<float> columns =
        wide ? std::vector{0.15F * width, 0.2F * width, 0.24F * width, 0.21F * width, 0.2F * width}
             : std::vector{0.25F * width, 0.35F * width, 0.4F * width};
    const std::array<ui::Cell, 5> heads = {head("D"), head("batch"), head("speed-up"), head("BF16 ms"),
                                           head("FP8 ms")};
    ui::table_row(c, heads, columns);
    for (const RecordedStep& step : recording.steps) {
        const double speedup = step.speedup("delayed");
        const std::array<ui::Cell, 5> cells = {
            ui::Cell{.text = std::to_string(step.layers.front())},
            ui::Cell{.text = std::to_string(step.batch)},
            ui::Cell{.text = speedup > 0 ? fmt::format("{:.2f}", speedup) : "", .strong = speedup > 1},
            ui::Cell{.text = milliseconds(step.find("bf16")), .role = Role::bf16},
            ui::Cell{.text = milliseconds(step.find("delayed")), .role = Role::e4m3}};
        ui::table_row(c, cells, columns);
    }
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing,
                        {0, 0});  // all of it fits the place that it has at 1440x900
    ui::table_end(c, columns);
    ImGui::PopStyleVar();
    ui::wrapped(c, fmt::format("Median of one step of D-4D-D, CUDA {}.", recording.cuda));
    ui::tooltip(c, "Recorded with", fmt::format("{} Driver {}.", recording.command, recording.driver));
    ui::scroll_thumbs(c);
    ImGui::EndChild();
}

}  // namespace fp8lab::train
