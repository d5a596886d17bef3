// The marked block of L12 in numbers: how its scale is made, and what becomes of its elements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/four/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::four {
namespace {

using ui::Context;

struct Piece {
    std::string words;
    Color ink;
    Font font = kSans13;
};

// Pieces side by side from x on; returns where they end. Draws nothing without `at`.
float draw_pieces(Context& c, std::span<const Piece> pieces, float x, std::optional<float> y) {
    for (const Piece& piece : pieces) {
        if (y) ui::text_mid(c, {x, *y}, piece.words, piece.ink, piece.font);
        x += ui::text_width(c, piece.words, piece.font) + c.px(4);
    }
    return x;
}

// Two decimals; what they cannot show has one digit and its power.
std::string two(double value, double amax) {
    const double size = std::fabs(value);
    const std::string digits = amax < 0.05 || size >= 1e4 ? fmt::format("{:.0e}", size)
                               : size >= 100              ? fmt::format("{:.0f}", size)
                                                          : fmt::format("{:.2f}", size);
    return value < 0 ? "−" + digits : digits;
}
std::string short_number(double value) { return screen_number(value, 4); }

// The line that makes the scale, in groups that can be left out from the end.
std::vector<std::vector<Piece>> scale_line(const Outcome& o, const Marked& m) {
    const auto mono = [](std::string words, Color ink = {Role::text}) {
        return Piece{std::move(words), ink, kMono13};
    };
    const auto plain = [](std::string words) { return Piece{std::move(words), {Role::muted}}; };
    const Color block{Role::block, Tone::ink}, sat{Role::sat, Tone::ink};
    if (m.unit == 0) return {{plain("its scale is 0: every element becomes 0")}};
    std::vector<std::vector<Piece>> out;
    const std::string amax = short_number(static_cast<double>(m.amax));
    if (o.params.nvfp4()) {
        const double top = o.params.target == "6" ? 448 : 256;
        const double factor = m.target == 6 ? top : top * 1.5;  // 6 / 4 of it
        out.push_back({mono(amax), plain("×"), mono(short_number(factor)), plain("/"),
                       mono(short_number(static_cast<double>(o.cast[o.shown()].tensor_amax))), plain("="),
                       mono(short_number(m.wanted))});
        out.push_back({plain("E4M3 rounds to"), mono(short_number(static_cast<double>(m.scale)), block)});
    } else {
        out.push_back({mono(amax), plain("/ 6 ="), mono(short_number(m.wanted))});
        out.push_back({plain("rounds up to"), mono(power_of_two(static_cast<int>(m.code) - 127), block)});
    }
    out.push_back({plain("one unit is"), mono(short_number(static_cast<double>(m.unit)))});
    const bool clips = m.top > 6 * (1 + 1e-6);
    std::vector<Piece> last = {plain("its amax needs"),
                               mono(fmt::format("{:.2f}", m.top), clips ? sat : Color{Role::text})};
    if (clips) {
        last.push_back(mono("> 6", sat));
    } else if (m.top < 5.995) {
        last.push_back(plain("below 6: the top is unused"));
    }
    out.push_back(std::move(last));
    return out;
}

// At the right as many groups as have room, the last ones first to stay.
void draw_scale(Context& c, const Outcome& o, const Marked& m, Rect area) {
    const float y = area.y0 + c.px(14);
    ui::text_mid(c, {area.x0, y}, "Marked block", {Role::text}, kBold15);
    const std::vector<std::vector<Piece>> line = scale_line(o, m);
    const float room = area.width() - ui::text_width(c, "Marked block", kBold15) - c.px(16), apart = c.px(8);
    float width = 0;
    std::size_t first = line.size();
    while (first > 0) {
        const float next = draw_pieces(c, line[first - 1], 0, {}) + apart;
        if (width + next > room) break;
        width += next;
        --first;
    }
    float x = area.x1 - width + apart;
    for (std::size_t i = first; i < line.size(); ++i) x = draw_pieces(c, line[i], x, y) + apart;
    std::string all;
    for (const auto& group : line)
        for (const Piece& piece : group) all += piece.words + " ";
    ui::probe(c, "four.block", area, {}, all);
}

// An element: itself, its code, what comes back.
std::array<Piece, 3> element_cells(const Outcome& o, const Marked& m, std::size_t element) {
    const float x = o.tensor[o.shown()].values[element];
    const BlockCast& cast = o.cast[o.shown()];
    const auto amax = static_cast<double>(m.amax), back = static_cast<double>(cast.back[element]);
    const double code = m.unit > 0 ? std::round(2 * back / static_cast<double>(m.unit)) / 2 : 0;
    const Piece zero{"0", {Role::muted}, kMono13};
    return {{{two(static_cast<double>(x), amax), {Role::text}, kMono13},
             code == 0 ? zero
                       : Piece{screen_number(code),
                               {cast.clips(x, m.block) ? Role::sat : Role::block, Tone::ink},
                               kMono13},
             code == 0 ? zero : Piece{two(back, amax), {Role::text}, kMono13}}};
}

}  // namespace

void FourView::draw_block(Context& c, Rect area) {
    const Outcome& o = *lab_->outcome;
    if (!o.problem.empty()) return;
    const Marked m = lab_->marked();
    const Rect head{area.x0, area.y0, area.x1, area.y0 + c.px(28)};
    draw_scale(c, o, m, head);
    draw_elements(c, m, {area.x0, head.y1, area.x1, area.y1});
    follow_pointer(m);
}

// As many columns as fit: a whole block, or the half with the pointer or the amax.
void FourView::draw_elements(Context& c, const Marked& m, Rect area) {
    const Outcome& o = *lab_->outcome;
    const Tensor& tensor = o.tensor[o.shown()];
    const float names = c.px(46), least = c.px(45), pitch = area.height() / 3;
    const std::size_t begins = m.row * tensor.cols + m.col;
    const auto fit = static_cast<std::size_t>(std::max(1.0F, (area.width() - names) / least));
    const std::size_t shown = fit >= kBlock ? std::min(kBlock, m.width) : std::min<std::size_t>(8, m.width);
    const auto values = std::span(tensor.values).subspan(begins, m.width);
    auto at = static_cast<std::size_t>(
        std::ranges::max_element(values, {}, [](float x) { return std::fabs(x); }) - values.begin());
    if (pointed_ >= 0 && pointed_ < static_cast<int>(m.width)) at = static_cast<std::size_t>(pointed_);
    const std::size_t begin = std::min(at / shown * shown, m.width - std::min(shown, m.width));
    const float step = (area.width() - names) / static_cast<float>(shown);
    const std::array kRows = {"x", "code", "back"};
    for (std::size_t r = 0; r < kRows.size(); ++r) {
        const float top = area.y0 + static_cast<float>(r) * pitch, y = top + pitch / 2;
        ui::hline(c, area.x0, area.x1, top, {Role::line});
        ui::text_mid(c, {area.x0, y}, kRows[r], {Role::muted}, kSans13);
        for (std::size_t i = 0; i < shown && begin + i < m.width; ++i) {
            const Piece cell = element_cells(o, m, begins + begin + i)[r];
            const float right = area.x0 + names + static_cast<float>(i + 1) * step;
            ui::text_mid(c, {right, y}, cell.words, cell.ink, cell.font, Anchor::right);
        }
    }
    if (shown < m.width)
        ui::probe(c, "four.columns", area, {},
                  fmt::format("columns {} to {} of {}", begin, begin + shown - 1, m.width));
}

// The pointer over the map of the marked block chooses the half.
void FourView::follow_pointer(const Marked& m) {
    pointed_ = -1;
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    for (const Rect& box : marked_)
        if (box.contains({mouse.x, mouse.y}))
            pointed_ = static_cast<int>((mouse.x - box.x0) / box.width() * static_cast<float>(m.width));
}

}  // namespace fp8lab::four
