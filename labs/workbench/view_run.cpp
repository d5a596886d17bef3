#include "labs/workbench/view_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::workbench {
namespace {

using ui::Context;

constexpr float kLanePitch = 26, kLossHeight = 66, kStepsHeight = 24;
constexpr float kFindingsHeight = 46 + 3 * 28 + 22, kLowerHeight = 216;  // below the lanes, with their gaps
constexpr float kBesideWidth = 640;                                      // of two parts
constexpr float kSwitch = 30;  // of parts, with its gap: titles stand under it
constexpr std::size_t kFewestLanes = 3;

// Numbers of the log in mono, what they count beside them; what does not fit is left out.
void draw_counts(Context& c, const Diagnosis& of, float x, float end, float y) {
    const RunLog& log = *of.log;
    const std::int64_t steps = std::int64_t{of.last_step} - of.first_step + 1;
    const bool counters = std::ranges::any_of(log.tensors, &TensorSeries::has_counters);
    const std::array<std::pair<std::string, std::string>, 3> counts = {
        {{group_thousands(std::ssize(log.tensors)), "tensors"},
         {group_thousands(steps), log.every > 1 ? fmt::format("steps, every {}", log.every) : "steps"},
         {"", counters ? fmt::format("{} binades each", BinadeCounters::kBinades) : "amax only"}}};
    for (const auto& [number, what] : counts) {
        const float gap = number.empty() ? 0 : c.px(8), wide = ui::text_width(c, number, kMono13) + gap;
        if (x + wide + ui::text_width(c, what, kSans13) > end) return;
        ui::text_mid(c, {x, y}, number, {Role::text}, kMono13);
        ui::text_mid(c, {x + wide, y}, what, {Role::muted}, kSans13);
        x += wide + ui::text_width(c, what, kSans13) + c.px(18);
    }
}

}  // namespace

void RunView::strip(Context& c, Rect strip) {
    ui::fill_rect(c, strip, {Role::raised}, 6);
    ui::stroke_rect(c, strip, {Role::line}, 6);
    const float y = (strip.y0 + strip.y1) / 2, right = strip.x1 - c.px(14);
    float x = strip.x0 + c.px(14);
    if (const std::string& problem = run().reads->problem; !problem.empty()) {
        ui::alert(c, {x + c.px(7), y}, {Role::warning});
        ui::text_mid(c, {x + c.px(22), y}, ui::cut_end(c, problem, kSans13, right - x - c.px(22)),
                     {Role::warning}, kSans13);
        ui::probe(c, "doctor.problem", strip, {}, problem);
        ui::advance(strip);
        ui::tooltip(c, run().log() ? "Not read further" : "Not opened", problem);
        return;
    }
    const std::string told = run().told();
    ui::text_mid(c, {right, y}, told, {Role::muted}, kSans13, Anchor::right);
    ui::probe(c, "doctor.progress", strip, {}, told);
    float end = right - ui::text_width(c, told, kSans13) - c.px(16);
    if (run().reads.busy()) {
        ImGui::SetCursorScreenPos({end - c.px(72), y - c.px(16)});
        if (ui::button(c, "doctor.cancel", "Cancel", {.width = 72})) lab_.act("cancel");
        end -= c.px(84);
        const float bar = std::min(c.px(120), 0.2F * strip.width()),
                    done = static_cast<float>(run().reads->progress.fraction());
        ui::fill_rect(c, {end - bar, y - c.px(1), end, y + c.px(1)}, {Role::line});
        ui::fill_rect(c, {end - bar, y - c.px(1), end - bar + bar * done, y + c.px(1)}, {Role::text});
        end -= bar + c.px(16);
    }
    const std::string whole = run().log() || run().reads.busy() ? run().file_name() : "no run is open";
    const std::string name = ui::cut_middle(c, whole, kBold13, end - x);
    ui::text_mid(c, {x, y}, name, {run().log() ? Role::text : Role::muted}, run().log() ? kBold13 : kSans13);
    if (run().log())
        draw_counts(c, *run().diagnoses, x + ui::text_width(c, name, kBold13) + c.px(22), end, y);
}

// What can be opened, and the sample.
void RunView::draw_empty(Context& c, Rect area) {
    float y = ui::heading(c, run().title(), area) + c.px(6);
    ui::probe(c, "doctor.title", {area.x0, area.y0, area.x1, y}, {}, run().title());
    if (run().reads.busy()) return;
    y = ui::paragraph(
            c,
            "A log says what the tensors of a training were like, step by step. What each recipe would have "
            "done to them follows from it. Three kinds are read:",
            {area.x0, y, std::min(area.x1, area.x0 + c.px(620)), area.y1}) +
        c.px(10);
    static constexpr std::array<std::pair<const char*, const char*>, 3> kKinds = {
        {{".jsonl", "of assets/hooks/fp8lab_hook.py, for any PyTorch training"},
         {".log", "of nvidia-dlfw-inspect, with Transformer Engine"},
         {".csv", "of fp8lab train --csv"}}};
    for (const auto& [extension, words] : kKinds) {
        const float middle = y + c.px(14);
        ui::hline(c, area.x0, std::min(area.x1, area.x0 + c.px(620)), y, {Role::line});
        ui::text_mid(c, {area.x0, middle}, extension, {Role::text}, kMono13);
        ui::text_mid(c, {area.x0 + c.px(72), middle}, ui::cut_end(c, words, kSans13, area.width() - c.px(72)),
                     {Role::muted}, kSans13);
        y += c.px(28);
    }
    ImGui::SetCursorScreenPos({area.x0, y + c.px(12)});
    if (ui::button(c, "doctor.sample", "Open the sample", {.primary = true}))
        set("run=" + std::string(kSampleRun));
    ui::tooltip(c, "Open the sample", "Two SwiGLU blocks, 18 tensors, 240 steps, with two faults.");
}

void RunView::stage(Context& c, Rect area) {
    if (!run().log() || log().tensors.empty()) return draw_empty(c, area);
    const std::vector<std::size_t> lanes = run().lane_order();
    const std::string title =
        covered() ? "Which tensor loses values, and from which step on?" : run().title();
    const float start = ui::heading(c, title, area) + c.px(2);
    ui::probe(c, "doctor.title", {area.x0, area.y0, area.x1, start}, {}, title);
    const bool has_loss = !log().losses.empty();
    const float above = (has_loss ? kLossHeight : 8) + kStepsHeight + 14;
    const float room = (area.y1 - start) / c.scale - above;
    const bool tall = room - kFindingsHeight - kLowerHeight >= kLanePitch * kFewestLanes;
    const float below = tall ? kFindingsHeight + kLowerHeight : std::clamp(0.45F * room, 196.0F, 240.0F);
    const auto fit = static_cast<std::size_t>(std::max(2.0F, std::floor((room - below) / kLanePitch)));
    const std::size_t rows = std::min({lanes.size(), fit, std::size_t{lab_->params.run.healthy ? 99U : 8U}});
    const Rect upper{area.x0, start, area.x1, area.y1};
    const Time time{area.x0 + label_width(c, area, lanes), area.x1, run().diagnoses->first_step,
                    std::max(run().diagnoses->last_step, run().diagnoses->first_step + 1)};
    float y = start;
    if (has_loss)
        y = draw_loss(c, {upper.x0, y, upper.x1, y + c.px(kLossHeight)}, time) + c.px(2);
    else
        y += c.px(8);
    y = draw_lanes(c, {area.x0, y, area.x1, y + c.px(kLanePitch) * static_cast<float>(rows)}, time, lanes,
                   rows, start);
    draw_steps(c, time, area.x0, y + c.px(13));
    y += c.px(kStepsHeight + 14);
    draw_below_lanes(c, {area.x0, y, area.x1, area.y1}, tall);
}

void RunView::draw_below_lanes(Context& c, Rect area, bool tall) {
    if (tall) {
        const float end = draw_findings(c, {area.x0, area.y0, area.x1, area.y0 + c.px(kFindingsHeight - 22)});
        return draw_tensor(c, {area.x0, end + c.px(20), area.x1, area.y1});
    }
    static const std::array<std::string, 3> kParts = {"Findings", "Histories", "Step"};
    static const std::array<std::string, 2> kTwo = {"Findings", "Tensor"};
    const bool two = area.width() >= c.px(kBesideWidth);
    const auto parts = two ? std::span<const std::string>(kTwo) : std::span<const std::string>(kParts);
    part_ = std::min(part_, static_cast<int>(parts.size()) - 1);
    // Titles have room beside the switch on a wide stage only.
    const Rect under{area.x0, area.y0 + c.px(kSwitch), area.x1, area.y1};
    if (part_ == 0) {
        const float end = draw_findings(c, two ? area : under);
        if (!covered() && !run().shown_findings().empty())
            ui::note(c, run().not_known_words(), {area.x0, end + c.px(8), area.x1, area.y1});
    }
    if (part_ == 1) two ? draw_tensor(c, under) : draw_histories(c, under);
    if (part_ == 2) draw_binades(c, under);
    ui::corner_switch(c, "doctor.part", {area.x1, area.y0 - c.px(8)}, two ? 200 : 280, parts, part_);
}

// Its histories and a step of it: side by side, or one of them behind a switch.
void RunView::draw_tensor(Context& c, Rect area) {
    if (area.width() < c.px(kBesideWidth)) {
        static const std::array<std::string, 2> kHalves = {"Histories", "Step"};
        const Rect under{area.x0, area.y0 + c.px(kSwitch), area.x1, area.y1};
        half_ == 0 ? draw_histories(c, under) : draw_binades(c, under);
        ui::corner_switch(c, "doctor.half", {area.x1, area.y0 - c.px(8)}, 200, kHalves, half_);
        return;
    }
    const float middle = std::round(area.x0 + 0.547F * area.width());
    ui::fill_rect(c, {middle, area.y0 - c.px(10), middle + ui::hairline(c), area.y1}, {Role::line});
    draw_histories(c, {area.x0, area.y0, middle - c.px(16), area.y1});
    draw_binades(c, {middle + c.px(16), area.y0, area.x1, area.y1});
}

std::vector<std::pair<std::string, std::string>> RunView::status() const {
    const auto tensor = run().selected();
    if (!tensor) return {{"run", "none"}};
    std::vector<std::pair<std::string, std::string>> out = {{"tensor", log().tensors[*tensor].name()},
                                                            {"step", std::to_string(run().cursor())}};
    if (const TensorPoint* const at = run().point(); at && !std::isnan(at->amax))
        out.emplace_back("amax", format_number(static_cast<double>(at->amax), 4));
    if (const ReplayStep* const step = run().replayed())
        out.emplace_back("scale", format_number(static_cast<double>(step->scale), 4));
    return out;
}

bool RunView::key(ui::Key key) {
    const auto selected = run().selected();
    if (!selected) return false;
    if (key == ui::Key::left || key == ui::Key::right) {
        set(fmt::format("run_step={}", run().step_beside(key == ui::Key::right ? 1 : -1)));
        return true;
    }
    if (key == ui::Key::home || key == ui::Key::end) {
        set(fmt::format("run_step={}",
                        key == ui::Key::home ? run().diagnoses->first_step : run().diagnoses->last_step));
        return true;
    }
    const int by = key == ui::Key::down ? 1 : key == ui::Key::up ? -1 : 0;
    if (by == 0) return false;
    const std::vector<std::size_t> lanes = run().lane_order();
    if (lanes.empty()) return true;
    const auto now = std::ranges::find(lanes, *selected);
    const auto at = now == lanes.end() ? -1 : static_cast<int>(now - lanes.begin());
    choose(lanes[static_cast<std::size_t>(std::clamp(at + by, 0, static_cast<int>(lanes.size()) - 1))]);
    to_lane_ = to_finding_ = true;
    return true;
}

std::span<const ViewKey> RunView::keys() {
    static constexpr std::array kKeys = {
        ViewKey{"Right, Left", "the next step, the one before", ui::Key::right, ui::Key::left},
        ViewKey{"Home, End", "the first step, the last one", ui::Key::home, ui::Key::end},
        ViewKey{"Down, Up", "the next tensor, the one before", ui::Key::down, ui::Key::up},
    };
    return kKeys;
}

}  // namespace fp8lab::workbench
