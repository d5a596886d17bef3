// The part "hop": the path of a token, and the error of each kind of path as a row with two dots.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/experts/model_casts.h"
#include "labs/experts/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::experts {
namespace {

using ui::Context;

constexpr float kPath = 76, kLowPath = 64;

Color ink_of_cast(const std::string& recipe) { return {role_of(recipe), Tone::ink}; }

// A box with a line of words and a cast below it.
void draw_box(Context& c, Rect box, const std::string& words, const std::string& cast, Color ink) {
    ui::fill_rect(c, box, {Role::raised}, 6);
    ui::stroke_rect(c, box, {Role::line}, 6);
    const float x = (box.x0 + box.x1) / 2, y = (box.y0 + box.y1) / 2;
    ui::text_mid(c, {x, y - c.px(10)}, words, {Role::muted}, kSans13, Anchor::center);
    ui::text_mid(c, {x, y + c.px(10)}, cast, ink, kBold13, Anchor::center);
}

// A token's row, the way out, the GEMMs, the way back, the sum.
void draw_path(Context& c, const Hop& hop, Rect area) {
    const std::array<std::pair<std::string, std::string>, 3> boxes = {
        {{"sent out in", hop.send}, {"GEMMs in", hop.gemm}, {"sent back in", hop.back}}};
    const float gap = c.px(26), ends = c.px(52), y = (area.y0 + area.y1) / 2;
    const float wide = (area.width() - 2 * ends - 4 * gap) / 3;
    const auto arrow = [&](float x0, float x1) {
        ui::fill_rect(c, {x0 + c.px(4), y - ui::hairline(c) / 2, x1 - c.px(6), y + ui::hairline(c) / 2},
                      {Role::axis});
        ui::chevron(c, {x1 - c.px(8), y}, ui::Direction::right, {Role::axis});
    };
    ui::text_mid(c, {area.x0, y}, "token", {Role::text}, kSans13);
    float x = area.x0 + ends;
    for (const auto& [words, cast] : boxes) {
        arrow(x, x + gap);
        x += gap;
        draw_box(c, {x, area.y0 + c.px(6), x + wide, area.y1 - c.px(6)}, words, label_of(cast),
                 ink_of_cast(cast));
        x += wide;
    }
    arrow(x, x + gap);
    ui::text_mid(c, {area.x1, y}, "sum", {Role::text}, kSans13, Anchor::right);
}

}  // namespace

void MixtureView::draw_hop(Context& c, Rect area) {
    const Hops& hops = *lab_->hops;
    const float heading = ui::heading(c, hop_title(hops), area);
    const float path = c.px(area.height() < c.px(560) ? kLowPath : kPath);
    draw_path(c, lab_->hop(), {area.x0, heading + c.px(6), area.x1, heading + c.px(6) + path});
    if (hops.rows.empty()) return;
    draw_hop_table(c, {area.x0, heading + path + c.px(20), area.x1, area.y1});
}

// A press on the words of a row chooses it.
void MixtureView::draw_hop_table(Context& c, Rect area) {
    const Hops& hops = *lab_->hops;
    ui::region(c, "hop", area);
    const bool narrow = area.width() < c.px(660);
    const auto count = static_cast<float>(hops.rows.size());
    // Left edges of the casts, right edges of the errors.
    const std::array<float, 3> casts = {area.x0, area.x0 + c.px(narrow ? 66 : 82),
                                        area.x0 + c.px(narrow ? 232 : 262)};
    const float first = casts[2] + c.px(narrow ? 200 : 216), second = first + c.px(narrow ? 56 : 66);
    const float head = area.y0 + c.px(10);
    const std::array heads = {"GEMMs", "sent out in", "sent back in"};
    for (std::size_t i = 0; i < heads.size(); ++i)
        ui::text_mid(c, {casts[i], head}, heads[i], {Role::muted}, kSans13);
    ui::text_mid(c, {first, head}, "block 1", {Role::muted}, kSans13, Anchor::right);
    ui::text_mid(c, {second, head}, "block 2", {Role::muted}, kSans13, Anchor::right);
    const float y0 = area.y0 + c.px(24);
    float pitch = std::min(c.px(66), (area.height() - c.px(24 + 30 + 44)) / count), y = y0;
    if (area.x1 - second > c.px(120)) {
        Figure figure = without_title(hop_figure(hops, false));
        figure.x.label.clear();
        const ui::PlotResult plot = ui::plot(
            c, "experts.hop", figure, upper_, {second + c.px(20), y0, area.x1, y0 + pitch * count + c.px(26)},
            {.interactive = false, .crosshair = false, .y_tick_width = 8, .title_height = 0});
        y = plot.area.y0, pitch = plot.area.height() / count;  // rows beside their dots
    }
    const float bottom = y + pitch * count;
    for (const HopRow& row : hops.rows) {
        const bool chosen = row.hop == lab_->hop();
        const Rect line{area.x0 - c.px(6), y, second + c.px(6), y + pitch};
        const float middle = y + pitch / 2;
        if (ui::press_row(c, fmt::format("experts.hop.{}.{}.{}", row.hop.gemm, row.hop.send, row.hop.back),
                          line, chosen)) {
            set("gemm=" + row.hop.gemm);
            set("send=" + row.hop.send);
            set("back=" + row.hop.back);
        }
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        const std::array<std::string, 3> names = {row.hop.gemm, row.hop.send, row.hop.back};
        for (std::size_t i = 0; i < names.size(); ++i)
            ui::text_mid(c, {casts[i], middle}, label_of(names[i]), ink_of_cast(names[i]),
                         chosen ? kBold13 : kSans13);
        const Font font = chosen ? kMonoBold13 : kMono13;
        ui::text_mid(c, {first, middle}, fmt::format("{:.2f}", row.error_pct.front()), {Role::text}, font,
                     Anchor::right);
        ui::text_mid(c, {second, middle}, fmt::format("{:.2f}", row.error_pct.back()), {Role::text}, font,
                     Anchor::right);
        y += pitch;
    }
    ui::hline(c, area.x0, area.x1, bottom, {Role::line});
    ui::note(c,
             fmt::format("Error of the layer’s output in % (relative L2), against BF16 everywhere with the "
                         "same choices: ring block 1, disc block 2. Model of seed {}.",
                         lab_->params.seed),
             {area.x0, bottom + c.px(30), area.x1, area.y1 + c.px(8)});
}

void MixtureView::draw_hop_rows(Context& c) {
    const Hops& hops = *lab_->hops;
    const HopRow* row = hops.chosen();
    if (!row) return;
    const double added = hops.added_pct();
    ui::headline(c, "experts.result",
                 {added == 0 ? "0 %" : fmt::format("{:.2f} %", added), "added to the error", added});
    const Rect top = ui::next_area(c, 28 * 3);
    float y = top.y0;
    const auto line = [&](const std::string& words, std::string value) {
        y = ui::row(c, {words, std::move(value)}, {top.x0, y, top.x1, y}, c.px(28));
    };
    const auto both = [](const std::vector<double>& pct) {
        return fmt::format("{:.2f}, {:.2f}", pct.front(), pct.back());
    };
    line("error %, blocks 1 and 2", "");
    line("the GEMMs alone", both(hops.gemm_pct));
    line("with the hop", both(row->error_pct));
    ui::advance(top);
}

}  // namespace fp8lab::experts
