// The flow of one block: boxes on the residual stream, and four rows of numbers aligned to them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/transformer/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/stage/stage.h"

namespace fp8lab::transformer {
namespace {

using ui::Context;

constexpr std::array kRowNames = {"amax of x", "x lost %", "dy lost %", "sat. steps"};

void line(Context& c, Point from, Point to, Color color, float width = 1) {
    ImGui::GetWindowDrawList()->AddLine({from.x, from.y}, {to.x, to.y}, c.color(color),
                                        std::max(1.0F, std::round(c.px(width))));
}

void arrow_head(Context& c, Point tip, ui::Direction direction, Color color) {
    const float a = c.px(4), b = c.px(3);
    auto& list = *ImGui::GetWindowDrawList();
    if (direction == ui::Direction::right)
        list.AddTriangleFilled({tip.x, tip.y}, {tip.x - a, tip.y - b}, {tip.x - a, tip.y + b},
                               c.color(color));
    else if (direction == ui::Direction::down)
        list.AddTriangleFilled({tip.x, tip.y}, {tip.x - b, tip.y - a}, {tip.x + b, tip.y - a},
                               c.color(color));
    else
        list.AddTriangleFilled({tip.x, tip.y}, {tip.x - b, tip.y + a}, {tip.x + b, tip.y + a},
                               c.color(color));
}

void dashed(Context& c, float x0, float x1, float y, Color color) {
    const float on = c.px(7), off = c.px(4), thick = c.px(2);
    for (float x = x0; x < x1; x += on + off)
        ui::fill_rect(c, {x, y - thick / 2, std::min(x + on, x1), y + thick / 2}, color);
}

void plus(Context& c, Point at) {
    auto& list = *ImGui::GetWindowDrawList();
    list.AddCircleFilled({at.x, at.y}, c.px(9), c.color(Role::surface));
    list.AddCircle({at.x, at.y}, c.px(9), c.color(Role::muted), 0, c.px(1.5F));
    line(c, {at.x - c.px(4), at.y}, {at.x + c.px(4), at.y}, {Role::text}, 1.5F);
    line(c, {at.x, at.y - c.px(4)}, {at.x, at.y + c.px(4)}, {Role::text}, 1.5F);
}

std::string amax_text(double amax, bool wide) {
    if (std::isnan(amax)) return "–";
    if (wide && amax >= 1000 && amax < 1e7) return group_thousands(std::llround(amax));
    return amax >= 0.001 && amax < 1000 ? fmt::format("{:#.3g}", amax) : format_number(amax, 3, true);
}
std::string lost_text(double pct) {
    if (std::isnan(pct)) return "–";
    return pct == 0 ? "0" : pct < 0.05 ? "<0.1" : fmt::format("{:.1f}", pct);
}

}  // namespace

struct TransformerView::Layout {
    Rect area;
    float labels, pitch, box;  // widths
    float stream;              // y; 0: not drawn
    float boxes, box_height;   // top
    float rows, row_height;
    bool narrow;

    float x(std::size_t i) const {
        return area.x0 + labels + pitch * static_cast<float>(i) + (pitch - box) / 2;
    }
    float middle(std::size_t i) const { return x(i) + box / 2; }
    float box_mid() const { return boxes + box_height / 2; }
    float bottom() const { return rows + 4 * row_height; }
};

void TransformerView::block(Context& c, const std::string& title, Rect area, bool low) {
    const Rect head{area.x0, area.y0, area.x1, area.y0 + c.px(28)};
    const float room = area.width() - c.px(150);
    const auto lines = ui::wrap_lines(c, title, kBold15, room);
    const bool two = lines.size() > 1;
    if (!lines.empty())
        ui::text_mid(c, {area.x0, area.y0 + c.px(two ? 8 : 14)}, lines.front(), {Role::text}, kBold15);
    if (two) {
        const auto rest = static_cast<std::size_t>(lines[1].data() - title.data());
        ui::text_mid(c, {area.x0, area.y0 + c.px(27)},
                     ui::cut_end(c, std::string_view(title).substr(rest), kBold15, room), {Role::text},
                     kBold15);
    }
    ui::probe(c, "transformer.block.title", head, {}, title);
    block_switch(c, head);
    Layout l{};
    l.area = area;
    l.narrow = area.width() < c.px(700);
    l.labels = c.px(l.narrow ? 72 : 80);
    l.pitch = (area.width() - l.labels) / static_cast<float>(kOperations);
    l.box = l.pitch - c.px(l.narrow ? 5 : 12);
    l.stream = low ? 0 : area.y0 + c.px(58);
    l.boxes = area.y0 + c.px(!low ? 98 : two ? 42 : 36);
    l.box_height = c.px(low ? 40 : 46);
    l.rows = l.boxes + l.box_height + c.px(low ? 6 : 12);
    l.row_height = (area.y1 - l.rows) / 4;
    const std::vector<Operation> ops = lab_.operations();
    const auto chosen = std::ranges::find_if(ops, [&](const Operation& op) {
        const std::string& t = lab_.params().tensor;
        return !op.x.empty() && t.substr(0, t.rfind('.')) == op.x.substr(0, op.x.rfind('.'));
    });
    if (chosen != ops.end()) {
        const auto i = static_cast<std::size_t>(chosen - ops.begin());
        ui::fill_rect(c,
                      {l.x(i) - c.px(2), l.boxes - c.px(low ? 4 : 14), l.x(i) + l.box + c.px(2), l.bottom()},
                      {Role::field, Tone::line, 0.75F});
    }
    flow(c, l, ops);
    strips(c, l, ops);
    columns(c, l, ops);
}

void TransformerView::block_switch(Context& c, Rect row) {
    const std::array<std::string, kBlocks> labels = {"block 1", "2"};
    int block = lab_.block() - 1;
    const Rect place{row.x1 - c.px(130), row.y0 - c.px(2), row.x1, row.y0 + c.px(32)};
    if (!live::switch_at(c, "transformer.block", place, labels, block)) return;
    const std::string& tensor = lab_.params().tensor;
    const bool head = tensor.starts_with("head");
    select(head ? fmt::format("{}.down.x", block + 1) : fmt::format("{}{}", block + 1, tensor.substr(1)));
}

void TransformerView::flow(Context& c, const Layout& l, const std::vector<Operation>& ops) {
    const Color axis{Role::axis}, hurt{Role::sat};
    const Recipe& recipe = lab_.spec().arms.at(1);
    const bool bf16 = recipe.out == OutType::bf16;
    const Role wide = bf16 ? Role::bf16 : Role::truth;
    const float mid = l.box_mid();
    for (const std::size_t i : {1, 2, 3, 5, 6, 7}) {
        const Color ink = ops[i].hurt ? hurt : axis;
        line(c, {l.x(i - 1) + l.box, mid}, {l.x(i) - c.px(2), mid}, ink, ops[i].hurt ? 2 : 1);
        arrow_head(c, {l.x(i), mid}, ui::Direction::right, ink);
    }
    if (l.stream > 0) {
        const Rect embed{l.area.x0, l.stream - c.px(22), l.area.x0 + l.labels - c.px(6), l.stream + c.px(22)};
        ui::fill_rect(c, embed, {Role::raised}, 4);
        ui::stroke_rect(c, embed, {Role::line}, 4);
        ui::fill_rect(c, {embed.x0, embed.y0, embed.x0 + c.px(3), embed.y1}, {wide, Tone::fill});
        const float x = (embed.x0 + embed.x1) / 2;
        ui::text_mid(c, {x, l.stream - c.px(9)}, "embed", {Role::text}, kBold13, Anchor::center);
        ui::text_mid(c, {x, l.stream + c.px(9)}, bf16 ? "BF16" : "FP32", {wide, Tone::ink}, kMono13,
                     Anchor::center);
        dashed(c, embed.x1, l.middle(8), l.stream, {wide});
        ui::text_mid(c, {l.middle(2), l.stream - c.px(15)},
                     bf16 ? "residual stream, BF16" : "residual stream, FP32", {wide, Tone::ink}, kSans13,
                     Anchor::center);
        for (const std::size_t i : {0, 4, 8}) {
            line(c, {l.middle(i), l.stream}, {l.middle(i), l.boxes - c.px(3)}, axis);
            arrow_head(c, {l.middle(i), l.boxes}, ui::Direction::down, axis);
        }
        for (const std::size_t i : {3, 7}) {
            const float up = (l.x(i) + l.box + l.x(i + 1)) / 2;
            line(c, {l.x(i) + l.box, mid}, {up, mid}, axis);
            line(c, {up, mid}, {up, l.stream + c.px(9)}, axis);
            arrow_head(c, {up, l.stream + c.px(9)}, ui::Direction::up, axis);
            plus(c, {up, l.stream});
        }
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const Rect box{l.x(i), l.boxes, l.x(i) + l.box, l.boxes + l.box_height};
        ui::fill_rect(c, box, {Role::raised}, 4);
        ui::stroke_rect(c, box, {Role::line}, 4);
        ui::fill_rect(c, {box.x0, box.y0, box.x0 + c.px(3), box.y1}, {ops[i].role, Tone::fill});
        const float x = (box.x0 + box.x1) / 2 + c.px(1), name_y = mid - c.px(9);
        const bool fits = ui::text_width(c, ops[i].name, kBold13) <= l.box - c.px(6);
        ui::text_mid(c, {x, name_y}, fits ? ops[i].name : ops[i].short_name, {Role::text}, kBold13,
                     Anchor::center);
        ui::text_mid(c, {x, mid + c.px(9)}, ops[i].format, {ops[i].role, Tone::ink}, kMono13, Anchor::center);
    }
}

void TransformerView::strips(Context& c, const Layout& l, const std::vector<Operation>& ops) {
    auto& list = *ImGui::GetWindowDrawList();
    for (std::size_t row = 0; row < kRowNames.size(); ++row) {
        const float top = l.rows + l.row_height * static_cast<float>(row), y = top + l.row_height / 2;
        ui::hline(c, l.area.x0, l.area.x1, top, {Role::line});
        const float x = l.area.x0 + (row == 0 ? 0 : c.px(15)), r = c.px(4.5F);
        const Point mark{l.area.x0 + c.px(5), y};
        if (row == 3)
            list.AddTriangleFilled({mark.x, mark.y - r}, {mark.x - r, mark.y + r * 0.8F},
                                   {mark.x + r, mark.y + r * 0.8F}, c.color(Color{Role::sat, Tone::fill}));
        else if (row > 0)
            list.AddTriangleFilled({mark.x, mark.y + r}, {mark.x - r, mark.y - r * 0.8F},
                                   {mark.x + r, mark.y - r * 0.8F}, c.color(Color{Role::under, Tone::fill}));
        ui::text_mid(c, {x, y}, kRowNames.at(row), {Role::muted}, kSans13);
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Operation& op = ops[i];
            std::string words;
            Color ink{Role::text};
            Font font = kMono13;
            if (row == 0) {
                words = amax_text(op.amax, ui::text_width(c, "430 080", kMono13) < l.pitch - c.px(2));
                if (op.amax > 1e5) ink = {Role::sat, Tone::ink}, font = kMonoBold13;
            } else if (row == 3) {
                words = op.saturated_steps < 0 ? "–" : std::to_string(op.saturated_steps);
                if (op.saturated_steps > 0) ink = {Role::sat, Tone::ink};
            } else {
                const double lost = row == 1 ? op.x_lost_pct : op.dy_lost_pct;
                words = lost_text(lost);
                if (lost >= 1) {
                    font = kMonoBold13;
                    const float share = static_cast<float>(std::min(lost, 100.0) / 100), left = l.x(i);
                    const float bar = top + l.row_height - c.px(4);
                    ui::fill_rect(c, {left, bar, left + l.box * share, bar + c.px(2)},
                                  {Role::under, Tone::fill});
                }
            }
            if (words == "0" || words == "–") ink = {Role::muted};
            ui::text_mid(c, {l.middle(i), y}, words, ink, font, Anchor::center);
        }
    }
    ui::hline(c, l.area.x0, l.area.x1, l.bottom(), {Role::line});
}

// A box and the cells below it are one control; the row under the mouse says which tensor.
void TransformerView::columns(Context& c, const Layout& l, const std::vector<Operation>& ops) {
    const std::string& tensor = lab_.params().tensor;
    const std::string kind = tensor.substr(tensor.rfind('.') + 1);
    const auto of_kind = [&](const Operation& op, std::string_view wanted) {
        const bool gradient = wanted.starts_with("d");
        return gradient ? op.dy : wanted == "w" && !op.w.empty() ? op.w : op.x;
    };
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const Operation& op = ops[i];
        const Rect column{l.x(i), l.boxes, l.x(i) + l.box, l.bottom()};
        const Rect box{column.x0, column.y0, column.x1, l.boxes + l.box_height};
        const std::string name = fmt::format("transformer.box.{}", op.id);
        const bool chosen =
            !op.x.empty() && tensor.substr(0, tensor.rfind('.')) == op.x.substr(0, op.x.rfind('.'));
        if (chosen) ui::stroke_rect(c, ui::inset(box, -c.px(1)), {Role::text}, 5, 2);
        if (op.x.empty()) {
            ui::probe(c, name, box, {}, op.format);
            continue;
        }
        const ui::Press press = ui::press(c, name, column, 4);
        if (press.hovered && !chosen) ui::stroke_rect(c, box, {Role::axis}, 4);
        const float y = ImGui::GetIO().MousePos.y;
        const auto row = static_cast<int>(std::floor((y - l.rows) / l.row_height));
        const std::string at = !press.hovered ? kind : row == 0 || row == 1 ? "x" : row == 2 ? "dy" : kind;
        if (press.clicked) select(of_kind(op, at));
        if (press.focused) {
            const int step = ui::arrow_step();
            auto next = static_cast<std::ptrdiff_t>(i) + step;
            while (next >= 0 && next < std::ssize(ops) && ops[static_cast<std::size_t>(next)].x.empty())
                next += step;
            if (step != 0 && next >= 0 && next < std::ssize(ops)) {
                const Operation& to = ops[static_cast<std::size_t>(next)];
                select(of_kind(to, kind));
                c.focus.wanted = fmt::format("transformer.box.{}", to.id);
            }
        }
        if (!press.hovered) continue;
        const std::string shown = of_kind(op, at);
        const auto id = lab_.plan().find(shown);
        const auto& tensors = lab_.health()[1].tensors();
        if (!id || id->index >= tensors.size()) continue;
        const TensorHealth& h = tensors[id->index];
        ui::advance(column);
        ui::tooltip(
            c, shown,
            fmt::format(
                "{}. scale {}, amax {}, became 0 {} %, saturated in {} steps, SQNR {} dB, kurtosis {}.",
                op.format, screen_number(h.scale, 4), screen_number(h.amax, 4), screen_number(h.lost_pct, 3),
                h.saturated_steps, screen_number(h.sqnr_db, 3), screen_number(h.kurtosis, 3)));
    }
}

}  // namespace fp8lab::transformer
