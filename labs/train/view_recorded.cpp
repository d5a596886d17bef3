// What a GPU was measured to do, for a machine without one.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "labs/live/cost.h"
#include "labs/train/view.h"
#include "labs/ui/draw.h"

namespace fp8lab::train {
namespace {

ui::Cell head(const char* words) { return {.text = words, .role = Role::muted, .mono = false}; }

constexpr float kMenuHeight = 24;

std::string milliseconds(const RecordedArm* arm) { return arm ? step_text(arm->median_ms) : ""; }

}  // namespace

// The steps of a recording as a table, under its badge, with a menu of the others; or why one cannot be read.
void TrainView::draw_recorded(ui::Context& c, Rect area, const Shipped& recorded) {
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::BeginChild("train.recorded", {area.width(), area.height()}, false, ImGuiWindowFlags_NoScrollbar);
    if (recorded.recordings.empty()) {
        ui::warning(c, recorded.problem);
        ImGui::EndChild();
        return;
    }
    const Recording& recording = recorded.recordings.at(static_cast<std::size_t>(recording_));
    const bool wide = area.width() >= c.px(270);
    const float width = area.width() - c.px(10);  // beside the thumb of a place too low for all rows
    ui::badge(c, Provenance::recorded);
    // Beside the badge, or under it where there is no room.
    const float y = wide ? ui::next_area(c, 0).y0 - c.px(20) : ui::next_area(c, kMenuHeight).y0 + c.px(12);
    const Rect place{wide ? area.x0 + width - c.px(172) : area.x0, y - c.px(12), area.x0 + width,
                     y + c.px(12)};
    std::vector<std::string> names;
    for (const Recording& one : recorded.recordings)
        names.push_back(short_gpu_name(one.gpu) + ", " + one.date);
    draw_recording_menu(c, place, names, recording_);
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
