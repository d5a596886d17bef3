// The lanes of a step: compute and network of BF16 above those of FP8.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/gpus/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::gpus {
namespace {

using ui::Context;

// A round number above `ms` and the distance of its ticks.
struct Axis {
    double most = 1, tick = 1;
};
Axis axis_above(double ms) {
    Axis out{.most = 1, .tick = std::pow(10, std::floor(std::log10(ms)))};
    if (ms / out.tick < 2)
        out.tick /= 5;
    else if (ms / out.tick < 5)
        out.tick /= 2;
    else if (ms / out.tick >= 8)
        out.tick *= 2;
    out.most = std::ceil(ms / out.tick) * out.tick;
    return out;
}

struct Lanes {
    std::string_view name;
    const StepTimes& step;
    const StepSpec& spec;
    Role role;     // of compute
    Role weights;  // of the format in which weights travel
    std::string_view weights_name, sum_name;
};

struct Frame {
    float x0, per_ms, right, compute, network, between;  // px
    float at(double ms) const { return x0 + per_ms * static_cast<float>(ms); }
};

Color fill_of(const Lanes& lanes, const Piece& piece) {
    if (piece.what == "AdamW") return {Role::text};
    const Role role = !piece.network                      ? lanes.role
                      : piece.what.starts_with("weights") ? lanes.weights
                                                          : Role::bf16;
    return {role, Tone::fill};
}

// The more legible of the two.
Color ink_on(const Context& c, Color fill) {
    const Rgba ground = rgba(c.theme, fill);
    const double text = contrast_ratio(rgba(c.theme, {Role::text}), ground),
                 surface = contrast_ratio(rgba(c.theme, {Role::surface}), ground);
    return {text >= surface ? Role::text : Role::surface};
}

std::string tooltip_of(const Piece& piece) {
    std::string out =
        fmt::format("{:.2f} to {:.2f} ms, {:.3f} ms.", piece.from, piece.to, piece.to - piece.from);
    if (piece.bytes > 0)
        out += fmt::format(" {:.0f} MB, {:.0f} GB/s.", piece.bytes / 1e6,
                           piece.bytes / 1e6 / (piece.to - piece.from));
    return out + " Simulated.";
}

void draw_pieces(Context& c, const Lanes& lanes, const std::vector<Piece>& pieces, const Frame& frame,
                 float y) {
    const float below = y + frame.compute + frame.between;
    for (const Piece& piece : pieces) {
        if (piece.to <= piece.from) continue;
        const float x0 = frame.at(piece.from), x1 = std::max(frame.at(piece.to) - c.px(1), x0 + c.px(1.5F));
        const Rect box =
            piece.network ? Rect{x0, below, x1, below + frame.network} : Rect{x0, y, x1, y + frame.compute};
        const Color fill = fill_of(lanes, piece);
        ui::fill_rect(c, box, fill);
        if (fill.role == Role::e4m3) ui::stroke_rect(c, box, {Role::e4m3, Tone::line});
        const std::string words = fmt::format("{} {:.2f}", piece.what, piece.to - piece.from);
        if (!piece.network && piece.what != "AdamW" &&
            ui::text_width(c, words, kBold13) + c.px(8) < box.width())
            ui::text_mid(c, {(x0 + x1) / 2, (box.y0 + box.y1) / 2}, words, ink_on(c, fill), kBold13,
                         Anchor::center);
        ui::advance(box);
        ui::tooltip(c, fmt::format("{}: {}", lanes.name, piece.what), tooltip_of(piece));
    }
}

// Names beside pieces of the network lane, where they cover none.
void name_pieces(Context& c, const Lanes& lanes, const std::vector<Piece>& pieces, const Frame& frame,
                 float y, const std::string& note) {
    const float middle = y + frame.compute + frame.between + frame.network / 2;
    float free_from = frame.x0, free_to = frame.right, end = frame.at(lanes.step.total());
    for (const Piece& piece : pieces) {
        if (!piece.network || piece.to <= piece.from) continue;
        if (piece.from == 0)
            free_from = frame.at(piece.to) + c.px(8);
        else
            free_to = std::min(free_to, frame.at(piece.from) - c.px(8));
        end = std::max(end, frame.at(piece.to));
    }
    const bool behind = free_from > frame.x0;
    const std::string weights = fmt::format("weights, {}", lanes.weights_name),
                      sums = fmt::format("gradients, {}", lanes.sum_name);
    const float of_weights = behind ? ui::text_width(c, weights, kSans13) : 0,
                of_sums = ui::text_width(c, sums, kSans13);
    if (behind && free_from + of_weights < free_to)
        ui::text_mid(c, {free_from, middle}, weights, {lanes.weights, Tone::ink}, kSans13);
    if (free_from + of_weights + of_sums + c.px(12) < free_to && free_to < frame.right)
        ui::text_mid(c, {free_to, middle}, sums, {Role::bf16, Tone::ink}, kSans13, Anchor::right);
    if (!note.empty() && end + c.px(8) + ui::text_width(c, note, kSans13) < frame.right)
        ui::text_mid(c, {end + c.px(8), middle}, note, {Role::muted}, kSans13);
}

void draw_lanes(Context& c, const Lanes& lanes, const Frame& frame, float left, float y,
                const std::string& note) {
    const std::vector<Piece> pieces = pieces_of(lanes.step, lanes.spec);
    ui::text_mid(c, {left, y + frame.compute / 2}, lanes.name, {lanes.role, Tone::ink}, kBold13);
    ui::text_mid(c, {left, y + frame.compute + frame.between + frame.network / 2}, "network", {Role::muted},
                 kSans13);
    draw_pieces(c, lanes, pieces, frame, y);
    name_pieces(c, lanes, pieces, frame, y, note);
    const float x = std::round(frame.at(lanes.step.total()));
    ui::fill_rect(
        c, {x, y - c.px(4), x + ui::hairline(c), y + frame.compute + frame.between + frame.network + c.px(2)},
        {Role::axis});
    ui::text_mid(c, {x + c.px(8), y + frame.compute / 2}, fmt::format("{:.2f}", lanes.step.total()),
                 {Role::text}, {Face::mono, 15});
}

void draw_axis(Context& c, const Frame& frame, const Axis& axis, float y) {
    ui::hline(c, frame.x0, frame.at(axis.most), y, {Role::axis});
    for (int i = 0; i * axis.tick <= axis.most * (1 + 1e-9); ++i) {
        const double ms = i * axis.tick;
        const bool last = ms + axis.tick > axis.most * (1 + 1e-9);
        const std::string words = screen_number(ms, 3) + (last ? " ms" : "");
        const float x = frame.at(ms);
        ui::text_mid(c, {x, y + c.px(12)}, words, {Role::muted}, kMono13,
                     i == 0 ? Anchor::left
                     : last ? Anchor::right
                            : Anchor::center);
    }
}

}  // namespace

void GpusView::draw_step(Context& c, const std::string& title, Rect area) {
    ui::region(c, "step", area);
    const Times& times = *lab_->times;
    const std::string from = times_words(lab_->params, times, *lab_->recorded_on_several);
    const float room = area.width() - ui::text_width(c, title, kBold15) - c.px(16);
    if (ui::text_width(c, from, kSans13) <= room)
        ui::text_mid(c, {area.x1, area.y0 + c.px(10)}, from, {Role::muted}, kSans13, Anchor::right);
    const float top = ui::heading(c, title, area) + c.px(6);
    ui::probe(c, "gpus.step_title", {area.x0, area.y0, area.x1, top}, {}, title);
    if (!times.source.known()) return;
    const Params& p = lab_->params;
    StepSpec bf16 = p.step_spec();
    bf16.gather_bytes = 2;
    const StepSpec fp8 = p.step_spec();
    const Axis axis = axis_above(std::max(times.bf16.total(), times.fp8.total()));
    const bool low = area.height() < c.px(160);
    Frame frame{.x0 = area.x0 + c.px(88),
                .per_ms = 0,
                .right = area.x1,
                .compute = c.px(low ? 20 : 26),
                .network = c.px(low ? 13 : 16),
                .between = c.px(4)};
    // The number behind the longer step has room.
    const double longest = std::max(times.bf16.total(), times.fp8.total());
    const float number = c.px(8) + ui::text_width(c, "00.00", {Face::mono, 15}), whole = area.x1 - frame.x0;
    frame.per_ms =
        std::min(whole / static_cast<float>(axis.most), (whole - number) / static_cast<float>(longest));
    const std::string sum = sum_label(p.sum), sum_format = sum.substr(0, sum.find(' '));
    const float pitch = frame.compute + frame.network + frame.between + c.px(low ? 8 : 16);
    const bool e4m3 = fp8.gather_bytes == 1;
    const std::string share = p.world() == 1 || !p.sharded()
                                  ? "all weights"
                                  : fmt::format("1/{} of the weights", group_thousands(p.world()));
    draw_lanes(c, {"BF16", times.bf16, bf16, Role::bf16, Role::bf16, "BF16", sum_format}, frame, area.x0, top,
               "");
    draw_lanes(c,
               {"FP8", times.fp8, fp8, Role::e4m3, e4m3 ? Role::e4m3 : Role::bf16, e4m3 ? "E4M3" : "BF16",
                sum_format},
               frame, area.x0, top + pitch,
               fmt::format("{}: AdamW on {}", c.theme == Theme::dark ? "white" : "black", share));
    draw_axis(c, frame, axis, top + 2 * pitch - c.px(low ? 4 : 8));
}

}  // namespace fp8lab::gpus
