// The Explore tab of L15: two sliders of powers of two, the menus, the gap, and what a GPU sends.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/gpus/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::gpus {
namespace {

using ui::Context;

std::string signed_pct(double value) {
    if (!std::isfinite(value)) return "–";
    return fmt::format("{}{:.1f}", value < 0 ? "−" : "+", std::fabs(value));
}

std::string chosen_name(const Params& p) {
    if (!p.fp8) return fmt::format("BF16, {} GPUs", p.ranks());
    if (p.has_bad()) return p.act_amax == "local" ? "bad rank, local amax" : "bad rank, reduced";
    if (!p.sharded()) return "not sharded";
    if (p.gather == "bf16") return "BF16 weights";
    if (p.wscale != "reduced") return p.wscale == "own" ? "E4M3, each its own" : "E4M3, sent along";
    return "E4M3, " + sum_label(p.sum);
}

std::string megabytes(double bytes) {
    const double mb = bytes / 1e6;
    return mb == 0 ? "0" : mb < 0.01 ? fmt::format("{:.6f}", mb) : fmt::format("{:.1f}", mb);
}

}  // namespace

bool GpusView::draw_own(Context& c, const table::Row& row, const Field& default_field) {
    const std::string& name = row.field.info.name;
    if (name == "gpus" || name == "rows") {
        draw_powers(c, row.field, default_field);
        return true;
    }
    if ((name != "gather" && name != "bad") || !row.why_not.empty()) return false;
    draw_beside(c, row.field);
    return true;
}

// The name at the left, the choices beside it.
void GpusView::draw_beside(Context& c, const Field& field) {
    const Rect line = ui::next_area(c, 34);
    const float width = 0.6F * line.width();
    ui::text_mid(c, {line.x0, (line.y0 + line.y1) / 2 - c.px(1)}, field.info.label, {Role::text}, kSans15);
    std::vector<std::string> labels;
    for (const Choice& choice : field.choices) labels.push_back(choice.label);
    const auto now = std::ranges::find(field.choices, field_text(field), &Choice::id);
    int selected = static_cast<int>(now - field.choices.begin());
    const int before = selected;
    ui::corner_switch(c, field.info.name, {line.x1, line.y0}, width / c.scale, labels, selected);
    if (selected != before) set_field(field, field.choices.at(static_cast<std::size_t>(selected)).id);
    ui::advance(line);
    ui::tooltip(c, field.info.label, field.info.help);
}

// The mouse rounds to powers of two, an arrow key goes to the next.
void GpusView::draw_powers(Context& c, const Field& field, const Field& default_field) {
    const double before = std::stod(field_text(field));
    const double least = std::stod(field.choices.front().id), most = std::stod(field.choices.back().id);
    double value = before;
    const bool changed = ui::slider(
        c, field.info.name, field.info.label, field.info.te_name, value, least, most,
        {.logarithmic = true, .format = "{0:.0f}", .default_value = std::stod(field_text(default_field))});
    ui::tooltip(c, field.info.label, field.info.help);
    if (!changed) return;
    double at = std::round(std::log2(value));
    const bool small = std::fabs(std::log2(value / before)) < 0.3;
    if (small && !ImGui::IsMouseDown(ImGuiMouseButton_Left))
        at = std::log2(before) + (value > before ? 1 : -1);
    set(fmt::format("{}={:.0f}", field.info.name,
                    std::exp2(std::clamp(at, std::log2(least), std::log2(most)))));
}

void GpusView::draw_below(Context& c, float width) {
    ui::divider(c);
    const Outcome& o = lab_->outcome;
    const bool far = o.gap_pct > 6 || !std::isfinite(o.gap_pct);
    const bool trained = o.step > 0;
    ui::headline(c, "gpus.gap",
                 {trained && std::isfinite(o.gap_pct) ? signed_pct(o.gap_pct) + " %" : "–",
                  !trained             ? "not trained yet"
                  : !o.stopped.empty() ? "the training stopped"
                                       : "loss above BF16",
                  trained ? o.gap_pct : std::numeric_limits<double>::quiet_NaN(),
                  trained && far ? Color{Role::sat, Tone::ink} : Color{Role::text}});
    if (lab_->params.world() > kMostRanks)
        ui::wrapped(c, fmt::format("The numerics run on {} of {} ranks.", kMostRanks,
                                   group_thousands(lab_->params.world())));
    draw_arms(c, width);
    draw_sent(c, width);
    draw_buttons(c);
}

void GpusView::draw_arms(Context& c, float width) {
    const Outcome& o = lab_->outcome;
    const std::vector<float> columns = {0.56F * width, 0.23F * width, 0.21F * width};
    const auto head = [](const char* words) {
        return ui::Cell{.text = words, .role = Role::muted, .mono = false};
    };
    const auto row = [&](const std::string& name, Role role, double tail, double gap, bool reference) {
        const bool known = std::isfinite(tail);
        std::array cells = {
            ui::Cell{.text = name, .role = role, .mono = false, .strong = true, .anchor = Anchor::left},
            ui::Cell{.text = known ? fmt::format("{:.4f}", tail) : "–"},
            ui::Cell{.text = reference ? "0" : signed_pct(gap),
                     .role = reference ? Role::muted : Role::text}};
        if (known) cells[1].value = tail;
        if (known && !reference) cells[2].value = gap;
        ui::table_row(c, cells, columns);
    };
    ui::table_row(c, std::array{head(""), head("tail loss"), head("gap %")}, columns);
    row("BF16, 1 GPU", Role::bf16, o.reference_tail, 0, true);
    row("E4M3, scale reduced", Role::e4m3, o.usual_tail, o.usual_gap_pct, false);
    if (lab_->training.arms().size() > 2)
        row(chosen_name(lab_->params), lab_->params.fp8 ? Role::e4m3 : Role::bf16, o.tail, o.gap_pct, false);
    ui::table_end(c, columns);
}

void GpusView::draw_sent(Context& c, float width) {
    const Params& p = lab_->params;
    const Sent sent = sent_of(p);
    const Rect top = ui::next_area(c, 74 + 20);
    const float row = c.px(23);
    float y = top.y0;
    ui::text_mid(c, {top.x0, y + c.px(8)}, "A GPU sends a step", {Role::muted}, kSans13);
    ui::text_mid(c, {top.x0 + width, y + c.px(8)}, "MB", {Role::muted}, kSans13, Anchor::right);
    y += c.px(20);
    const std::string sum = sum_label(p.sum);
    const auto line = [&](const std::string& words, double bytes) {
        y = ui::row(c, {words, megabytes(bytes)}, {top.x0, y, top.x0 + width, y}, row);
    };
    line("gradients, " + sum.substr(0, sum.find(' ')), sent.gradients);
    line(p.sharded() ? fmt::format("weights, {}", p.fp8 && p.gather == "e4m3" ? "E4M3" : "BF16")
                     : "weights: none",
         sent.weights);
    line("amax, 4 B per weight matrix", sent.amax);
    ui::probe(c, "gpus.sent", top);
    ui::advance(top);
}

void GpusView::draw_buttons(Context& c) {
    const float half = (ImGui::GetContentRegionAvail().x / c.scale - 8) / 2;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const std::string command = lab_->command(), torchrun = lab_->torchrun();
    if (ui::button(c, "gpus.copy_command", "Copy command", {.width = half}))
        ImGui::SetClipboardText(command.c_str());
    ui::tooltip(c, "Copy as command line", command);
    ImGui::SetCursorScreenPos({at.x + c.px(half + 8), at.y});
    if (ui::button(c, "gpus.copy_torchrun", "Copy torchrun", {.width = half}))
        ImGui::SetClipboardText(torchrun.c_str());
    ui::tooltip(c, "Copy for PyTorch", torchrun);
}

}  // namespace fp8lab::gpus
