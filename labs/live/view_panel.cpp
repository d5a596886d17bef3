// The Explore tab of labs that train: their rows, and the numbers of the run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "labs/live/micro_batches.h"
#include "labs/live/view.h"
#include "labs/ui/draw.h"

namespace fp8lab::live {

using table::Row;
using ui::Context;

namespace {

// Of the choices, and which of them is chosen.
std::vector<std::string> labels_of(const Field& field, int& selected) {
    std::vector<std::string> labels;
    for (const Choice& choice : field.choices) {
        if (choice.id == field_text(field)) selected = static_cast<int>(labels.size());
        labels.push_back(choice.label);
    }
    return labels;
}

}  // namespace

void SessionView::draw_rows(Context& c, Names first, Names more, const std::string& words) {
    const std::vector<Row> all = session_.rows();
    const std::vector<Field> all_defaults = session_.defaults();
    std::vector<Row> rows;
    std::vector<Field> defaults;
    const auto take = [&](Names names, bool behind) {
        for (const std::string_view name : names) {
            const auto at =
                std::ranges::find_if(all, [&](const Row& row) { return row.field.info.name == name; });
            Row& row = rows.emplace_back(*at);
            row.field.info.hidden = false;  // the panel draws it
            row.field.info.more = behind;
            defaults.push_back(all_defaults[static_cast<std::size_t>(at - all.begin())]);
        }
    };
    take(first, false);
    take(more, true);
    const auto own = [&](const Row& row, const Field& original) {
        draw_row(c, row, original);
        return true;
    };
    table::draw_rows(c, std::move(rows), defaults,
                     {session_.info().id, words, [](std::string_view) { return true; }, own}, more_open_);
}

void SessionView::draw_row(Context& c, const Row& row, const Field& default_field) {
    Field field = row.field;
    field.info.name = probe(field.info.name);
    ui::edit(c, field, &default_field);
}

void SessionView::draw_micro_batches(Context& c, const Row& row, const Field& default_field, int batch) {
    Row offered = row;
    offered.field.choices = dividing(row.field, batch);
    SessionView::draw_row(c, offered, default_field);
}

// A choice that cannot be made is there, and says why.
void SessionView::draw_backend(Context& c, const Row& row, float left) {
    const std::string reason = session_.gpu_reason();
    const std::array<std::string, 2> labels = {"CPU", "GPU"};
    int selected = session_.backend() == "cuda" ? 1 : 0;
    if (draw_switch(c, row.field, left, false, labels, selected, reason.empty() ? 2 : 1))
        set_field(row.field, selected == 1 ? "cuda" : "cpu");
    ui::tooltip(c, row.field.info.label,
                reason.empty() ? "Where the training runs. Once it has begun, a change acts on Reset."
                               : "No GPU. " + reason);
}

bool SessionView::draw_arm(Context& c, const Row& row, const std::string& label, std::size_t arm) {
    const Field& field = row.field;
    int selected = 0;
    std::vector<std::string> labels = labels_of(field, selected);
    const Rect line = ui::next_area(c, 18);
    const float y = line.y0 + c.px(7), x = line.x0 + ui::text_width(c, label, kSans13) + c.px(8);
    ui::text_mid(c, {line.x0, y}, label, {Role::muted}, kSans13);
    std::string& name = labels[static_cast<std::size_t>(selected)];
    if (const TrainSpec& spec = session_.spec(); arm < spec.arms.size()) {
        const Recipe& recipe = spec.arms[arm];
        // HYBRID is E4M3 for x and w and E5M2 for dy: with one format for all of them the name would be wrong.
        const auto at = name.find("HYBRID");
        if (at != std::string::npos && recipe.fwd && recipe.fwd == recipe.bwd)
            name.replace(at, 6, recipe.fwd->label);
        const Rect swatch{x, std::round(y - c.px(5)), x + c.px(10), std::round(y + c.px(5))};
        const Role role = session_.looks()[arm].role;
        ui::fill_rect(c, swatch, {role, Tone::fill}, 2);
        ui::stroke_rect(c, swatch, {role, Tone::line}, 2);
    }
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ui::advance(line);
    ImGui::PopStyleVar();
    ui::probe(c, probe("label." + field.info.name), line, {}, name);
    const bool chosen = ui::dropdown(c, probe(field.info.name), labels, selected);
    if (chosen) set_field(field, field.choices[static_cast<std::size_t>(selected)].id);
    ui::tooltip(c, field.info.label, field.info.help);
    return chosen;
}

void SessionView::draw_choice(Context& c, const Row& row, float left, bool names, const std::string& help) {
    const Field& field = row.field;
    int selected = 0;
    const std::vector<std::string> labels = labels_of(field, selected);
    if (draw_switch(c, field, left, names, labels, selected, row.why_not.empty() ? labels.size() : 1))
        set_field(field, field.choices[static_cast<std::size_t>(selected)].id);
    ui::tooltip(c, field.info.label, row.why_not.empty() ? help : row.why_not);
}

bool SessionView::draw_switch(Context& c, const Field& field, float left, bool names,
                              std::span<const std::string> labels, int& selected, std::size_t enabled) {
    const Rect row = ui::next_area(c, 32);
    const float y = (row.y0 + row.y1) / 2;
    ui::text_mid(c, {row.x0, y}, field.info.label, {Role::text}, kSans15);
    if (names)
        ui::text_mid(c, {row.x0 + ui::text_width(c, field.info.label, kSans15) + c.px(8), y},
                     field.info.te_name, {Role::muted}, kMono13);
    ImGui::SetCursorScreenPos({row.x0 + c.px(left), row.y0});
    ImGui::BeginChild(field.info.name.c_str(), {row.width() - c.px(left), row.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
    const bool changed = ui::segmented(c, probe(field.info.name), labels, selected, enabled);
    ImGui::EndChild();
    ImGui::SetCursorScreenPos({row.x0, row.y0});
    ui::advance(row);
    return changed;
}

void SessionView::draw_waiting(Context& c) {
    const std::vector<std::string> waiting = session_.waiting();
    if (!waiting.empty())
        ui::wrapped(c, fmt::format("Acts on Reset: {}.", fmt::join(waiting, ", ")), Role::text);
}

// ---- the numbers of the run

void SessionView::draw_headline(Context& c, const std::string& value, const std::string& what, float height) {
    const Rect line = ui::next_area(c, height);
    const float y = (line.y0 + line.y1) / 2;
    ui::text_mid(c, {line.x0, y}, value, {session_.looks()[1].role, Tone::ink}, {Face::mono, 32});
    ui::text_mid(c, {line.x1, y + c.px(5)}, what, {Role::muted}, kSans13, Anchor::right);
    ui::advance(line);
    ui::probe(c, probe("gap_headline"), line, {}, value);
}

void SessionView::draw_heads(Context& c, std::span<const Head> heads, std::span<const float> columns) {
    const Rect line = ui::next_area(c, 20);
    float x = line.x0;
    for (std::size_t i = 0; i < heads.size(); ++i) {
        x += columns[i];
        if (heads[i].words[0] != 0) ui::head(c, {x, (line.y0 + line.y1) / 2}, heads[i].words, heads[i].term);
    }
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ui::advance(line);
    ImGui::PopStyleVar();
}

ui::Cell SessionView::arm_cell(const ArmLook& look) {
    return {.text = look.name, .role = look.role, .mono = false, .strong = true, .anchor = Anchor::left};
}

void SessionView::end_table(Context& c, float width) {
    const Rect end = ui::next_area(c, 8);
    ui::hline(c, end.x0, end.x0 + width, end.y0, {Role::line});
    ui::advance({end.x0, end.y0, end.x1, end.y0});
}

void SessionView::draw_copy_buttons(Context& c, float width, const std::string& name, const char* label,
                                    const char* title) {
    const float half = (width / c.scale - 8) / 2;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const auto copy = [&](const std::string& of, const char* words, const char* heading,
                          const std::string& text) {
        if (ui::button(c, probe(of), words, {.width = half})) ImGui::SetClipboardText(text.c_str());
        ui::tooltip(c, heading, text);
    };
    copy("copy_command", "Copy command", "Copy as command line", session_.command());
    ImGui::SetCursorScreenPos({at.x + c.px(half + 8), at.y});
    copy(name, label, title, session_.transformer_engine());
}

}  // namespace fp8lab::live
