// The Explore tab of L14: the switch, the fields of the experiment, what it comes to, and the three side by side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"
#include "labs/wide/view.h"

namespace fp8lab::wide {
namespace {

using ui::Context;

struct Result {
    std::string words;  // "22.0 %"
    std::string of;     // "of the probability lost"
    double value;
    bool bad;
};

std::string percent_of(double pct) {
    return std::isfinite(pct) ? (pct < 0 ? "−" : "") + share_text(std::fabs(pct)) + " %" : "–";
}

Result attention_result(const WideLab& lab) {
    const double lost = lab->attention->casts[lab->cast()].lost_pct;
    return {percent_of(lost), "of the probability lost", lost, lost > kMostLost_pct};
}
Result swiglu_result(const WideLab& lab) {
    if (lab->swiglu->steps.empty()) return {"–", "", 0, false};  // before the first result
    const SwigluStep& step = lab->step();
    return {percent_of(step.lost_l1_pct), fmt::format("of channel 0 lost, step {}", lab->params.step),
            step.lost_l1_pct, step.saturated > 0};
}
Result optimiser_result(const WideLab& lab) {
    const Optimiser& o = *lab->optimiser;
    if (o.exact.empty()) return {"–", "", 0, false};
    return {percent_of(o.error_pct()),
            fmt::format("too {} after {} steps", o.v_end() >= o.exact.back() ? "large" : "small",
                        o.spec.length()),
            o.error_pct(), o.error_pct() > kMostOff_pct};
}

}  // namespace

// Powers of two only: the mouse rounds to them, an arrow key goes to the next.
void WideView::draw_keys_slider(Context& c, const Field& field) {
    if (ui::withheld(c, field)) return;
    const double before = lab_->params.attention_spec().keys;
    double keys = before;
    const bool changed =
        ui::slider(c, "keys", field.info.label, field.info.te_name, keys, kLeastKeys, kMostKeys,
                   {.logarithmic = true, .format = "{0:.0f}", .default_value = AttentionSpec().keys});
    ui::tooltip(c, field.info.label, field.info.help);
    if (!changed) return;
    double at = std::round(std::log2(keys));
    const bool small = std::fabs(std::log2(keys / before)) < 0.3;
    if (small && !ImGui::IsMouseDown(ImGuiMouseButton_Left))
        at = std::log2(before) + (keys > before ? 1 : -1);
    set(fmt::format("keys={:.0f}", std::exp2(std::clamp(at, std::log2(kLeastKeys), std::log2(kMostKeys)))));
}

// While the pointer or the ring is on it, the weight rows are shown.
void WideView::draw_alignment(Context& c, const Field& field, const Field& default_field) {
    const ImVec2 from = ImGui::GetCursorScreenPos(), mouse = ImGui::GetIO().MousePos;
    const float width = ImGui::GetContentRegionAvail().x;
    ui::edit(c, field, &default_field);
    const bool over = mouse.x >= from.x && mouse.x <= from.x + width && mouse.y >= from.y &&
                      mouse.y < ImGui::GetCursorScreenPos().y;
    constexpr double kLinger_s = 1.5;
    if (over || c.focus.name == "rho") pair_until_ = ImGui::GetTime() + kLinger_s;
}

bool WideView::draw_own(Context& c, const table::Row& row, const Field& default_field) {
    const std::string& name = row.field.info.name;
    if (name == "keys") return draw_keys_slider(c, row.field), true;
    if (name == "rho") return draw_alignment(c, row.field, default_field), true;
    return false;
}

std::string WideView::more_words() const {
    return lab_.shows("swiglu")      ? "history, seed"
           : lab_.shows("optimiser") ? "v at start, steps, parameters, seed"
                                     : "row sum, head size, seed";
}

void WideView::draw_below(Context& c, float width) {
    ui::divider(c);
    draw_headline(c);
    draw_summary(c, width);
    draw_buttons(c);
}

void WideView::draw_headline(Context& c) {
    const Result result = lab_.shows("swiglu")      ? swiglu_result(lab_)
                          : lab_.shows("optimiser") ? optimiser_result(lab_)
                                                    : attention_result(lab_);
    ui::headline(c, "wide.result",
                 {result.words, result.of, result.value,
                  result.bad ? Color{Role::sat, Tone::ink} : Color{Role::text}});
}

void WideView::draw_summary(Context& c, float width) {
    const Params& p = lab_->params;
    ui::text(c, "The three experiments", Role::text, kBold15);
    const std::vector<float> columns = {0.74F * width, 0.26F * width};
    const auto row = [&](std::string_view experiment, std::string words, const Result& result) {
        const bool here = lab_.shows(experiment);
        ui::table_row(
            c,
            std::array{
                ui::Cell{.text = std::move(words), .mono = false, .strong = here, .anchor = Anchor::left},
                ui::Cell{.text = result.words, .role = result.bad ? Role::sat : Role::text, .strong = here}},
            columns);
    };
    row("attention", fmt::format("Attention: P in {}, lost", format_label(p.format)), attention_result(lab_));
    row("swiglu", fmt::format("SwiGLU: h in E4M3, lost in step {}", p.step), swiglu_result(lab_));
    const Optimiser& o = *lab_->optimiser;
    const bool large = o.exact.empty() || o.v_end() >= o.exact.back();
    row("optimiser",
        fmt::format("Optimiser: v in {}, too {}", format_label(p.optimiser.format),
                    large ? "large" : "small"),
        optimiser_result(lab_));
    ui::table_end(c, columns);
    ui::wrapped(c, "Transformer Engine keeps all three wide: fp8_dpa=False, h in BF16, FP32 moments.");
}

// L8 has neither attention nor v in 16 bits: it takes the scaling of the experiment "swiglu".
void WideView::draw_buttons(Context& c) {
    const std::string& fix = lab_->params.swiglu.fix;
    const bool trains = lab_.shows("swiglu") && (fix == "none" || fix == "current");
    ui::recipe_buttons(c, "wide", lab_->te_code(), trains ? recipe_text(lab_->recipe()) : "");
}

}  // namespace fp8lab::wide
