// The table of L10: a row for everything that is kept, its format and place as menus.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/memory/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::memory {
namespace {

using ui::Context;

std::string change_text(double bytes) {
    if (std::fabs(bytes) < 5e5) return "0";
    return (bytes < 0 ? "−" : "+") + gb_short(std::fabs(bytes));
}

std::string cell_text(const Outcome& o, Row row, bool place) {
    const std::size_t i = index(row);
    const Plan& plan = o.own.plan;
    if (row == Row::activations) {
        if (place) return plan.inputs_at == Place::cpu ? "CPU" : "GPU";
        return plan.inputs == Inputs::bf16 ? "BF16" : plan.inputs == Inputs::fp8 ? "FP8" : "FP8, 2×";
    }
    if (row == Row::kv)
        return place ? (plan.kv_at == Place::cpu ? "CPU" : "GPU") : std::string(label_of(plan.kv));
    return place ? (plan.places[i] == Place::cpu ? "CPU" : "GPU") : std::string(label_of(plan.states[i]));
}

Color ink_of(const Outcome& o, Row row) {
    const std::size_t i = index(row);
    const Keep format = row == Row::kv                      ? o.own.plan.kv
                        : i < kStates                       ? o.own.plan.states[i]
                        : o.own.plan.inputs == Inputs::bf16 ? Keep::bf16
                                                            : Keep::e4m3;
    if (format == Keep::none) return {Role::muted};
    return {format == Keep::e4m3 ? Role::e4m3 : format == Keep::fp32 ? Role::text : Role::bf16, Tone::ink};
}

}  // namespace

// A menu in a cell: words and a chevron, its list as everywhere.
void MemoryView::draw_cell(Context& c, const std::string& name, Rect cell) {
    const std::vector<Field> fields = lab_.fields();
    const Field& field = *find_field(fields, name);
    const bool place = name.ends_with("_at");
    const std::string_view base = std::string_view(name).substr(0, name.size() - (place ? 3 : 0));
    const Row row = std::ranges::find(rows(), base, &RowInfo::field)->row;
    const Outcome& o = *lab_->outcome;
    const Color ink = place ? Color{Role::muted} : ink_of(o, row);
    const bool locked = std::ranges::find(c.locked, name) != c.locked.end() || o.ours();
    const Rect area{cell.x0 - c.px(4), cell.y0 + c.px(2), cell.x1, cell.y1 - c.px(2)};
    if (locked) {
        ui::text_mid(c, {cell.x0, (cell.y0 + cell.y1) / 2}, cell_text(o, row, place), ink, kMono13);
        return;
    }
    auto& value = *std::get<std::string*>(field.value);
    std::vector<std::string> labels;
    int selected = 0;
    for (const Choice& choice : field.choices) {
        if (choice.id == value) selected = static_cast<int>(labels.size());
        labels.push_back(choice.label);
    }
    if (ui::cell_menu(c, "memory." + name, area, cell_text(o, row, place), ink, labels, selected))
        value = field.choices[static_cast<std::size_t>(selected)].id;
}

// "FP8 GB"; the unit is left out where there is no room for both.
static std::string name_of_column(std::string_view brief) {
    constexpr std::size_t kWithUnit = 4, kAlone = 6;
    if (brief.size() > kAlone) return "plan GB";
    return std::string(brief) + (brief.size() > kWithUnit ? "" : " GB");
}

void MemoryView::draw_table(Context& c, Rect area) {
    ui::region(c, "table", area);
    const Outcome& o = *lab_->outcome;
    const Account &own = o.own.account, &other = o.other.account;
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::BeginChild("memory.table", {area.width(), area.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const float left = origin.x, width = area.width() - c.px(14), right = left + width;  // beside the thumb
    const std::string bytes =
        fmt::format("{} bytes per parameter in {}, {} in {}", screen_number(o.own.per_parameter),
                    o.own.plan.brief, screen_number(o.other.per_parameter), o.other.plan.brief);
    ui::text_at(c, {left, origin.y}, bytes, {Role::text}, kBold15);
    const float rows_shown = o.own.plan.infers() ? 12 : 11;
    const float room = area.height() / c.scale - 50;
    const bool foot_shown = room >= 24 * rows_shown + 28;
    const float pitch =
        c.px(std::clamp(std::floor((room - (foot_shown ? 28 : 4)) / rows_shown), 19.0F, 32.0F));
    // Right edges of the columns, as shares of the width.
    const float format = left + std::max(0.245F * width, c.px(104)), place = left + 0.42F * width;
    const std::array<float, 4> numbers = {left + 0.605F * width, left + 0.735F * width, left + 0.865F * width,
                                          right};
    float y = origin.y + c.px(38);
    ui::head(c, {format, y}, "format", "bytes-per-parameter", Anchor::left);
    ui::head(c, {place, y}, "place", "offload", Anchor::left);
    ui::head(c, {numbers[0], y}, "bytes", "bytes-per-parameter");
    ui::text_mid(c, {numbers[1], y}, name_of_column(o.own.plan.brief), {o.own.plan.role, Tone::ink}, kSans13,
                 Anchor::right);
    ui::text_mid(c, {numbers[2], y},
                 o.other.plan.brief.size() > 6 ? "other" : std::string(o.other.plan.brief),
                 {o.other.plan.role, Tone::ink}, kSans13, Anchor::right);
    ui::text_mid(c, {numbers[3], y}, "change", {Role::muted}, kSans13, Anchor::right);
    y += c.px(12);
    const auto number = [&](std::size_t column, const std::string& words, bool strong,
                            const std::string& name, double value) {
        const bool zero = words == "0";
        const Font font = strong && !zero ? kMonoBold13 : kMono13;
        ui::text_mid(c, {numbers[column], y + pitch / 2}, words, {zero ? Role::muted : Role::text}, font,
                     Anchor::right);
        const float reach = ui::text_width(c, words, font) + c.px(6), half = std::min(pitch / 2, c.px(12));
        ui::copyable(c, fmt::format("value.{}.{}", name, column),
                     {numbers[column] - reach, y + pitch / 2 - half, numbers[column], y + pitch / 2 + half},
                     value);
    };
    for (const RowInfo& info : rows()) {
        if (info.row == Row::kv && !o.own.plan.infers()) continue;
        const std::size_t i = index(info.row);
        ui::hline(c, left, right, y, {Role::line});
        ui::text_mid(c, {left, y + pitch / 2}, info.label, {Role::text}, kSans13);
        const std::string field(info.field), name(info.metric);
        if (!field.empty()) {
            draw_cell(c, field, {format, y, place - c.px(8), y + pitch});
            draw_cell(c, field + "_at", {place, y, place + c.px(52), y + pitch});
        }
        const double here = own.gpu[i], there = other.gpu[i],
                     each = i < kStates ? bytes_of(o.own.plan.states[i]) : 0;
        if (i < kStates && !o.ours()) number(0, screen_number(each), false, name, each);
        number(1, gb_short(here), false, name, here / kGB);
        number(2, gb_short(there), false, name, there / kGB);
        const bool counts = i < kStates || info.row == Row::kv || !o.leaves_out_activations();
        if (counts) number(3, change_text(here - there), true, name, (here - there) / kGB);
        y += pitch;
    }
    ui::fill_rect(c, {left, y, right, y + c.px(1.5F)}, {Role::text});
    ui::text_mid(c, {left, y + pitch / 2}, "On the GPU", {Role::text}, kBold13);
    number(0, screen_number(o.own.per_parameter), true, "sum", o.own.per_parameter);
    const auto total = [&](std::size_t column, const Side& side, double sum) {
        ui::text_mid(c, {numbers[column], y + pitch / 2}, screen_number(sum / kGB, 4),
                     {side.plan.role, Tone::ink}, kMonoBold13, Anchor::right);
    };
    total(1, o.own, o.compared(0));
    total(2, o.other, o.compared(1));
    number(3, change_text(o.difference()), true, "sum", o.difference() / kGB);
    y += pitch + c.px(4);
    std::string foot;
    if (!std::isnan(o.own.act_layer) && !std::isnan(o.other.act_layer))
        foot = fmt::format("Activations: {:.1f} s·b·h bytes per layer in {}, {:.1f} in {}.",
                           o.own.act_layer / o.model.hidden, o.own.plan.brief,
                           o.other.act_layer / o.model.hidden, o.other.plan.brief);
    else if (!o.ours())
        foot = o.leaves_out_activations() ? "Activations and workspace are in neither sum."
                                          : "Activations and workspace are not counted.";
    if (foot_shown) {
        ui::text_at(c, {left, y}, foot, {Role::muted}, kSans13);
        y += c.px(20);
        constexpr std::string_view kSimplified =
            "Everything at once, without fragmentation and buffers of communication. Embeddings and head are "
            "counted "
            "in FP8 too.";
        for (const std::string_view line : ui::wrap_lines(c, o.ours() ? "" : kSimplified, kSans13, width)) {
            if (y + c.px(20) > origin.y + area.height()) break;
            ui::text_at(c, {left, y}, line, {Role::muted}, kSans13);
            y += c.px(20);
        }
    }
    ui::advance({left, origin.y, right, y});
    ui::scroll_thumbs(c);
    ImGui::EndChild();
}

}  // namespace fp8lab::memory
