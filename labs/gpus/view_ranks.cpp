// The rows of GPUs: what each reads of w2, or what a bad batch did to its x1.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/gpus/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::gpus {
namespace {

using ui::Context;

constexpr std::size_t kPage = 4;  // rows

struct Column {
    float right;  // share of the width
    std::string_view words, term;
};

bool is_narrow(const Context& c, Rect area) { return area.width() < c.px(660); }

std::array<Column, 5> weight_columns(bool narrow) {
    return {Column{narrow ? 0.2F : 0.18F, "amax of its w2", "amax"},
            Column{narrow ? 0.32F : 0.31F, "scale", "scale"},
            Column{narrow ? 0.53F : 0.47F, "bytes gathered", "all-gather"},
            Column{narrow ? 0.74F : 0.63F, "values read", "scale-inv"},
            Column{narrow ? 0.86F : 0.77F, "off by %", "relative-l2"}};
}
std::array<Column, 5> bad_columns(bool past) {
    return {Column{0.22F, past ? "loss, next 5 steps" : "loss", "loss"},
            Column{0.44F, past ? "amax of x1, step 1 000" : "amax of x1", "amax"},
            Column{0.59F, past ? "scale after" : "scale of x1", "scale"},
            Column{0.8F, past ? "x1 lost %, 15 steps" : "x1 lost %", "underflow"},
            Column{1, "weights", "non-finite"}};
}
std::array<Column, 3> drift_columns() {
    return {Column{0.32F, "same random numbers", "stochastic-rounding"},
            Column{0.58F, "its own", "stochastic-rounding"}, Column{0.77F, "from GPU 0 by %", "relative-l2"}};
}

void draw_heads(Context& c, Rect area, float y, std::span<const Column> columns) {
    ui::head(c, {area.x0, y}, "GPU", "rank", Anchor::left);
    for (const Column& column : columns)
        ui::head(c, {area.x0 + column.right * area.width(), y}, column.words, column.term);
}

void draw_cell(Context& c, Rect area, const Column& column, float y, const std::string& words,
               Color ink = {Role::text}) {
    ui::text_mid(c, {area.x0 + column.right * area.width(), y}, words, ink, kMono13, Anchor::right);
}

float row_height(const Context& c, Rect area, std::size_t rows) {
    const float left = area.height() - c.px(26 + 22);
    return std::clamp(left / static_cast<float>(std::max<std::size_t>(rows, 1)), c.px(22), c.px(40));
}

// A distance as a bar, and a line where E4M3 alone is (0: none).
void draw_bar(Context& c, Rect bar, double off, double alone, double most) {
    ui::fill_rect(c, bar, {Role::grid});
    const auto x_of = [&](double v) {
        return bar.x0 + bar.width() * static_cast<float>(std::min(1.0, v / most));
    };
    ui::fill_rect(c, {bar.x0, bar.y0, x_of(off), bar.y1},
                  {off > 2 * alone ? Role::sat : Role::under, Tone::fill});
    if (alone == 0) return;
    const float x = std::round(x_of(alone));
    ui::fill_rect(c, {x, bar.y0 - c.px(5), x + c.px(1.5F), bar.y1 + c.px(5)}, {Role::text});
}

}  // namespace

void GpusView::draw_ranks(Context& c, const std::string& title, Rect area) {
    ui::region(c, "ranks", area);
    const Outcome& o = lab_->outcome;
    const float under = ui::heading(c, title, {area.x0, area.y0, area.x1 - c.px(280), area.y1});
    ui::probe(c, "gpus.ranks_title", {area.x0, area.y0, area.x1, under}, {}, title);
    const Rect rest{area.x0, std::max(under + c.px(4), area.y0 + c.px(32)), area.x1, area.y1};
    if (!lab_->problem.empty()) {
        ui::paragraph(c, lab_->problem, rest);
        return;
    }
    const bool bad = lab_->params.has_bad();
    if (!bad && !lab_->drift->copies.empty()) return draw_drift(c, rest, area);
    if (o.rows.empty() || (!o.has_states && !bad)) {
        if (lab_->params.ranks() > 1) return draw_empty(c, rest);
        ui::paragraph(
            c, "With 2 GPUs or more each owns some rows of every weight and sends them to the others.", rest);
        return;
    }
    const auto [first, last] = draw_pages(c, area, o.rows.size());
    const float end = bad ? draw_bad(c, rest, first, last) : draw_weights(c, rest, first, last);
    const std::string foot = !o.stopped.empty() ? o.stopped + "."
                             : bad ? "The batch of rank 2 is wrong in step 1 000 alone; its amax stays in "
                                     "the histories for 16 steps."
                             : o.values_equal
                                 ? "Same bytes and same scales: every GPU computes with the same weights."
                                 : "A check of the bytes passes on every GPU. Their scale must travel with "
                                   "them, or be the same everywhere.";
    ui::note(c, foot, {area.x0, end + c.px(4), area.x1, area.y1});
}

// What a training will fill.
void GpusView::draw_empty(Context& c, Rect area) {
    const auto rows = std::min<std::size_t>(kPage, static_cast<std::size_t>(lab_->params.ranks()));
    const float pitch = row_height(c, area, rows);
    float y = area.y0 + c.px(22);
    const auto draw = [&](std::span<const Column> columns) {
        draw_heads(c, area, area.y0 + c.px(10), columns);
        for (std::size_t i = 0; i < rows; ++i, y += pitch) {
            ui::hline(c, area.x0, area.x1, y, {Role::line});
            ui::text_mid(c, {area.x0, y + pitch / 2}, std::to_string(i), {Role::muted}, kMonoBold13);
            for (const Column& column : columns)
                draw_cell(c, area, column, y + pitch / 2, "–", {Role::muted});
        }
    };
    if (lab_->params.has_bad())
        draw(bad_columns(false));
    else if (lab_->params.sharded())
        draw(weight_columns(is_narrow(c, area)));
    else
        draw(drift_columns());
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    ui::note(c,
             lab_->params.sharded()
                 ? "A training of 2 000 steps takes a few seconds. It does what the panel says with up to 8 "
                   "ranks, "
                   "exactly."
                 : "Run shows what happens to copies of the weights in E4M3 that every GPU rounds itself.",
             {area.x0, y + c.px(4), area.x1, area.y1});
}

// The rows that are shown of `rows`.
std::pair<std::size_t, std::size_t> GpusView::draw_pages(Context& c, Rect area, std::size_t rows) {
    if (rows <= kPage) {
        page_ = 0;
    } else {
        const std::array<std::string, 2> pages = {"0–3", "4–7"};
        ui::corner_switch(c, "gpus.page", {area.x1 - c.px(188), area.y0 - c.px(4)}, 84, pages, page_);
    }
    const std::size_t first = static_cast<std::size_t>(page_) * kPage;
    return {first, std::min(rows, first + kPage)};
}

void GpusView::draw_drift(Context& c, Rect area, Rect whole) {
    const Drift& drift = *lab_->drift;
    const auto [first, last] = draw_pages(c, whole, drift.copies.size());
    const std::array columns = drift_columns();
    draw_heads(c, area, area.y0 + c.px(10), columns);
    const float bars = area.x0 + 0.8F * area.width(), pitch = row_height(c, area, last - first);
    const double most = std::max(5.0, drift.most_own_pct());
    float y = area.y0 + c.px(22);
    for (std::size_t i = first; i < last; ++i, y += pitch) {
        const DriftCopy& copy = drift.copies[i];
        const float middle = y + pitch / 2;
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        ui::text_mid(c, {area.x0, middle}, std::to_string(i), {Role::text}, kMonoBold13);
        draw_cell(c, area, columns[0], middle, fmt::format("{:08x}", copy.same_crc32), {Role::muted});
        draw_cell(c, area, columns[1], middle, fmt::format("{:08x}", copy.own_crc32),
                  copy.own_crc32 == drift.copies[0].own_crc32 ? Color{Role::muted} : Color{Role::text});
        draw_cell(c, area, columns[2], middle, i == 0 ? "0" : pct(copy.own_pct),
                  copy.own_pct > 0 ? Color{Role::sat, Tone::ink} : Color{Role::text});
        draw_bar(c, {bars, middle - c.px(4), area.x1, middle + c.px(4)}, copy.own_pct, 0, most);
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    ui::note(
        c,
        fmt::format(
            "Every GPU keeps E4M3 weights, rounded stochastically. Loss with its own numbers against the "
            "same ones: {:+.1f} %.",
            100 * (drift.own_tail / drift.same_tail - 1)),
        {area.x0, y + c.px(4), area.x1, whole.y1});
}

float GpusView::draw_weights(Context& c, Rect area, std::size_t first, std::size_t last) {
    const Outcome& o = lab_->outcome;
    const bool narrow = is_narrow(c, area);
    const std::array columns = weight_columns(narrow);
    draw_heads(c, area, area.y0 + c.px(10), columns);
    const float bars = area.x0 + (narrow ? 0.88F : 0.8F) * area.width(),
                pitch = row_height(c, area, last - first);
    double most = 5;
    for (const RankRow& row : o.rows) most = std::max(most, row.off_pct);
    const std::string alone = fmt::format("E4M3 alone: {} %", pct(o.alone_pct));
    if (bars + ui::text_width(c, alone, kSans13) <= area.x1)
        ui::text_mid(c, {bars, area.y0 + c.px(10)}, alone, {Role::muted}, kSans13);
    float y = area.y0 + c.px(22);
    for (std::size_t i = first; i < last; ++i, y += pitch) {
        const RankRow& row = o.rows[i];
        const float middle = y + pitch / 2;
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        ui::text_mid(c, {area.x0, middle}, std::to_string(row.rank), {Role::text}, kMonoBold13);
        draw_cell(c, area, columns[0], middle, fmt::format("{:.3f}", row.amax));
        draw_cell(c, area, columns[1], middle, fmt::format("{:.0f}", row.scale));
        draw_cell(c, area, columns[2], middle, fmt::format("{:08x}", row.bytes), {Role::muted});
        draw_cell(c, area, columns[3], middle, fmt::format("{:08x}", row.values),
                  row.values == o.rows[0].values ? Color{Role::muted} : Color{Role::text});
        const bool off = row.off_pct > 2 * o.alone_pct;
        draw_cell(c, area, columns[4], middle, pct(row.off_pct),
                  off ? Color{Role::sat, Tone::ink} : Color{Role::text});
        draw_bar(c, {bars, middle - c.px(4), area.x1, middle + c.px(4)}, row.off_pct, o.alone_pct, most);
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    return y;
}

float GpusView::draw_bad(Context& c, Rect area, std::size_t first, std::size_t last) {
    const Outcome& o = lab_->outcome;
    const bool past = o.step > kBadStep + 1;
    const std::array columns = bad_columns(past);
    draw_heads(c, area, area.y0 + c.px(10), columns);
    const float pitch = row_height(c, area, last - first);
    float y = area.y0 + c.px(22);
    const auto number = [](double v, int digits) {
        return std::isfinite(v) ? screen_number(v, digits) : std::string("–");
    };
    for (std::size_t i = first; i < last; ++i, y += pitch) {
        const RankRow& row = o.rows[i];
        const float middle = y + pitch / 2;
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        ui::text_mid(c, {area.x0, middle}, std::to_string(row.rank), {Role::text}, kMonoBold13);
        draw_cell(c, area, columns[0], middle, number(row.loss, 3));
        draw_cell(c, area, columns[1], middle, number(row.amax, 3));
        draw_cell(c, area, columns[2], middle, number(row.scale, 3));
        const bool lost = row.lost_pct > 5;
        draw_cell(c, area, columns[3], middle, number(row.lost_pct, 3),
                  lost ? Color{Role::sat, Tone::ink} : Color{Role::text});
        draw_cell(c, area, columns[4], middle, row.finite ? "finite" : "not finite",
                  row.finite ? Color{Role::muted} : Color{Role::sat, Tone::ink});
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    return y;
}

}  // namespace fp8lab::gpus
