// The part "draft" of L17: speed-up over the draft's length, acceptance by position, and one verification token by token.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/serve/view_parts.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::serve {

using ui::Context;

namespace {

constexpr float kRoundHeight = 190;  // logical px: title, text, head and three rows

std::string two_digits(double share) { return share < 0.005 ? "0" : fmt::format("{:.2f}", share); }

}  // namespace

Figure bare_of_words(Figure figure) {
    figure.title.clear();
    for (Series& series : figure.series) series.style.in_legend = false;
    return figure;
}

WideLeft wide_left(Context& c, const std::string& name, Rect area, const std::array<std::string, 2>& names,
                   int& part) {
    constexpr float kNarrow = 680, kBetween = 17, kLeft = 0.64F;
    if (area.width() < c.px(kNarrow)) {
        ui::corner_switch(c, name + ".part", {area.x1, area.y0}, 220, names, part);
        const Rect rest{area.x0, area.y0 + c.px(40), area.x1, area.y1};
        return {rest, rest, part == 0, part == 1};
    }
    const float middle = std::round(area.x0 + kLeft * area.width());
    ui::fill_rect(c, {middle, area.y0, middle + ui::hairline(c), area.y1}, {Role::line});
    return {{area.x0, area.y0, middle - c.px(kBetween), area.y1},
            {middle + c.px(kBetween), area.y0, area.x1, area.y1}};
}

void DraftStage::draw(Context& c, ServeLab& lab, Rect area) {
    const float split = area.y1 - c.px(kRoundHeight);
    const WideLeft parts = wide_left(c, "serve.draft", {area.x0, area.y0, area.x1, split - c.px(14)},
                                     {"Speed-up", "Acceptance"}, half_);
    // Both plots begin at one height.
    const std::size_t lines =
        ui::wrap_lines(c, speedup_title(*lab->drafts, lab->params.price()), kBold15, parts.left.width())
            .size();
    const float top = parts.left.y0 + c.px(ui::line_height(15)) * static_cast<float>(lines) + c.px(6);
    if (parts.shows_left) draw_speedup(c, lab, parts.left, top);
    if (parts.shows_right) draw_acceptance(c, lab, parts.right, top);
    ui::hline(c, area.x0, area.x1, split, {Role::line});
    draw_round(c, lab, {area.x0, split + c.px(12), area.x1, area.y1});
}

// A press or an arrow key sets the length.
void DraftStage::draw_speedup(Context& c, ServeLab& lab, Rect area, float top) {
    const Drafts& drafts = *lab->drafts;
    const Figure figure = speedup_figure(drafts, lab->params.price(), lab->params.length);
    ui::region(c, "speedup", area);
    ui::heading(c, figure.title, area);
    if (drafts.curves.empty()) return;
    constexpr float kNames = 92;
    const ui::PlotResult plot = ui::plot(c, "serve.speedup", bare_of_words(figure), speedup_,
                                         {area.x0, top, area.x1 - c.px(kNames), area.y1},
                                         {.interactive = false, .y_tick_width = 36, .title_height = 0});
    const ui::Press press = ui::press(c, "serve.length", plot.area, 2);
    const auto choose = [&](double length) {
        set_field(lab.fields(),
                  fmt::format("length={:.0f}",
                              std::clamp(std::round(length), 1.0, static_cast<double>(drafts.longest()))));
    };
    if (press.clicked || press.held)
        if (const auto mouse = ImGui::GetIO().MousePos; plot.area.contains({mouse.x, mouse.y}))
            choose(plot.x_at(mouse.x));
    if (const int arrows = press.focused ? ui::arrow_step() : 0; arrows != 0)
        choose(std::min(lab->params.length, drafts.longest()) + arrows);
    std::vector<ui::EndWords> ends;
    for (const DraftCurve& curve : drafts.curves) {
        const double last = curve.run.speedup(curve.run.longest(), lab->params.price().of(curve.bits));
        ends.push_back({plot.to_px(kLongestDraft, last).y,
                        {},
                        label_of(curve.format->id),
                        {curve.format->role, Tone::ink}});
    }
    ends.push_back({plot.to_px(1, 1).y, {}, "target alone", {Role::muted}});
    ui::end_words(c, std::move(ends), plot.area.x1 + c.px(10),
                  {area.x0, plot.area.y0, area.x1, plot.area.y1});
}

void DraftStage::draw_acceptance(Context& c, ServeLab& lab, Rect area, float top) {
    Figure figure = acceptance_figure(*lab->drafts);
    ui::region(c, "acceptance", area);
    ui::heading(c, figure.title, area);
    figure.title.clear();
    if (lab->drafts->curves.empty()) return;
    figure.x.visible = false;
    const ui::PlotResult plot =
        ui::plot(c, "serve.acceptance", figure, acceptance_, {area.x0, top, area.x1, area.y1 - c.px(44)},
                 {.interactive = false, .y_tick_width = 36, .title_height = 0});
    constexpr std::array<std::pair<double, std::string_view>, 8> kTicks = {
        {{1, "1"}, {2, "2"}, {3, "3"}, {4, "4"}, {5, "5"}, {6, "6"}, {7, "7"}, {8, "8"}}};
    ui::axis_below(c, plot, "", kTicks, area.x0);
    ui::text_mid(c, {plot.area.x1, plot.area.y1 + c.px(34)}, "position in the draft", {Role::muted}, kSans13,
                 Anchor::right);
}

void DraftStage::draw_round(Context& c, ServeLab& lab, Rect area) {
    const DraftRound& round = *lab->round;
    if (!round.known()) return;
    constexpr float kStep = 84;
    const float heading =
        ui::heading(c, round_title(round), {area.x0, area.y0, area.x1 - c.px(kStep + 16), area.y1});
    const ImVec2 cursor = ImGui::GetCursorScreenPos();
    ImGui::SetCursorScreenPos({area.x1 - c.px(kStep), area.y0 - c.px(6)});
    if (ui::button(c, "serve.step", "Step", {.key = ".", .width = kStep})) lab.act("round");
    ImGui::SetCursorScreenPos(cursor);

    constexpr float kHeads = 84;
    const std::size_t cells = round.proposed.size() + 1;
    const float cell = std::min(c.px(64), (area.width() - c.px(kHeads)) / static_cast<float>(cells));
    const float first = area.x0 + c.px(kHeads);
    const auto x = [&](std::size_t i) { return first + (static_cast<float>(i) + 0.5F) * cell; };
    const float pitch = c.px(24), text = heading + c.px(20), top = text + c.px(16);
    // The newest part of the text that has room.
    std::string context = round.context;
    ui::text_mid(c, {area.x0, text}, "text so far", {Role::muted}, kSans13);
    ui::text_mid(c, {first, text}, context, {Role::text}, kMono13);
    // The rule stands beside the cells where it has room.
    const float end = x(cells - 1) + cell / 2 + c.px(16);
    const bool has_rule = area.x1 - end > c.px(250);
    const std::array heads = {"token", "draft’s q", "target’s p", "kept"};
    for (std::size_t r = 0; r <= heads.size(); ++r) {
        const float y = top + static_cast<float>(r) * pitch;
        ui::hline(c, area.x0, has_rule ? end : area.x1, y, {Role::line});
        if (r < heads.size()) ui::text_mid(c, {area.x0, y + pitch / 2}, heads[r], {Role::muted}, kSans13);
    }
    const auto put = [&](std::size_t i, std::size_t row, const std::string& words, Color ink, Font font) {
        ui::text_mid(c, {x(i), top + (static_cast<float>(row) + 0.5F) * pitch}, words, ink, font,
                     Anchor::center);
    };
    for (std::size_t i = 0; i < round.proposed.size(); ++i) {
        const DraftToken& token = round.proposed[i];
        const Color ink{token.tried ? Role::text : Role::muted};
        put(i, 0, token.text, ink, token.accepted ? kMonoBold13 : kMono13);
        put(i, 1, two_digits(token.q), ink, kMono13);
        put(i, 2, two_digits(token.p), ink, kMono13);
        if (token.tried && !token.accepted)
            put(i, 3, "no", {Role::sat, Tone::ink}, kBold13);
        else
            put(i, 3, token.accepted ? "yes" : "–", ink, kSans13);
    }
    if (has_rule)
        ui::paragraph(
            c,
            "A token is kept with probability min(1, p / q). Instead of the first that is not kept one is "
            "drawn from what p has over q. So the text is the target’s, whatever the draft. A token is a "
            "character: · a space, ¶ a new line.",
            {end + c.px(24), top + c.px(8), area.x1, top + 4 * pitch});
    put(cells - 1, 0, round.next, {Role::text}, kMonoBold13);
    put(cells - 1, 3, "target", {Role::muted}, kSans13);
}

void DraftStage::draw_rows(Context& c, ServeLab& lab) {
    const Drafts& drafts = *lab->drafts;
    if (drafts.curves.empty()) return;
    const DraftRun& run = drafts.chosen()->run;
    const double cost = lab->params.price().of(drafts.chosen()->bits);
    const auto length = static_cast<std::size_t>(std::min(lab->params.length, drafts.longest()));
    ui::headline(c, "serve.result",
                 {fmt::format("{:.2f}×", run.speedup(length, cost)),
                  "with " + tokens_words(lab->params.length, drafts.longest()), run.speedup(length, cost)});
    const std::size_t best = run.best_length(cost);
    const Rect top = ui::next_area(c, 28 * 5);
    float y = top.y0;
    const auto row = [&](const char* words, std::string value) {
        y = ui::row(c, {words, std::move(value)}, {top.x0, y, top.x1, y}, c.px(28));
    };
    row("first token accepted", fmt::format("{:.1f} %", 100 * run.alpha));
    row("tokens per verification", fmt::format("{:.2f}", run.expected(length)));
    row(best == run.longest() ? "best of the lengths" : "best",
        fmt::format("{:.2f}× with {}", run.speedup(best, cost), best));
    row("a draft token costs", screen_number(cost, 3) + " passes");
    row("pays below", screen_number(run.break_even(length), 3) + " passes");
    ui::advance(top);
    const double target = lab->params.target == "bf16" ? 16 : 8;
    ui::wrapped(
        c,
        fmt::format(
            "Not counted: the cache’s bytes, launches, the memory of the draft ({:.0f} % of the target’s).",
            100 * drafts.chosen()->bits / target));
}

}  // namespace fp8lab::serve
