// The Explore tab of L11: the switch, the fields of the experiment, what the state comes to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/lower/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::lower {
using ui::Context;

// A field without an effect says why in its tooltip.
bool LowerView::draw_own(Context& c, const table::Row& row, const Field&) {
    if (row.why_not.empty()) return false;
    const Rect line = ui::next_area(c, 24);
    const float y = (line.y0 + line.y1) / 2;
    const Color ink{Role::muted, Tone::ink, 0.6F};
    ui::text_mid(c, {line.x0, y}, row.field.info.label, ink, kSans13);
    ui::text_mid(c, {line.x1, y}, "no effect now", ink, kSans13, Anchor::right);
    ui::advance(line);
    ui::tooltip(c, row.field.info.label, row.why_not);
    return true;
}

std::string LowerView::more_words() const {
    return lab_.shows("kv")        ? "seed"
           : lab_.shows("tokens")  ? "seeds, every choice of layers"
           : lab_.shows("cascade") ? "outliers, smoothing, contrast"
                                   : "scales, calibration, outliers, smoothing";
}

void LowerView::draw_below(Context& c, float width) {
    ui::divider(c);
    draw_headline(c);
    if (lab_.shows("kv")) return;
    if (lab_.shows("tokens")) return draw_token_rows(c);
    if (lab_.shows("cascade")) {
        ui::wrapped(c, "Emulated on the CPU: the cost is counted, not timed. L9 measures products.");
        return;
    }
    draw_neighbours(c, width);
    if (lab_.shows("mix")) draw_buttons(c);
    ui::wrapped(
        c, lab_->outcome->setup->subject->random_inputs
               ? "The weights are yours; their inputs are drawn from N(0, 1)."
               : "Emulated: hardware multiplies NVFP4 only by FP4, and widens weights of 4 bits before it "
                 "multiplies them by 8. Layers do not add up: errors can cancel.");
}

void LowerView::draw_headline(Context& c) {
    const OutputRow& own = lab_->outcome->own;
    const CascadeSweep& sweep = *lab_->cascade;
    const Params& p = lab_->params;
    double value = own.bits;
    std::string words = fmt::format("{:.2f}", value), of = "bits per weight, scales included";
    if (lab_.shows("ranges") && lab_->outcome->setup->network.classifies) {
        value = own.score.accuracy_pct;
        words = fmt::format("{:.2f} %", value), of = "right answers of your mix";
    } else if (lab_.shows("cascade")) {
        value = sweep.at.empty() ? std::nan("") : sweep.with(p.tau).accuracy_pct;
        words = std::isnan(value) ? "–" : fmt::format("{:.2f} %", value), of = "right answers of the cascade";
    } else if (lab_.shows("tokens")) {
        value = lab_->tokens->sweep ? lab_->tokens->divergence : std::nan("");
        words = std::isnan(value) ? "–" : divergence_text(value), of = "nats from BF16";
    } else if (lab_.shows("kv")) {
        value = kv_tokens(p.kv.bytes(), kv_bytes(p.kv, p.kv.cache));
        words = group_thousands(static_cast<std::int64_t>(value)), of = "tokens in the budget";
    }
    ui::headline(c, "lower.result", {words, of, value});
}

void LowerView::draw_neighbours(Context& c, float width) {
    const Outcome& o = *lab_->outcome;
    const Cloud* cloud = lab_->cloud();
    if (!cloud || cloud->all.points.empty()) return;
    const Neighbours near = neighbours_of(cloud->all.points, o.own.bits, o.own.score.divergence);
    if (near.count == 0) return;
    const Rect head = ui::next_area(c, 22);
    const float y = (head.y0 + head.y1) / 2;
    ui::text_mid(c, {head.x0, y}, "Within 0.1 bit of it", {Role::text}, kBold13);
    ui::text_mid(c, {head.x0 + width, y}, fmt::format("{} mixes", near.count), {Role::muted}, kSans13,
                 Anchor::right);
    ui::advance(head);
    const std::vector<float> columns = {0.34F * width, 0.33F * width, 0.33F * width};
    const double own = o.own.score.divergence;
    const auto row = [&](const char* name, double value, bool yours) {
        const std::string ratio =
            yours ? std::string("yours") : fmt::format("{}×", screen_number(value / own, 2));
        ui::table_row(c,
                      std::array{ui::Cell{.text = name, .mono = false, .anchor = Anchor::left},
                                 ui::Cell{.text = divergence_text(value), .value = value},
                                 ui::Cell{.text = ratio, .strong = yours}},
                      columns);
    };
    const double best = cloud->all.points[near.best].divergence;
    row("best", best, near.rank == 1);
    row("median", near.median, false);
    row("worst", cloud->all.points[near.worst].divergence, false);
    ui::table_end(c, columns);
}

void LowerView::draw_token_rows(Context& c) {
    const Tokens& t = *lab_->tokens;
    if (!t.sweep) return;
    const auto row = [&](std::string_view words, const std::string& value) {
        const Rect line = ui::next_area(c, 24);
        const float y = (line.y0 + line.y1) / 2;
        ui::text_mid(c, {line.x0, y}, words, {Role::muted}, kSans13);
        ui::text_mid(c, {line.x1, y}, value, {Role::text}, kMono13, Anchor::right);
        ui::advance(line);
    };
    row("as many tokens at random", divergence_text(t.random));
    row("of the work in the wide format", fmt::format("{:.1f} %", t.share_pct));
    row("bits per activation", fmt::format("{:.2f}", t.activation_bits));
    row("bits per weight", fmt::format("{:.2f}", t.weight_bits));
    if (std::isfinite(t.best_layers()))
        row("best choice of layers up to here", divergence_text(t.best_layers()));
    ui::wrapped(c, "Emulated on the CPU: no time is measured.");
}

void LowerView::draw_buttons(Context& c) {
    if (!lab_->params.revealed) {
        if (ui::button(c, "lower.reveal", "Show all mixes", {.width = -1})) lab_.act("reveal");
        ui::tooltip(
            c, "Show all mixes",
            "Every mix of eight formats, the best ones and a budget; of more than five layers one path "
            "through them. Exercise 3 is better without.");
        return;
    }
    if (!lab_->cloud()) return;
    const bool greedy = lab_->cloud()->is_greedy();
    if (ui::button(c, "lower.take_best",
                   greedy ? "Take the greedy mix with these bits" : "Take the best with these bits",
                   {.width = -1}))
        lab_.act("take_best");
    ui::tooltip(
        c, greedy ? "Greedy" : "The best",
        greedy
            ? "Too many layers to try every mix: from MXFP8 everywhere, in each step the layer whose added "
              "divergence per saved bit is the least. Another mix can be better."
            : "Of all mixes with at most these bits, the one with the least divergence.");
}

}  // namespace fp8lab::lower
