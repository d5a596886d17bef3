#include "labs/workbench/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/widgets.h"

namespace fp8lab::workbench {
namespace {

using ui::Context;

constexpr float kTabs = 240, kStrip = 32, kAroundRows = 26 + 24 + 27;  // title, heads, foot

}  // namespace

std::string_view WorkbenchView::question() const {
    return lab_->shows_run() ? "What did your own run do to its tensors?" : "";
}

void WorkbenchView::draw_tabs(Context& c, Rect area) {
    static const std::array<std::string, 2> kLabels = {"Tensors", "A run"};
    int selected = lab_->shows_run() ? 1 : 0;
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::BeginChild("workbench.tabs", {area.width(), area.height()}, false, ImGuiWindowFlags_NoScrollbar);
    if (ui::segmented(c, "experiment", kLabels, selected))
        set(fmt::format("experiment={}", selected == 1 ? kRun : kTensors));
    ImGui::EndChild();
}

// Name, size and progress; what is wrong with a file that was not opened.
void WorkbenchView::draw_strip(Context& c, Rect strip) {
    ui::fill_rect(c, strip, {Role::raised}, 6);
    ui::stroke_rect(c, strip, {Role::line}, 6);
    const float y = (strip.y0 + strip.y1) / 2, right = strip.x1 - c.px(12);
    float x = strip.x0 + c.px(14);
    if (!lab_->problem.empty()) {
        ui::alert(c, {x + c.px(7), y}, {Role::warning});
        const std::string words = ui::cut_end(c, lab_->problem, kSans13, right - x - c.px(22));
        ui::text_mid(c, {x + c.px(22), y}, words, {Role::warning}, kSans13);
        ui::probe(c, "workbench.problem", strip, {}, lab_->problem);
        ui::advance(strip);
        ui::tooltip(c, "Not opened", lab_->problem);
        return;
    }
    const Scanned& s = lab_->scanned();
    const std::string told = lab_->scans.busy() || !lab_->scans->cancelled
                                 ? fmt::format("{} of {} scanned", s.scanned, s.rows.size())
                                 : fmt::format("stopped at {} of {}", s.scanned, s.rows.size());
    const float words_from = right - ui::text_width(c, told, kSans13);
    ui::text_mid(c, {right, y}, told, {Role::muted}, kSans13, Anchor::right);
    ui::probe(c, "workbench.progress", strip, {}, told);
    float end = words_from - c.px(16);
    if (lab_->scans.busy()) {
        ImGui::SetCursorScreenPos({end - c.px(72), y - c.px(16)});
        if (ui::button(c, "workbench.cancel", "Cancel", {.width = 72})) lab_.act("cancel");
        end -= c.px(84);
    }
    if (s.progress < 1) {
        const float bar = std::min(c.px(120), 0.22F * strip.width());
        const float done = bar * static_cast<float>(s.progress);
        ui::fill_rect(c, {end - bar, y - c.px(1), end, y + c.px(1)}, {Role::line});
        ui::fill_rect(c, {end - bar, y - c.px(1), end - bar + done, y + c.px(1)}, {Role::text});
        end -= bar + c.px(16);
    }
    const std::string name = ui::cut_middle(c, lab_->file_name(), kBold13, end - x);
    ui::text_mid(c, {x, y}, name, {Role::text}, kBold13);
    x += ui::text_width(c, name, kBold13) + c.px(18);
    if (x + c.px(60) < end)
        ui::text_mid(c, {x, y}, ui::cut_end(c, lab_->file_words(), kSans13, end - x), {Role::muted}, kSans13);
}

void WorkbenchView::stage(Context& c, Rect area) {
    const float strip_end = area.y0 + c.px(kStrip);
    draw_tabs(c, {area.x0, area.y0, area.x0 + c.px(kTabs), strip_end});
    const Rect strip{area.x0 + c.px(kTabs + 16), area.y0, area.x1, strip_end};
    float y = strip_end + c.px(14);
    if (lab_->shows_run()) {
        run_.strip(c, strip);
        return run_.stage(c, {area.x0, y, area.x1, area.y1});
    }
    draw_strip(c, strip);
    if (!lab_->scanned().store) return;
    // Below the table: twelve recipes with their heads and reasons.
    const float rest = area.y1 - y, lower = std::clamp(0.54F * rest, c.px(290), c.px(396));
    const float room = (rest - lower) / c.scale - kAroundRows;
    const auto rows = static_cast<std::size_t>(std::max(2.0F, std::floor(room / row_height())));
    const float end = draw_table(c, {area.x0, y, area.x1, area.y1}, rows);
    ui::region(c, "table", {area.x0, y, area.x1, end});
    y = end + c.px(18);
    draw_tensor(c, {area.x0, y, area.x1, area.y1});
}

void WorkbenchView::choose(std::size_t table_row) {
    const TableRow& row = lab_->list.at(table_row);
    set("tensor=" + lab_->scanned().store->tensors()[row.worst].name);
}

// The members of a kind, by its name as the filter.
void WorkbenchView::unfold(std::size_t table_row) {
    const std::string kind = lab_->list.at(table_row).name;
    set("fold=false");
    set("filter=" + kind);
}

bool WorkbenchView::character(Context& c, unsigned typed) { return typed == '/' && key(c, ui::Key::slash); }

bool WorkbenchView::key(Context& c, ui::Key key) {
    if (lab_->shows_run()) return run_.key(key);
    if (key == ui::Key::slash) {
        if (c.typing.name != "workbench.filter")
            c.typing = {
                .name = "workbench.filter", .text = lab_->params.filter, .wants_focus = true, .select = true};
        c.wants_redraw = true;
        return true;
    }
    const auto now = lab_->selected_row();
    const auto count = static_cast<int>(lab_->list.size());
    const int page = std::max(1, static_cast<int>(rows_shown_) - 1);
    const int step = key == ui::Key::down        ? 1
                     : key == ui::Key::up        ? -1
                     : key == ui::Key::page_down ? page
                     : key == ui::Key::page_up   ? -page
                                                 : 0;
    if (step != 0) {
        if (count == 0) return true;  // nothing to move through
        const int to = std::clamp(static_cast<int>(now.value_or(0)) + step, 0, count - 1);
        choose(static_cast<std::size_t>(to));
        to_selected_ = true;
        return true;
    }
    if (key == ui::Key::enter && lab_->params.fold) {
        if (now) unfold(*now);
        return true;
    }
    if (key == ui::Key::backspace) {
        set("filter=");
        set("fold=true");
        return true;
    }
    return false;
}

std::span<const ViewKey> WorkbenchView::keys() const {
    if (lab_->shows_run()) return RunView::keys();
    static constexpr std::array kKeys = {
        ViewKey{"Down, Up", "the next row, the one before", ui::Key::down, ui::Key::up},
        ViewKey{"PgDn, PgUp", "a page of rows", ui::Key::page_up, ui::Key::page_down},
        ViewKey{"/", "filters by a part of the name", ui::Key::slash, ui::Key::slash},
        ViewKey{"Enter", "unfolds a kind into its layers", ui::Key::enter, ui::Key::enter},
        ViewKey{"Backspace", "folds them again", ui::Key::backspace, ui::Key::backspace},
    };
    return kKeys;
}

std::vector<std::pair<std::string, std::string>> WorkbenchView::status() const {
    if (lab_->shows_run()) return run_.status();
    const ScanRow* const row = lab_->row();
    if (!row) return {{"tensor", "none"}};
    const StoredTensor& tensor = lab_->scanned().store->tensors()[row->tensor];
    const MatrixShape shape = tensor.matrix();
    std::string as = fmt::format("{}, {} x {}", to_string(row->use), shape.rows, shape.cols);
    if (row->every > 1) as += fmt::format(", sampled 1 of {} bands of 128 rows", row->every);
    if (tensor.scales) as += fmt::format(", {} times {}", tensor.dtype, tensor.scales->name);
    if (const ScaleHealth& scales = row->summary.scales; !scales.is_usual())
        as += fmt::format(" ({})", scales.words());
    std::vector<std::pair<std::string, std::string>> out = {{"tensor", tensor.name}, {"as", as}};
    if (const Verified* const found = lab_->verified(); found && lab_->tells_faults())
        out.emplace_back("against", found->sentence());
    return out;
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<WorkbenchView>(static_cast<WorkbenchLab&>(lab));
}

}  // namespace fp8lab::workbench
