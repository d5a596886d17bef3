// The Explore tab of L13: the switches of arm B, then the numbers of the run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/transformer/view.h"
#include "labs/ui/draw.h"

namespace fp8lab::transformer {
namespace {

using ui::Context;

const Field& named(const std::vector<Field>& fields, std::string_view name) {
    return *std::ranges::find(fields, name, [](const Field& f) -> std::string_view { return f.info.name; });
}

constexpr const char* kNoBlockAttention = "Transformer Engine has no FP8 attention with blocks of 128.";

}  // namespace

void TransformerView::explore(Context& c, float width) {
    const auto arm_looks = lab_.looks();
    backend_choice(c);
    recipe_menu(c, "arm_b", fmt::format("Arm B, beside arm A in {}", arm_looks[0].name), 1);
    const Params& p = lab_.params();
    const bool narrow = is_narrow(parse_recipe(p.arm_b), lab_.plan(), *lab_.plan().find("1.down.x"));
    const std::string wide = "Arm B casts nothing to 8 bits or fewer.";
    const bool blocks = p.arm_b == "block128";
    switch_row(c, "attention", blocks || !narrow ? 1 : 2, blocks ? kNoBlockAttention : narrow ? "" : wide);
    switch_row(c, "head", narrow ? 2 : 1, narrow ? "" : wide);
    switch_row(c, "act");
    switch_row(c, "task");
    const std::string why = lab_.why_not_align();
    if (ui::button(c, "transformer.align", "Align a channel of SwiGLU",
                   {.disabled = !why.empty(), .why_disabled = why, .width = -1}))
        lab_.act("align");
    more(c);
    ui::divider(c);
    numbers(c, width);
    notes(c);
    copy_buttons(c, width);
}

// A choice that cannot be made is there, and says why.
void TransformerView::backend_choice(Context& c) {
    const std::vector<Field> fields = lab_.fields();
    const Field& field = named(fields, "backend");
    const std::string reason = lab_.gpu_reason();
    const std::array<std::string, 2> labels = {"CPU", "GPU"};
    int selected = lab_.backend() == "cuda" ? 1 : 0;
    if (labelled_switch(c, field, labels, selected, reason.empty() ? 2 : 1,
                        reason.empty() ? "" : "No GPU. " + reason))
        *std::get<std::string*>(field.value) = selected == 1 ? "cuda" : "cpu";
}

void TransformerView::recipe_menu(Context& c, const char* name, const std::string& label, std::size_t arm) {
    const std::vector<Field> fields = lab_.fields();
    const Field& field = named(fields, name);
    if (ui::withheld(c, field)) return;
    std::vector<std::string> labels;
    int selected = 0;
    auto* value = std::get<std::string*>(field.value);
    for (const Choice& choice : field.choices) {
        if (choice.id == *value) selected = static_cast<int>(labels.size());
        labels.push_back(choice.label);
    }
    const Rect line = ui::next_area(c, 18);
    const float y = line.y0 + c.px(7), x = line.x0 + ui::text_width(c, label, kSans13) + c.px(8);
    ui::text_mid(c, {line.x0, y}, label, {Role::muted}, kSans13);
    const Rect swatch{x, std::round(y - c.px(5)), x + c.px(10), std::round(y + c.px(5))};
    const Role role = lab_.looks()[arm].role;
    ui::fill_rect(c, swatch, {role, Tone::fill}, 2);
    ui::stroke_rect(c, swatch, {role, Tone::line}, 2);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ui::advance(line);
    ImGui::PopStyleVar();
    if (ui::dropdown(c, std::string("transformer.") + name, labels, selected)) {
        *value = field.choices[static_cast<std::size_t>(selected)].id;
        // The recipe has no attention in FP8, and the switch is shown so.
        if (lab_.params().arm_b == "block128") set_field(fields, "attention=bf16");
    }
    ui::tooltip(c, field.info.label, field.info.help);
}

void TransformerView::switch_row(Context& c, const char* name, std::size_t enabled, const std::string& why) {
    const std::vector<Field> fields = lab_.fields();
    const Field& field = named(fields, name);
    if (ui::withheld(c, field)) return;
    auto* value = std::get<std::string*>(field.value);
    std::vector<std::string> labels;
    int selected = 0;
    for (const Choice& choice : field.choices) {
        if (choice.id == *value) selected = static_cast<int>(labels.size());
        labels.push_back(choice.label);
    }
    if (labelled_switch(c, field, labels, selected, enabled, why))
        *value = field.choices[static_cast<std::size_t>(selected)].id;
}

// A label at the left, with Transformer Engine's name, and a switch at the right, on one line. `why`: what the tooltip
// says instead of the help.
bool TransformerView::labelled_switch(Context& c, const Field& field, std::span<const std::string> labels,
                                      int& selected, std::size_t enabled, const std::string& why) {
    const Rect row = ui::next_area(c, 32);
    const float y = (row.y0 + row.y1) / 2, left = c.px(labels.size() > 2 ? 76 : 150);
    ui::text_mid(c, {row.x0, y}, field.info.label, {Role::text}, kSans15);
    ui::text_mid(c, {row.x0 + ui::text_width(c, field.info.label, kSans15) + c.px(8), y}, field.info.te_name,
                 {Role::muted}, kMono13);
    ImGui::SetCursorScreenPos({row.x0 + left, row.y0});
    ImGui::BeginChild(field.info.name.c_str(), {row.width() - left, row.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
    const bool changed = ui::segmented(c, "transformer." + field.info.name, labels, selected, enabled);
    ImGui::EndChild();
    ImGui::SetCursorScreenPos({row.x0, row.y0});
    ui::advance(row);
    ui::tooltip(c, field.info.label, why.empty() ? field.info.help : why);
    return changed;
}

void TransformerView::more(Context& c) {
    const Rect row = ui::next_area(c, 24);
    const ui::Press press = ui::press(c, "transformer.more", row);
    if (press.clicked) more_open_ = !more_open_;
    const Color ink{press.hovered ? Role::text : Role::muted};
    const float y = (row.y0 + row.y1) / 2;
    ui::chevron(c, {row.x0 + c.px(5), y}, more_open_ ? ui::Direction::down : ui::Direction::right, ink);
    ui::text_mid(c, {row.x0 + c.px(20), y}, "More: arm A, kept in BF16, history, training", ink, kSans13);
    ui::advance(row);
    if (more_open_) {
        recipe_menu(c, "arm_a", "Arm A", 0);
        const std::vector<Field> fields = lab_.fields(), defaults = lab_.defaults();
        for (const char* name : {"wide", "history", "batch", "lr", "seed"}) {
            if (name == std::string_view("history") && lab_.spec().arms.at(1).scale != ScaleSource::delayed)
                continue;
            Field field = named(fields, name);
            if (ui::withheld(c, field)) continue;
            field.info.name = std::string("transformer.") + name;
            ui::edit(c, field, &named(defaults, name));
        }
    }
    const std::vector<std::string> waiting = lab_.waiting();
    if (!waiting.empty())
        ui::wrapped(c, fmt::format("Acts on Reset: {}.", fmt::join(waiting, ", ")), Role::text);
}

void TransformerView::numbers(Context& c, float width) {
    const auto arm_looks = lab_.looks();
    const bool started = lab_.step() > 0, copying = lab_.spec().task == TaskKind::copying;
    const Rect big = ui::next_area(c, 34);
    const float middle = (big.y0 + big.y1) / 2;
    const int learnt = lab_.learnt_at(1);
    const std::string gap = !started     ? ""
                            : !copying   ? live::signed_percent(lab_.gap_pct())
                            : learnt < 0 ? "–"
                                         : std::to_string(learnt);
    const std::string what = !started  ? "no step yet"
                             : copying ? fmt::format("steps to 99 %, {}", arm_looks[1].name)
                                       : "gap, last 100 steps";
    ui::text_mid(c, {big.x0, middle}, gap, {arm_looks[1].role, Tone::ink}, {Face::mono, 32});
    ui::text_mid(c, {big.x1, middle + c.px(5)}, what, {Role::muted}, kSans13, Anchor::right);
    ui::advance(big);
    ui::probe(c, "transformer.gap_headline", big, {}, gap);
    const std::array<float, 4> columns = {0.24F * width, 0.24F * width, 0.26F * width, 0.26F * width};
    const std::array<const char*, 4> heads = {"", "first", copying ? "accuracy %" : "tail loss", "held-out"};
    const std::array<const char*, 4> terms = {"", "loss", copying ? "induction-head" : "tail-loss",
                                              "held-out"};
    const Rect header = ui::next_area(c, 20);
    float x = header.x0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        x += columns.at(i);
        if (i > 0) ui::head(c, {x, (header.y0 + header.y1) / 2}, heads.at(i), terms.at(i));
    }
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ui::advance(header);
    ImGui::PopStyleVar();
    for (std::size_t i = 0; i < 2; ++i) {
        const auto cell = [](double value, int decimals = 3) {
            if (!std::isfinite(value)) return ui::Cell{.text = ""};
            return ui::Cell{.text = fmt::format("{:.{}f}", value, decimals), .value = value};
        };
        const bool shown = started && i < lab_.history().arms().size();
        const live::ArmTrack* arm = shown ? &lab_.history().arms()[i] : nullptr;
        const double tail = !arm      ? kNan
                            : copying ? 100 * live::tail_mean(arm->accuracy.values(), 20)
                                      : arm->tail_loss();
        const auto& told = lab_.evaluation(i);
        ui::table_row(
            c,
            std::array{ui::Cell{.text = arm_looks[i].name,
                                .role = arm_looks[i].role,
                                .mono = false,
                                .strong = true,
                                .anchor = Anchor::left},
                       cell(lab_.first_loss(i)), cell(tail, copying ? 1 : 3), cell(told ? told->loss : kNan)},
            columns);
    }
    const Rect end = ui::next_area(c, 8);
    ui::hline(c, end.x0, end.x0 + width, end.y0, {Role::line});
    ui::advance({end.x0, end.y0, end.x1, end.y0});
}

void TransformerView::notes(Context& c) {
    if (const std::string message = lab_.message(); !message.empty()) ui::warning(c, message);
    if (const std::string why = lab_.no_record(); !why.empty()) ui::wrapped(c, why, Role::text);
    ui::wrapped(
        c, fmt::format(
               "First loss = ln {} = {:.3f}, to 1 %: an untrained head finds every symbol equally likely.",
               lab_.spec().vocabulary, lab_.ln_vocabulary()));
    if (lab_.aligned_at())
        ui::wrapped(c,
                    "The channel was set by hand and is held. In a real run such a channel grew over 200 "
                    "billion tokens.");
    if (const std::string cost = lab_.cost_sentence(); !cost.empty()) ui::wrapped(c, cost, Role::text);
    ui::wrapped(
        c, lab_.provenance() == Provenance::cpu_emulated
               ? "Exact: every cast, scale and loss. Simplified: 2 blocks, 600 steps; the CPU adds in FP32."
               : "Exact: every cast, scale and loss. Simplified: 2 blocks, 600 steps.");
}

void TransformerView::copy_buttons(Context& c, float width) {
    const float half = (width / c.scale - 8) / 2;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ui::button(c, "transformer.copy_command", "Copy command", {.width = half}))
        ImGui::SetClipboardText(lab_.command().c_str());
    ui::tooltip(c, "Copy as command line", lab_.command());
    ImGui::SetCursorScreenPos({at.x + c.px(half + 8), at.y});
    if (ui::button(c, "transformer.copy_model", "Copy TE model", {.width = half}))
        ImGui::SetClipboardText(lab_.transformer_engine().c_str());
    ui::tooltip(c, "Copy as Transformer Engine model", lab_.transformer_engine());
}

}  // namespace fp8lab::transformer
