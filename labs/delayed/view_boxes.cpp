// The step under the cursor, taken apart in the order in which its machine does it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/delayed/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/imgui_canvas.h"
#include "labs/ui/widgets.h"

namespace fp8lab::delayed {

namespace {

using ui::Context;

// At most six characters, so that what the boxes compute fits them: "1.3e5", "3.35e-3".
std::string text_of(double value, int digits = 4) {
    const double size = std::fabs(value);
    if (!std::isfinite(value) || size == 0 || (size >= 0.01 && size < 1e5))
        return format_number(value, size < 0.1 ? std::min(digits, 3) : digits, true);
    const int exponent = static_cast<int>(std::floor(std::log10(size)));
    const std::string mantissa = format_number(value / std::pow(10.0, exponent), 2, true);
    return fmt::format("{}e{}{}", mantissa, exponent < 0 ? "\u2212" : "", std::abs(exponent));
}
std::string text_of(float value, int digits = 4) { return text_of(static_cast<double>(value), digits); }

// Runs of words on one line, each in its colour and face; the last ones give way where there is no room.
struct Word {
    std::string text;
    Color color = {Role::text};
    Font font = kSans13;
};
void line(Context& c, Point middle_left, float x_end, const std::vector<Word>& words) {
    float x = middle_left.x;
    for (const Word& word : words) {
        const float width = ui::text_width(c, word.text, word.font);
        if (x + width > x_end + 1) return;
        ui::text_mid(c, {x, middle_left.y}, word.text, word.color, word.font);
        x += width;
    }
}

class Boxes {
  public:
    Boxes(Context& c, const Delayed& lab, float height)
        : c_(c),
          run_(lab.shown()),
          machine_(run_.machine),
          detail_(lab.detail()),
          at_(static_cast<std::size_t>(lab.cursor())),
          step_(run_.steps[at_]),
          low_(height < c.px(170)) {}

    void cast(Rect area, int number) const {
        const bool looked = machine_.order == "notebook" || machine_.algo == "current";
        title(area, number, looked ? "Cast with this step’s scale" : "Cast with the earlier scale");
        const Color result{step_.saturates ? Role::sat : Role::text, Tone::ink};
        const float y = area.y0 + c_.px(low_ ? 38 : 46);
        const std::string factors = text_of(step_.amax) + " × " + text_of(step_.scale_used) + " = ";
        const std::string product = text_of(step_.amax_scaled);
        const Font font = fitting(area, factors + product, kMono18);
        const bool one_line = ui::text_width(c_, factors + product, font) <= area.width() + 1;
        line(c_, {area.x0, y}, area.x1, {{factors, {Role::text}, font}});
        if (one_line)
            ui::text_mid(c_, {area.x0 + ui::text_width(c_, factors, font), y}, product, result, font);
        ui::probe(c_, "delayed.product", {area.x0, y - c_.px(10), area.x1, y + c_.px(one_line ? 10 : 38)}, {},
                  product);
        float below = y + c_.px(low_ ? 28 : 32), x = area.x0;
        if (step_.saturates) {
            ui::ImGuiCanvas canvas(c_);
            paint_marker(canvas, {x / c_.scale + 6, below / c_.scale}, Marker::triangle_up, 6, {Role::sat});
            x += c_.px(20);
        }
        // In a box that is too narrow for both the product comes first, and its verdict where there is room.
        if (!one_line) {
            ui::text_mid(c_, {x, below}, product, result, font);
            x += ui::text_width(c_, product, font) + c_.px(8);
        }
        std::string words = cast_words(step_, machine_);
        if (x + ui::text_width(c_, words, kSans15) > area.x1 + 1 && step_.saturates) words = "saturated";
        line(c_, {x, below}, area.x1, {{words, step_.saturates ? result : Color{Role::muted}, kSans15}});
        const CastStats& cast = run_.casts[at_];
        below += c_.px(low_ ? 26 : 34);
        line(c_, {area.x0, below}, area.x1,
             {{text_of(cast.overflow_pct(), 2) + " %", {Role::text}, kMonoBold13},
              {" saturated", {Role::muted}},
              // One run of words: a number without its name says nothing.
              {", " + text_of(cast.underflow_pct(), 2) + " % became 0", {Role::muted}}});
        line(c_, {area.x0, below + c_.px(21)}, area.x1,
             {{"SQNR ", {Role::muted}}, {text_of(cast.sqnr_db(), 3) + " dB", {Role::text}, kMonoBold13}});
    }

    void record(Rect area, int number) const {
        title(area, number, "Record the amax in slot 0");
        if (machine_.algo == "static" || machine_.algo == "current") {
            ui::text_mid(c_, {area.x0, area.y0 + c_.px(46)}, "This rule has no history.", {Role::muted},
                         kSans13);
            return;
        }
        const float cell = c_.px(28), y0 = area.y0 + c_.px(low_ ? 24 : 32);
        const Range marked = row(area, y0, detail_.recorded, 0);
        float y = y0 + cell;
        if (!low_) {
            slot_names(area, y + c_.px(11));
            y += c_.px(20);
        }
        const bool rolls = detail_.recorded.size() > 1;
        const std::string words = rolls ? "roll: slot 1 drops out" : "slot 0 is cleared";
        const float middle = y + c_.px(low_ ? 11 : 18);
        const Range target = row(area, y + c_.px(low_ ? 22 : 32), detail_.rolled, detail_.rolled.size() - 1);
        const double between = rolls ? marked.lo + marked.hi + target.lo + target.hi : 0;
        const float x = rolls ? static_cast<float>(between / 4) : area.x0;
        ui::text_mid(c_, {x, middle}, words, {Role::muted}, kSans13, rolls ? Anchor::center : Anchor::left);
        if (rolls && !low_) arrow(marked, target, y + c_.px(4), y + c_.px(30));
    }

    void choose(Rect area, int number) const {
        title(area, number,
              machine_.order == "notebook" ? "Choose this step’s scale" : "Choose the next scale");
        const float y = area.y0 + c_.px(low_ ? 38 : 46);
        line(c_, {area.x0, y}, area.x1, {{formula(area.width()), {Role::text}, {Face::mono, 15}}});
        const float at = y + c_.px(low_ ? 40 : 58);
        const Color ink{find_format(machine_.format).role, Tone::ink};
        if (machine_.order == "notebook") {
            if (!low_) ui::text_mid(c_, {area.x0, at - c_.px(27)}, "scale used", {Role::muted}, kSans13);
            ui::text_mid(c_, {area.x0, at}, text_of(step_.scale_used), ink, kMono24);
        } else {
            scales(area, at, ink);
        }
        const auto max = max_finite(find_format(machine_.format));
        const double before = max / static_cast<double>(step_.scale_used),
                     later = max / static_cast<double>(step_.scale_next);
        std::vector<Word> words = {{"window top ", {Role::muted}},
                                   {text_of(before, 3), {Role::text}, kMonoBold13}};
        if (machine_.order != "notebook") {
            words.push_back({before == later ? " stays" : " \u2192 " + text_of(later, 3),
                             {before == later ? Role::muted : Role::text},
                             before == later ? kSans13 : kMonoBold13});
            if (before != later) words.push_back({", one step late", {Role::muted}});
        }
        line(c_, {area.x0, at + c_.px(low_ ? 28 : 36)}, area.x1, words);
    }

  private:
    // The scale used, and what it becomes; in a narrow box without the first.
    void scales(Rect area, float y, Color ink) const {
        const std::string used = text_of(step_.scale_used), next = text_of(step_.scale_next);
        const auto width = [&](const std::string& words, Font font) {
            return std::max(ui::text_width(c_, words, font), c_.px(72));
        };
        const float gap = c_.px(62);
        const auto fits = [&](Font font) {
            return width(used, font) + gap + ui::text_width(c_, next, font) <= area.width();
        };
        const Font font = fits(kMono24) ? kMono24 : Font{Face::mono, 15};
        const bool both = fits(font);
        const float x = area.x0 + gap + (both ? width(used, font) : -c_.px(14));
        if (both) ui::text_mid(c_, {area.x0, y}, used, {Role::text}, font);
        right_arrow({x - c_.px(48), y}, c_.px(34));
        ui::text_mid(c_, {x, y}, next, ink, font);
        if (low_ || !both) return;
        ui::text_mid(c_, {area.x0, y - c_.px(27)}, "scale used", {Role::muted}, kSans13);
        ui::text_mid(c_, {x, y - c_.px(27)}, "next scale", {Role::muted}, kSans13);
    }
    void title(Rect area, int number, std::string_view words) const {
        // Its first word, where there is no room for the sentence.
        if (c_.px(17) + ui::text_width(c_, words, kBold15) > area.width())
            words = words.substr(0, words.find(' '));
        const std::string digit = std::to_string(number);
        ui::text_mid(c_, {area.x0, area.y0 + c_.px(9)}, digit, {Role::text}, kBold15);
        ui::text_mid(c_, {area.x0 + c_.px(17), area.y0 + c_.px(9)}, words, {Role::text}, kBold15);
    }

    // The font, or its smallest size where the words are too wide for it.
    Font fitting(Rect area, const std::string& words, Font font) const {
        return ui::text_width(c_, words, font) <= area.width() ? font : Font{font.face, 13};
    }

    // What becomes of the amax, or why the scale stays.
    std::string formula(float width) const {
        const std::string max = text_of(max_finite(find_format(machine_.format)));
        const std::string top =
            machine_.margin == 0 ? max : fmt::format("{}·2^\u2212{} ", max, machine_.margin);
        switch (step_.outcome) {
            case Outcome::waiting:
                return fmt::format("kept: every {} steps", machine_.interval);
            case Outcome::zero:
                return "kept: the amax is 0";
            case Outcome::not_finite:
                return "kept: not finite";
            case Outcome::fixed:
                return "never changes";
            case Outcome::this_tensor:
                return top + " / " + text_of(step_.amax);
            case Outcome::computed:
                break;
        }
        if (machine_.algo == "most_recent") return top + " / " + text_of(step_.reduced);
        if (machine_.algo == "ema") return top + " / " + text_of(step_.reduced) + " (EMA)";
        if (machine_.algo == "percentile")
            return fmt::format("{} / {} (p{})", top, text_of(step_.reduced), text_of(machine_.percentile, 3));
        std::string all;
        for (const float value : detail_.recorded) all += (all.empty() ? "" : ", ") + text_of(value, 3);
        const std::string spelled = fmt::format("{} / max({})", top, all);
        if (machine_.history <= 8 && ui::text_width(c_, spelled, {Face::mono, 15}) <= width) return spelled;
        return fmt::format("{} / {} (max)", top, text_of(step_.reduced, 3));
    }

    // The slots that fit: the first ones, a gap, the last.
    std::vector<std::size_t> shown(float width) const {
        const std::size_t size = detail_.recorded.size();
        const auto fit = static_cast<std::size_t>(std::max(3.0F, width / c_.px(58)));
        std::vector<std::size_t> out;
        for (std::size_t i = 0; i < size; ++i)
            if (size <= fit || i + 2 < fit || i + 1 == size) out.push_back(i);
        return out;
    }
    float cell_x(Rect area, std::size_t place) const {
        return area.x0 + c_.px(58) * static_cast<float>(place);
    }

    Range row(Rect area, float y, const std::vector<float>& values, std::size_t strong) const {
        Range marked{0, 0};
        const std::vector<std::size_t> slots = shown(area.width());
        const bool gap = slots.size() < values.size();
        for (std::size_t i = 0; i < slots.size(); ++i) {
            const bool last = gap && i + 1 == slots.size();
            const float x = cell_x(area, i + (last ? 1 : 0)) - (last ? c_.px(24) : 0);
            if (last)
                ui::text_mid(c_, {x - c_.px(16), y + c_.px(13)}, "…", {Role::muted}, kSans13, Anchor::center);
            const Rect cell{x, y, x + c_.px(54), y + c_.px(28)};
            const bool is_strong = slots[i] == strong;
            ui::fill_rect(c_, cell, {Role::raised}, 4);
            ui::stroke_rect(c_, cell, {is_strong ? Role::text : Role::line}, 4, is_strong ? 2 : 1);
            const float value = values[slots[i]];
            ui::text_mid(c_, {(cell.x0 + cell.x1) / 2, (cell.y0 + cell.y1) / 2}, text_of(value, 3),
                         {value == 0 ? Role::muted : Role::text}, is_strong ? kMonoBold13 : kMono13,
                         Anchor::center);
            if (is_strong) marked = {static_cast<double>(cell.x0), static_cast<double>(cell.x1)};
        }
        return marked;
    }
    void slot_names(Rect area, float y) const {
        const std::vector<std::size_t> slots = shown(area.width());
        const bool gap = slots.size() < detail_.recorded.size();
        for (std::size_t i = 0; i < slots.size(); ++i) {
            const bool last = gap && i + 1 == slots.size();
            const float x = cell_x(area, i + (last ? 1 : 0)) - (last ? c_.px(24) : 0) + c_.px(27);
            const std::string name = (i == 0 ? "slot " : "") + std::to_string(slots[i]);
            ui::text_mid(c_, {x, y}, name, {Role::muted}, i == 0 ? kSans13 : kMono13, Anchor::center);
        }
    }
    // An arrow from under the first slot down, across and into the last.
    void arrow(Range from, Range to, float y0, float y1) const {
        const auto x0 = static_cast<float>((from.lo + from.hi) / 2),
                   x1 = static_cast<float>((to.lo + to.hi) / 2);
        const float bend = y0 + c_.px(5);
        ImDrawList& list = *ImGui::GetWindowDrawList();
        const ImVec2 points[] = {{x0, y0}, {x0, bend}, {x1, bend}, {x1, y1}};
        list.AddPolyline(points, 4, c_.color(Role::axis), 0, ui::hairline(c_));
        ui::chevron(c_, {x1, y1 - c_.px(3)}, ui::Direction::down, {Role::axis});
    }
    void right_arrow(Point from, float length) const {
        ui::hline(c_, from.x, from.x + length, from.y, {Role::axis});
        ui::chevron(c_, {from.x + length - c_.px(2), from.y + ui::hairline(c_) / 2}, ui::Direction::right,
                    {Role::axis});
    }

    Context& c_;
    const Run& run_;
    const MachineSpec& machine_;
    Detail detail_;
    std::size_t at_;
    const MachineStep& step_;
    bool low_;
};

}  // namespace

void draw_boxes(Context& c, const Delayed& lab, Rect area) {
    const Boxes boxes(c, lab, area.height());
    using Draw = void (Boxes::*)(Rect, int) const;
    constexpr std::array<Draw, 3> kTe = {&Boxes::cast, &Boxes::record, &Boxes::choose};
    constexpr std::array<Draw, 3> kNotebook = {&Boxes::record, &Boxes::choose, &Boxes::cast};
    constexpr std::array<Draw, 3> kCurrent = {&Boxes::choose, &Boxes::cast, &Boxes::record};
    const MachineSpec& machine = lab.shown().machine;
    const auto& order = machine.algo == "current" ? kCurrent : machine.order == "notebook" ? kNotebook : kTe;
    const std::array<float, 4> edges = {0, 0.305F, 0.675F, 1};
    for (std::size_t i = 0; i < order.size(); ++i) {
        const float x0 = area.x0 + edges.at(i) * area.width() + (i > 0 ? c.px(20) : 0);
        const Rect box{std::round(x0), area.y0, area.x0 + edges.at(i + 1) * area.width() - c.px(12), area.y1};
        if (i > 0)
            ui::fill_rect(
                c, {box.x0 - c.px(20), area.y0, box.x0 - c.px(20) + ui::hairline(c), area.y1 - c.px(8)},
                {Role::line});
        (boxes.*order.at(i))(box, static_cast<int>(i) + 1);
    }
}

}  // namespace fp8lab::delayed
