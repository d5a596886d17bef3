// The part "rollout" of L17: the effective sample size over the length of the answers, the tokens' ratios, and a row for each engine.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "labs/serve/view_parts.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::serve {
namespace {

using ui::Context;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::string number_text(double pct) {
    return pct < 9.95 ? fmt::format("{:.1f}", pct) : fmt::format("{:.0f}", pct);
}
Color ink_of(const RolloutEngine& engine) {
    return {engine.format == "bf16" ? Role::bf16 : find_low_format(engine.format, "rollout").role, Tone::ink};
}
std::string ess_text(double pct) { return number_text(pct) + " %"; }

}  // namespace

void RolloutStage::draw(Context& c, ServeLab& lab, Rect area) {
    const auto rows = static_cast<float>(lab->rollouts->lines.size());
    const float split = area.y1 - c.px(28 + 30 * std::max(rows, 1.0F) + 26);
    const WideLeft parts = wide_left(c, "serve.rollout", {area.x0, area.y0, area.x1, split - c.px(14)},
                                     {"Sample size", "Ratios"}, half_);
    // Both plots begin at one height.
    const std::string title = ess_title(*lab->rollouts, lab->params.tokens, lab->params.truncate);
    const float lines = static_cast<float>(ui::wrap_lines(c, title, kBold15, parts.left.width()).size());
    const float top = parts.left.y0 + c.px(ui::line_height(15)) * lines + c.px(6);
    if (parts.shows_left) draw_ess(c, lab, parts.left, top);
    if (parts.shows_right) draw_ratios(c, lab, parts.right, top);
    draw_table(c, lab, {area.x0, split, area.x1, area.y1});
}

// A press or an arrow key sets the length of the answers.
void RolloutStage::draw_ess(Context& c, ServeLab& lab, Rect area, float top) {
    const Rollouts& rollouts = *lab->rollouts;
    const Figure figure = ess_figure(rollouts, lab->params.tokens, lab->params.truncate);
    ui::region(c, "ess", area);
    ui::heading(c, figure.title, area);
    if (rollouts.lines.empty()) return;
    // Room for the names at the ends of the lines.
    float names = ui::text_width(c, "the trainer", kSans13);
    for (const RolloutLine& line : rollouts.lines)
        names = std::max(names, ui::text_width(c, name_of(line.engine), kSans13));
    names += c.px(8 + 24 + 6 + 2);
    const ui::PlotResult plot =
        ui::plot(c, "serve.ess", bare_of_words(figure), ess_, {area.x0, top, area.x1 - names, area.y1},
                 {.interactive = false, .y_tick_width = 36, .title_height = 0});
    const ui::Press press = ui::press(c, "serve.tokens", plot.area, 2);
    const auto choose = [&](double tokens) {
        const double longest = rollouts.chosen()->longest();
        set_field(lab.fields(), fmt::format("tokens={:.0f}", std::clamp(std::round(tokens), 1.0, longest)));
    };
    if (press.clicked || press.held)
        if (const auto mouse = ImGui::GetIO().MousePos; plot.area.contains({mouse.x, mouse.y}))
            choose(plot.x_at(mouse.x));
    if (const int arrows = press.focused ? ui::arrow_step() : 0; arrows != 0)
        choose(std::min(lab->params.tokens, rollouts.chosen()->longest()) + arrows);
    std::vector<ui::EndWords> ends;
    const auto end = [&](double pct, const std::string& name, Color ink) {
        const float y = plot.to_px(1, std::clamp(pct, plot.extents.y.lo, plot.extents.y.hi)).y;
        ends.push_back({y, number_text(pct), name, ink});
    };
    for (const RolloutLine& line : rollouts.lines)
        end(line.median_ess_pct(line.longest(), kNoLimit), name_of(line.engine), ink_of(line.engine));
    if (lab->params.truncate != "off") {
        const RolloutLine& chosen = *rollouts.chosen();
        end(chosen.median_ess_pct(chosen.longest(), truncation_of(lab->params.truncate)),
            "cut at " + lab->params.truncate, ink_of(chosen.engine));
    }
    end(100, "the trainer", {Role::text});
    ui::end_words(c, std::move(ends), plot.area.x1 + c.px(8), {area.x0, plot.area.y0, area.x1, plot.area.y1});
}

void RolloutStage::draw_ratios(Context& c, ServeLab& lab, Rect area, float top) {
    Figure figure = ratios_figure(*lab->rollouts);
    ui::region(c, "ratios", area);
    ui::heading(c, figure.title, area);
    figure.title.clear();
    if (lab->rollouts->lines.empty()) return;
    figure.x.visible = false;
    const ui::PlotResult plot =
        ui::plot(c, "serve.ratios", figure, ratios_, {area.x0, top, area.x1, area.y1 - c.px(44)},
                 {.interactive = false, .y_tick_width = 40, .title_height = 0});
    constexpr std::array<std::pair<double, std::string_view>, 5> kTicks = {
        {{-4, "1/16"}, {-1, "1/2"}, {0, "1"}, {1, "2"}, {4, "16"}}};
    ui::axis_below(c, plot, "", kTicks, area.x0);
    ui::text_mid(c, {plot.area.x1, plot.area.y1 + c.px(34)}, "p trainer / p rollout", {Role::muted}, kSans13,
                 Anchor::right);
}

void RolloutStage::draw_table(Context& c, ServeLab& lab, Rect area) {
    const Rollouts& rollouts = *lab->rollouts;
    if (rollouts.lines.empty()) return;
    ui::region(c, "engines", area);
    const auto x = [&](float share) { return area.x0 + share * area.width(); };
    constexpr std::array kEdges = {0.42F, 0.54F, 0.69F, 0.79F, 0.89F, 1.0F};
    const std::array lengths = rollouts.lengths();
    const std::array<std::string, 6> heads = {"|d| per token",
                                              "KL, nats",
                                              "ratio > 2",
                                              fmt::format("ESS at {}", lengths[0]),
                                              fmt::format("at {}", lengths[1]),
                                              fmt::format("at {}", lengths[2])};
    const float head = area.y0 + c.px(12);
    ui::text_mid(c, {area.x0, head}, "engine", {Role::muted}, kSans13);
    for (std::size_t i = 0; i < heads.size(); ++i)
        ui::text_mid(c, {x(kEdges[i]), head}, heads[i], {Role::muted}, kSans13, Anchor::right);
    float y = area.y0 + c.px(28);
    const float pitch = c.px(30);
    for (std::size_t l = 0; l < rollouts.lines.size() && y + pitch <= area.y1 + 1; ++l, y += pitch) {
        const RolloutLine& line = rollouts.lines[l];
        const float middle = y + pitch / 2;
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        const std::array values = {screen_number(line.mean_abs_d(), 2),
                                   screen_number(line.kl(), 2),
                                   screen_number(line.over_2_pct(), 2) + " %",
                                   ess_text(line.median_ess_pct(lengths[0], kNoLimit)),
                                   ess_text(line.median_ess_pct(lengths[1], kNoLimit)),
                                   ess_text(line.median_ess_pct(lengths[2], kNoLimit))};
        ui::text_mid(c, {area.x0, middle}, name_of(line.engine), {Role::text}, l == 0 ? kBold13 : kSans13);
        for (std::size_t i = 0; i < values.size(); ++i)
            ui::text_mid(c, {x(kEdges[i]), middle}, values[i], {Role::text}, l == 0 ? kMonoBold13 : kMono13,
                         Anchor::right);
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    ui::note(c,
             fmt::format("{} answers, temperature {}: medians of {} draws; band: the least and the most of "
                         "the chosen engine.",
                         rollouts.spec.answers, screen_number(rollouts.spec.temperature), kDraws),
             {area.x0, y + c.px(5), area.x1, area.y1 + c.px(8)});
}

void RolloutStage::draw_rows(Context& c, ServeLab& lab) {
    const RolloutLine* chosen = lab->rollouts->chosen();
    if (!chosen) return;
    const int length = std::min(lab->params.tokens, chosen->longest());
    const std::vector<double> draws = chosen->ess_pct(length, kNoLimit);
    const double median = chosen->median_ess_pct(length, kNoLimit);
    ui::headline(c, "serve.result",
                 {ess_text(median),
                  fmt::format("of {} answers, {}", lab->rollouts->spec.answers,
                              tokens_words(lab->params.tokens, chosen->longest())),
                  median});
    const bool cut = lab->params.truncate != "off";
    const Rect top = ui::next_area(c, cut ? 28 * 2 : 28);
    float y = top.y0;
    const auto row = [&](const std::string& words, std::string value) {
        y = ui::row(c, {words, std::move(value)}, {top.x0, y, top.x1, y}, c.px(28));
    };
    row(fmt::format("{} draws", chosen->draws.size()),
        fmt::format("{} to {}", ess_text(draws.front()), ess_text(draws.back())));
    if (cut)
        row("cut at " + lab->params.truncate,
            ess_text(chosen->median_ess_pct(length, truncation_of(lab->params.truncate))) + ", biased");
    ui::advance(top);
    ui::wrapped(
        c,
        "Effective sample size (ESS): so many answers of the trainer’s own would tell as much. d = log p of "
        "the trainer less log p of the rollout.");
}

}  // namespace fp8lab::serve
