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

namespace {

// The columns' left edges, the right edges of the numbers, and the height of a row.
struct Columns {
    float left, right, format, place;
    std::array<float, 4> numbers;  // bytes, plan, other plan, change
    float pitch;
};
Columns columns_of(const Context& c, Point origin, float width, float pitch) {
    const auto at = [&](float share) { return origin.x + share * width; };
    return {origin.x,
            origin.x + width,
            origin.x + std::max(0.245F * width, c.px(104)),
            at(0.42F),
            {at(0.605F), at(0.735F), at(0.865F), at(1)},
            pitch};
}

void draw_heads(Context& c, const Columns& at, const Outcome& o, float y) {
    ui::head(c, {at.format, y}, "format", "bytes-per-parameter", Anchor::left);
    ui::head(c, {at.place, y}, "place", "offload", Anchor::left);
    ui::head(c, {at.numbers[0], y}, "bytes", "bytes-per-parameter");
    const auto head = [&](std::size_t column, const std::string& words, Color ink) {
        ui::text_mid(c, {at.numbers.at(column), y}, words, ink, kSans13, Anchor::right);
    };
    head(1, name_of_column(o.own.plan.brief), {o.own.plan.role, Tone::ink});
    head(2, o.other.plan.brief.size() > 6 ? "other" : std::string(o.other.plan.brief),
         {o.other.plan.role, Tone::ink});
    head(3, "change", {Role::muted});
}

// A number that can be copied as "value.<row>.<column>"; y: the row's upper edge.
struct Number {
    std::size_t column;
    std::string words, row;
    double value;
    bool strong = false;
};
void draw_number(Context& c, const Columns& at, float y, const Number& number) {
    const bool zero = number.words == "0";
    const Font font = number.strong && !zero ? kMonoBold13 : kMono13;
    const float right = at.numbers.at(number.column), middle = y + at.pitch / 2;
    ui::text_mid(c, {right, middle}, number.words, {zero ? Role::muted : Role::text}, font, Anchor::right);
    const float reach = ui::text_width(c, number.words, font) + c.px(6),
                half = std::min(at.pitch / 2, c.px(12));
    ui::copyable(c, fmt::format("value.{}.{}", number.row, number.column),
                 {right - reach, middle - half, right, middle + half}, number.value);
}

void draw_sum(Context& c, const Columns& at, const Outcome& o, float y) {
    ui::fill_rect(c, {at.left, y, at.right, y + c.px(1.5F)}, {Role::text});
    ui::text_mid(c, {at.left, y + at.pitch / 2}, "On the GPU", {Role::text}, kBold13);
    draw_number(c, at, y, {0, screen_number(o.own.per_parameter), "sum", o.own.per_parameter, true});
    const auto total = [&](std::size_t column, const Side& side, double sum) {
        ui::text_mid(c, {at.numbers.at(column), y + at.pitch / 2}, screen_number(sum / kGB, 4),
                     {side.plan.role, Tone::ink}, kMonoBold13, Anchor::right);
    };
    total(1, o.own, o.compared(0));
    total(2, o.other, o.compared(1));
    draw_number(c, at, y, {3, change_text(o.difference()), "sum", o.difference() / kGB, true});
}

std::string foot_words(const Outcome& o) {
    if (!std::isnan(o.own.act_layer) && !std::isnan(o.other.act_layer))
        return fmt::format("Activations: {:.1f} s·b·h bytes per layer in {}, {:.1f} in {}.",
                           o.own.act_layer / o.model.hidden, o.own.plan.brief,
                           o.other.act_layer / o.model.hidden, o.other.plan.brief);
    if (o.ours()) return {};
    return o.leaves_out_activations() ? "Activations and workspace are in neither sum."
                                      : "Activations and workspace are not counted.";
}

// Returns where it ends.
float draw_foot(Context& c, const Columns& at, const Outcome& o, float y, float bottom) {
    ui::text_at(c, {at.left, y}, foot_words(o), {Role::muted}, kSans13);
    y += c.px(20);
    if (o.ours()) return y;
    constexpr std::string_view kSimplified =
        "Everything at once, without fragmentation and buffers of communication. Embeddings and head are "
        "counted in FP8 too.";
    for (const std::string_view line : ui::wrap_lines(c, kSimplified, kSans13, at.right - at.left)) {
        if (y + c.px(20) > bottom) break;
        ui::text_at(c, {at.left, y}, line, {Role::muted}, kSans13);
        y += c.px(20);
    }
    return y;
}

}  // namespace

void MemoryView::draw_table(Context& c, Rect area) {
    ui::region(c, "table", area);
    const Outcome& o = *lab_->outcome;
    const Account &own = o.own.account, &other = o.other.account;
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::BeginChild("memory.table", {area.width(), area.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const std::string bytes =
        fmt::format("{} bytes per parameter in {}, {} in {}", screen_number(o.own.per_parameter),
                    o.own.plan.brief, screen_number(o.other.per_parameter), o.other.plan.brief);
    ui::text_at(c, {origin.x, origin.y}, bytes, {Role::text}, kBold15);
    const float rows_shown = o.own.plan.infers() ? 12 : 11;
    const float room = area.height() / c.scale - 50;
    const bool foot_shown = room >= 24 * rows_shown + 28;
    const float pitch =
        c.px(std::clamp(std::floor((room - (foot_shown ? 28 : 4)) / rows_shown), 19.0F, 32.0F));
    const Columns at =
        columns_of(c, {origin.x, origin.y}, area.width() - c.px(14), pitch);  // beside the thumb
    float y = origin.y + c.px(38);
    draw_heads(c, at, o, y);
    y += c.px(12);
    for (const RowInfo& info : rows()) {
        if (info.row == Row::kv && !o.own.plan.infers()) continue;
        const std::size_t i = index(info.row);
        ui::hline(c, at.left, at.right, y, {Role::line});
        ui::text_mid(c, {at.left, y + pitch / 2}, info.label, {Role::text}, kSans13);
        const std::string field(info.field), name(info.metric);
        if (!field.empty()) {
            draw_cell(c, field, {at.format, y, at.place - c.px(8), y + pitch});
            draw_cell(c, field + "_at", {at.place, y, at.place + c.px(52), y + pitch});
        }
        const double here = own.gpu[i], there = other.gpu[i],
                     each = i < kStates ? bytes_of(o.own.plan.states[i]) : 0;
        if (i < kStates && !o.ours()) draw_number(c, at, y, {0, screen_number(each), name, each});
        draw_number(c, at, y, {1, gb_short(here), name, here / kGB});
        draw_number(c, at, y, {2, gb_short(there), name, there / kGB});
        const bool counts = i < kStates || info.row == Row::kv || !o.leaves_out_activations();
        if (counts) draw_number(c, at, y, {3, change_text(here - there), name, (here - there) / kGB, true});
        y += pitch;
    }
    draw_sum(c, at, o, y);
    y += pitch + c.px(4);
    if (foot_shown) y = draw_foot(c, at, o, y, origin.y + area.height());
    ui::advance({at.left, origin.y, at.right, y});
    ui::scroll_thumbs(c);
    ImGui::EndChild();
}

}  // namespace fp8lab::memory
