#include "labs/bits/view_stage.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/figure/legible.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::bits {

namespace {

using ui::Context;

// The bits of one field: sign, exponent or mantissa.
struct Group {
    std::string_view name;
    int high = 0, count = 0;  // bit number of its first cell, and how many
    Color fill, line;
    Term term;
    Rect cells;  // where they were drawn
};

std::vector<Group> groups_of(const Outcome& outcome) {
    const FormatInfo& format = outcome.format;
    const Role role = format.role;
    const Formula& formula = outcome.reading.formula;
    const int exponent = format.exponent_bits, mantissa = format.mantissa_bits;
    std::vector<Group> out;
    if (format.is_signed)
        out.push_back({"sign", exponent + mantissa, 1, {Role::surface}, {Role::axis}, formula.sign, {}});
    out.push_back(
        {"exponent", exponent + mantissa - 1, exponent, {role, Tone::fill}, {role}, formula.power, {}});
    if (mantissa > 0)
        out.push_back(
            {"mantissa", mantissa - 1, mantissa, {role, Tone::fill, 0.25F}, {role}, formula.significand, {}});
    return out;
}

// Sizes of the bit row, logical px, from the room there is.
struct RowMetrics {
    float cell, gap, group_gap, height;
    Font digit;
};

RowMetrics row_metrics(int bit_count, int group_count, float room, bool compact) {
    RowMetrics out{};
    out.gap = bit_count <= 8 ? 8 : 4;
    out.group_gap = room < 480 ? 14 : 24;
    const float groups = static_cast<float>(group_count), n = static_cast<float>(bit_count);
    out.cell =
        std::min(60.0F, std::floor((room - (groups - 1) * out.group_gap - (n - groups) * out.gap) / n));
    out.height = compact ? 48 : 64;
    out.digit = {Face::mono_bold, out.cell >= 40 ? 32.0F : out.cell >= 24 ? 18.0F : 15.0F};
    return out;
}

void draw_cell(Context& context, BitsLab& lab, int& last_bit, const Group& group, int bit, Rect cell,
               Font digit) {
    const ui::Press press = ui::press(context, "bits.bit" + std::to_string(bit), cell);
    if (press.clicked) {
        last_bit = bit;
        lab.act("toggle " + std::to_string(bit));
    }
    if (bit == last_bit && !press.focused) ui::focus_ring(context, ui::inset(cell, context.px(1)), 5);
    const bool on = ((lab->outcome->reading.code >> static_cast<unsigned>(bit)) & 1U) != 0;
    ui::fill_rect(context, cell, {Role::surface}, 6);
    const Ground ground = ground_for_words(context.theme, group.fill);
    ui::fill_rect(context, cell, ground.fill, 6);
    ui::stroke_rect(context, cell, press.hovered ? Color{Role::text} : group.line, 6, press.hovered ? 2 : 1);
    ui::text_mid(context, {(cell.x0 + cell.x1) / 2, (cell.y0 + cell.y1) / 2}, on ? "1" : "0", ground.ink,
                 digit, Anchor::center);
}

// Four sides in strokes of 4 px with 3 px between them.
void dashed_rect(Context& context, Rect rect, Color color) {
    const float dash = context.px(4), pitch = context.px(7), width = context.px(1.5F);
    for (float x = rect.x0; x < rect.x1; x += pitch) {
        const float end = std::min(x + dash, rect.x1);
        ui::fill_rect(context, {x, rect.y0, end, rect.y0 + width}, color);
        ui::fill_rect(context, {x, rect.y1 - width, end, rect.y1}, color);
    }
    for (float y = rect.y0; y < rect.y1; y += pitch) {
        const float end = std::min(y + dash, rect.y1);
        ui::fill_rect(context, {rect.x0, y, rect.x0 + width, end}, color);
        ui::fill_rect(context, {rect.x1 - width, y, rect.x1, end}, color);
    }
}

void draw_bracket(Context& context, Rect over, float y, Color line) {
    const float h = ui::hairline(context), drop = context.px(5);
    ui::hline(context, over.x0, over.x1, y, line);
    ui::fill_rect(context, {over.x0, y - drop, over.x0 + h, y}, line);
    ui::fill_rect(context, {over.x1 - h, y - drop, over.x1, y}, line);
}

void draw_value(Context& context, const Reading& reading, float x, float y_label, float y_cells,
                float height) {
    const Color muted{Role::muted}, text{Role::text};
    ui::text_mid(context, {x, y_label}, reading.headline_exact ? "exact value" : "value, 4 digits", muted,
                 kSans13);
    const Font digits{Face::mono_bold, 32};
    const float y_value = y_cells + height * 0.28F, reach = context.px(18);
    const Rect value{x, y_value - reach, x + ui::text_width(context, reading.headline, digits),
                     y_value + reach};
    ui::text_mid(context, {x, y_value}, reading.headline, text, digits);
    ui::copyable(context, "bits.value", value, reading.value);
    constexpr std::size_t kTooltipLine = 30;
    ui::tooltip(context, reading.exact.size() <= kTooltipLine ? reading.exact : reading.headline,
                "Click to copy it: rounded, exact, as hex, C or NumPy.");
    const float second = y_cells + std::max(height * 0.8F, context.px(40));
    ui::text_mid(context, {x, second}, reading.code_text + "  " + reading.hex, muted, {Face::mono, 15});
    ui::text_mid(context, {x, second + context.px(26)}, reading.note, text, kSans13);
}

// The arithmetic stands under the fields it comes from.
void draw_formula(Context& context, const Outcome& outcome, std::span<const Group> groups, float x_value,
                  float y, bool compact) {
    const Reading& reading = outcome.reading;
    const Color muted{Role::muted}, text{Role::text};
    if (reading.formula.result.written.empty()) {
        const char* why = reading.code_class == CodeClass::infinity
                              ? "This code stands for infinity: the formula does not apply."
                              : "This code stands for no number: the formula does not apply.";
        ui::text_mid(context, {groups.front().cells.x0, y}, why, muted, {Face::sans, 15});
        return;
    }
    const Role role = outcome.format.role;
    const auto half_of = [&](const Group& group) {
        return ui::text_width(context, group.term.written, kMono18) / 2;
    };
    std::vector<float> middles;
    for (const Group& group : groups)
        middles.push_back(
            std::max((group.cells.x0 + group.cells.x1) / 2, groups.front().cells.x0 + half_of(group)));
    // No term over its neighbour: from the right, then, where that is too much, from the left.
    float end = x_value - context.px(42), begin = groups.front().cells.x0;
    const float apart = context.px(20);
    for (std::size_t i = groups.size(); i-- > 0; end = middles[i] - half_of(groups[i]) - apart)
        middles[i] = std::min(middles[i], end - half_of(groups[i]));
    for (std::size_t i = 0; i < groups.size(); begin = middles[i] + half_of(groups[i]) + apart, ++i)
        middles[i] = std::max(middles[i], begin + half_of(groups[i]));
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const Group& group = groups[i];
        const float middle = middles[i];
        const Color ink = group.name == "sign" ? text : Color{role, Tone::ink};
        ui::text_mid(context, {middle, y}, group.term.written, ink, kMono18, Anchor::center);
        if (!compact)
            ui::text_mid(context, {middle, y + context.px(27)}, group.term.value, text, {Face::mono, 15},
                         Anchor::center);
        if (i + 1 < groups.size()) {
            // Between the words, not between the cells: under one sign cell the term is wider than its field.
            const float left = middle + half_of(group), right = middles[i + 1] - half_of(groups[i + 1]);
            ui::text_mid(context, {(left + right) / 2, y}, "×", muted, {Face::mono, 15}, Anchor::center);
        }
    }
    ui::text_mid(context, {x_value - context.px(30), y}, "=", muted, {Face::mono, 15}, Anchor::center);
    ui::text_mid(context, {x_value, y}, reading.formula.result.written, text, kMonoBold18);
    if (!compact)
        ui::text_mid(context, {x_value, y + context.px(27)}, reading.formula.result.value, muted,
                     {Face::mono, 15});
}

// The largest size at which every value of the list stands clear of its code and inside its row.
float list_digits(const Context& context, const LineEnd& end, float room, float height) {
    for (const float size : {18.0F, 15.0F}) {
        const bool fits = std::all_of(end.codes.begin(), end.codes.end(), [&](const EndCode& item) {
            const float value = ui::text_width(context, item.value_text, {Face::mono_bold, size});
            return ui::text_width(context, item.code_text, kMono13) + context.px(10) + value <= room;
        });
        if (fits && height >= context.px(size + 10)) return size;
    }
    return 13;
}

}  // namespace

float line_end_width(const Context& context, const BitsLab& lab) {
    float width = 0;
    for (const EndCode& item : lab->outcome->end.codes)
        width = std::max(width, ui::text_width(context, item.code_text, kMono13) +
                                    ui::text_width(context, item.value_text, {Face::mono_bold, 13}) +
                                    context.px(24 + 10));
    for (const std::string& note : lab->outcome->end.notes)
        width = std::max(width, ui::text_width(context, note, kSans13));
    return std::ceil(width);
}

float draw_bits(Context& context, BitsLab& lab, int& last_bit, Rect area, bool compact) {
    const float value_width = context.px(area.width() < context.px(700) ? 190 : 212);
    std::vector<Group> groups = groups_of(*lab->outcome);
    const int bit_count = width_bits(lab->outcome->format);
    const float room = (area.width() - value_width) / context.scale - 32;
    const RowMetrics row = row_metrics(bit_count, static_cast<int>(groups.size()), room, compact);

    const float y_label = area.y0 + context.px(12), y_cells = area.y0 + context.px(28);
    const float y_end = y_cells + context.px(row.height), y_numbers = y_end + context.px(14);
    const float y_bracket = y_end + context.px(33);
    float x = area.x0;
    for (Group& group : groups) {
        group.cells = {x, y_cells, x, y_end};
        for (int i = 0; i < group.count; ++i) {
            const Rect cell{std::round(x), y_cells, std::round(x + context.px(row.cell)), y_end};
            draw_cell(context, lab, last_bit, group, group.high - i, cell, row.digit);
            ui::text_mid(context, {(cell.x0 + cell.x1) / 2, y_numbers}, std::to_string(group.high - i),
                         {Role::muted}, kMono13, Anchor::center);
            group.cells.x1 = cell.x1;
            x += context.px(row.cell + row.gap);
        }
        x += context.px(row.group_gap - row.gap);
        const float middle = (group.cells.x0 + group.cells.x1) / 2;
        ui::text_mid(context, {middle, y_label}, group.name, {Role::muted}, kSans13, Anchor::center);
        draw_bracket(context, group.cells, y_bracket, group.line);
    }
    const std::vector<Group> now =
        groups_of(*lab->outcome);  // a click above changed the terms, not the cells
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i].term = now[i].term;
    // The column of eight bits, whatever the width, unless the bits need more.
    const float x_value = std::max(std::min(area.x1 - value_width, area.x0 + context.px(600)),
                                   groups.back().cells.x1 + context.px(28));
    draw_value(context, lab->outcome->reading, x_value, y_label, y_cells, context.px(row.height));
    const float y_formula = y_bracket + context.px(compact ? 26 : 35);
    draw_formula(context, *lab->outcome, groups, x_value, y_formula, compact);
    return y_formula + context.px(compact ? 14 : 41);
}

void draw_line_end(Context& context, BitsLab& lab, Rect area) {
    constexpr std::string_view kTitle = "Where the line ends";  // wider than the list on a narrow stage
    const float title_x = std::min(area.x0, area.x1 - ui::text_width(context, kTitle, kBold15));
    ui::text_mid(context, {title_x, area.y0 + context.px(10)}, kTitle, {Role::text}, kBold15);
    const LineEnd end = lab->outcome->end;
    const Role role = lab->outcome->format.role;
    const float first = area.y0 + context.px(54), notes = context.px(44);
    const float pitch = std::min(
        context.px(44), std::floor((area.y1 - first - notes) / static_cast<float>(end.codes.size())));
    const float height = pitch - std::max(context.px(3), std::round(pitch * 0.18F));
    const float digits = list_digits(context, end, area.width() - context.px(24), height);
    float y = first;
    for (const EndCode& item : end.codes) {
        const Rect row{area.x0, y, area.x1, y + height};
        const ui::Press press = ui::press(context, "bits.end." + item.code_text, row);
        if (press.clicked) select(lab, item.code);
        const bool here = lab->outcome->reading.code == item.code;
        const auto [fill, words] = ground_for_words(context.theme, {role, Tone::fill});
        if (here && item.finite) ui::fill_rect(context, row, fill, 6);
        if (!item.finite) {
            dashed_rect(context, row, {Role::text});
            if (here) ui::stroke_rect(context, row, {Role::text}, 0, 3);
        } else {
            ui::stroke_rect(context, row, {here ? role : press.hovered ? Role::text : Role::line}, 6);
        }
        const Color ink = here && item.finite ? words : Color{Role::text};
        const Color code = here && item.finite ? ink : Color{Role::muted};
        const float middle = (row.y0 + row.y1) / 2;
        const bool strong = here || !item.finite;
        ui::text_mid(context, {row.x0 + context.px(12), middle}, item.code_text, code, kMono13);
        ui::text_mid(context, {row.x1 - context.px(12), middle}, item.value_text, ink,
                     {strong ? Face::mono_bold : Face::mono, digits}, Anchor::right);
        y += pitch;
    }
    y += context.px(10);
    for (std::size_t i = 0; i < end.notes.size(); ++i, y += context.px(20))
        ui::text_mid(context, {area.x0, y}, end.notes[i], {i == 0 ? Role::text : Role::muted}, kSans13);
}

}  // namespace fp8lab::bits
