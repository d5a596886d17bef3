#include "labs/bits/view.h"

#include <imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "labs/bits/view_stage.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::bits {

namespace {

constexpr std::size_t kTabsInARow = 4;
constexpr float kWidestMap = 848;  // with its labels and notes: beyond it the list would stand too far off

// A row of choices as one switch; none is selected when the value stands in another row.
bool choice_row(ui::Context& context, std::string_view name, std::span<const Choice> choices,
                std::string_view value, std::string& chosen) {
    std::vector<std::string> labels;
    int selected = -1;
    for (const Choice& choice : choices) {
        if (choice.id == value) selected = static_cast<int>(labels.size());
        labels.push_back(choice.label);
    }
    if (!ui::segmented(context, name, labels, selected)) return false;
    chosen = choices[static_cast<std::size_t>(selected)].id;
    return true;
}

void facts_table(ui::Context& context, std::string_view title, std::span<const Fact> facts,
                 std::array<float, 3> shares) {
    ui::text(context, title, Role::text, kBold15);
    const float width = ImGui::GetContentRegionAvail().x;
    for (float& share : shares) share *= width;
    for (const Fact& fact : facts) {
        const std::array<ui::Cell, 3> cells = {
            ui::Cell{.text = fact.label, .mono = false, .anchor = Anchor::left},
            ui::Cell{.text = fact.value, .strong = true},
            ui::Cell{.text = fact.remark, .role = Role::muted, .mono = !fact.remark.starts_with("max")},
        };
        ui::table_row(context, cells, shares);
    }
    ImGui::Dummy({0, context.px(4)});
}

}  // namespace

void BitsView::stage(ui::Context& context, Rect area) {
    const bool compact = area.height() < context.px(620);
    const float divider =
        draw_bits(context, lab_, last_bit_, {area.x0, area.y0 + context.px(4), area.x1, area.y1}, compact) +
        context.px(compact ? 10 : 16);
    ui::hline(context, area.x0, area.x1, divider, {Role::line});

    const bool roomy = area.width() >= context.px(700);
    const float list = std::max(context.px(roomy ? 144 : 120), line_end_width(context, lab_)),
                gap = context.px(12);
    const float top = divider + context.px(compact ? 10 : 14);
    const float map = std::min(area.width() - list - gap, context.px(kWidestMap));
    ui::region(context, "codes", {area.x0, top, area.x0 + map, area.y1});
    ui::region(context, "line_end", {area.x0 + map + gap, top, area.x0 + map + gap + list, area.y1});
    draw_map(context, lab_, {area.x0, top, area.x0 + map, area.y1}, roomy);
    draw_line_end(context, lab_, {area.x0 + map + gap, top, area.x0 + map + gap + list, area.y1});
}

bool BitsView::draw_own(ui::Context& context, const table::Row& row, const Field&) {
    const Field& field = row.field;
    const bool is_format = field.info.name == "format";
    if (!is_format && field.info.name != "specials") return false;
    // The format may have been chosen in this frame, after the rows were made.
    const std::vector<Choice> specials = lab_->specials_choices();
    if (!is_format && specials.size() < 2) return true;
    ui::text(context, field.info.label, Role::muted, kSans13);
    std::string chosen;
    if (is_format) {
        const std::span<const Choice> choices(field.choices);
        for (std::size_t first = 0; first < choices.size(); first += kTabsInARow) {
            const auto tabs = choices.subspan(first, std::min(kTabsInARow, choices.size() - first));
            const std::string name = "bits.format" + std::to_string(first / kTabsInARow);
            if (choice_row(context, name, tabs, lab_->params.format, chosen)) lab_->select_format(chosen);
            ui::tooltip(context, field.info.label, field.info.help);
        }
    } else {
        if (choice_row(context, "bits.specials", specials, lab_->outcome->rules, chosen))
            set_field(field, chosen);
        ui::tooltip(context, field.info.label, field.info.help);
    }
    lab_.update();
    return true;
}

// A field that becomes a text input when it is pressed: ImGui's own would take Tab from the controls around
// it.
bool BitsView::edit_entry(ui::Context& context) {
    constexpr Font kFont{Face::mono, 13};
    const Rect box = ui::next_area(context, 28);
    if (!typing_) {
        const ui::Press press = ui::press(context, "bits.entry", box, 4);
        ui::fill_rect(context, box, {Role::surface}, 4);
        ui::stroke_rect(context, box, {press.hovered ? Role::axis : Role::line}, 4);
        ui::text_mid(context, {box.x0 + context.px(8), (box.y0 + box.y1) / 2},
                     lab_->outcome->reading.code_text, {Role::muted}, kFont);
        ui::advance(box);
        ui::tooltip(context, "Code or number",
                    "0x7E is a code, 448 is a number; a number is rounded to the nearest code. Press Enter.");
        typing_ = opens_ = press.clicked;
        context.opens_text |= opens_;
        return false;
    }
    ImGui::PushFont(context.font(kFont));
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding,
                        {context.px(8), std::max(0.0F, (box.height() - ImGui::GetFontSize()) / 2)});
    ImGui::SetNextItemWidth(box.width());
    if (opens_) ui::focus_text_field("##entry");
    const bool entered = ImGui::InputText(
        "##entry", &typed_, ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
    context.wants_redraw |= opens_;  // as got_focus() does
    opens_ = opens_ && !ImGui::IsItemActive();
    context.opens_text |= opens_;
    if (entered || ImGui::IsItemDeactivated()) typing_ = false;
    ImGui::PopStyleVar();
    ImGui::PopFont();
    ui::probe(context, "bits.entry", box);
    return entered;
}

void BitsView::explore_entry(ui::Context& context) {
    ui::text(context, "Go to a code or a number", Role::muted, kSans13);
    if (edit_entry(context)) {
        try {
            answer_ = lab_->enter(typed_);
            lab_.update();
            answered_ = lab_->outcome->reading.code;
            typed_.clear();
        } catch (const Error& error) {
            answer_ = error.why();
            answered_.reset();
        }
    }
    if (answered_ && *answered_ != lab_->outcome->reading.code) answer_.clear();  // it is about another code
    if (answer_.empty()) return;
    if (answered_) {
        ui::wrapped(context, answer_);
    } else {
        ui::warning(context, answer_);
    }
}

void BitsView::draw_below(ui::Context& context, float) {
    explore_entry(context);
    ui::divider(context);
    const Outcome& outcome = *lab_->outcome;
    facts_table(context, std::string(outcome.format.label) + " in numbers", outcome.facts,
                {0.32F, 0.40F, 0.28F});
    if (!outcome.elsewhere.empty())
        facts_table(context,
                    width_bits(outcome.format) == 8 ? "The same byte in other formats"
                                                    : "The same code in other formats",
                    outcome.elsewhere, {0.46F, 0.24F, 0.30F});
}

std::span<const ViewKey> BitsView::keys() const {
    static constexpr std::array kKeys = {
        ViewKey{"0 to 7", "flips that bit", ui::Key::digit_0, ui::Key::digit_7},
    };
    return kKeys;
}

std::vector<std::pair<std::string, std::string>> BitsView::status() const {
    const CodeCounts counts = count_codes(lab_->outcome->format);
    std::string codes = std::to_string(counts.total) + ": " + std::to_string(counts.finite) + " finite";
    if (counts.infinities > 0) codes += ", " + std::to_string(counts.infinities) + " Inf";
    if (counts.nans > 0) codes += ", " + std::to_string(counts.nans) + " NaN";
    return {{"format", std::string(lab_->outcome->format.label)}, {"codes", codes}};
}

bool BitsView::key(ui::Context&, ui::Key key) {
    if (key < ui::Key::digit_0 || key > ui::Key::digit_9) return false;
    last_bit_ = key - ui::Key::digit_0;
    lab_.act("toggle " + std::to_string(last_bit_));
    return true;
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<BitsView>(static_cast<BitsLab&>(lab));
}

}  // namespace fp8lab::bits
