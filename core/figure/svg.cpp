#include "core/figure/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/markup.h"
#include "core/figure/words.h"

namespace fp8lab {

namespace {

// Advance widths of Inter 4.0, characters 32 to 126, in thousandths of an em: enough to right-align and
// centre a text that the viewer's own font engine draws. Other glyphs count as a digit. JetBrains Mono is 600
// throughout.
constexpr std::array<int, 95> kInter = {
    281, 278, 403, 631, 638, 813, 639, 222, 362, 362, 500, 659, 280, 460, 276, 357, 625, 464, 605,
    636, 642, 608, 624, 571, 616, 624, 276, 280, 659, 659, 659, 507, 936, 676, 651, 727, 719, 598,
    587, 743, 740, 264, 543, 652, 563, 889, 753, 761, 635, 761, 639, 638, 642, 741, 676, 949, 642,
    665, 625, 362, 357, 362, 469, 452, 497, 564, 621, 558, 621, 582, 361, 609, 591, 237, 237, 544,
    237, 869, 585, 597, 609, 609, 372, 523, 364, 581, 557, 813, 540, 557, 541, 362, 327, 362, 659};
constexpr float kBoldWider = 1.03F;  // Inter 600 over 400, mean of the same characters

bool is_mono(Font font) { return font.face == Face::mono || font.face == Face::mono_bold; }
bool is_bold(Font font) { return font.face == Face::sans_bold || font.face == Face::mono_bold; }

// "2^-6 to 448" -> "2", "-6" raised, " to 448". What follows ^ up to the next space is raised.
struct TextRun {
    std::string_view text;
    bool raised = false;
};
std::vector<TextRun> text_runs(std::string_view text) {
    std::vector<TextRun> out;
    for (bool raised = false; !text.empty(); raised = !raised) {
        const std::size_t end = std::min(text.find(raised ? ' ' : '^'), text.size());
        if (end > 0) out.push_back({text.substr(0, end), raised});
        text.remove_prefix(std::min(text.size(), raised ? end : end + 1));
    }
    return out;
}

class SvgCanvas final : public Canvas {
  public:
    SvgCanvas(Theme theme, std::string_view prefix) : theme_(theme), prefix_(prefix) {}
    const std::string& body() const { return body_; }
    Theme theme() const override { return theme_; }

    void line_strip(std::span<const Point> points, Color color, float width, Dash dash,
                    bool closed) override {
        const auto [mark, gap] = dash_lengths(dash);
        const std::string pattern = mark > 0 ? fmt::format(" stroke-dasharray=\"{:g} {:g}\"", mark, gap) : "";
        add("<{} points=\"{}\" fill=\"none\" {} stroke-width=\"{:g}\" stroke-linejoin=\"round\"{}/>\n",
            closed ? "polygon" : "polyline", list(points), paint_of("stroke", rgba(theme_, color)), width,
            pattern);
    }
    void rect(Rect r, Rgba fill) override {  // whole pixels, as on screen: hairlines stay sharp
        const float x0 = std::round(r.x0), y0 = std::round(r.y0);
        const float width = std::max(std::round(r.x1) - x0, 1.0F),
                    height = std::max(std::round(r.y1) - y0, 1.0F);
        add("<rect x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\" {}/>\n", x0, y0, width, height,
            paint_of("fill", fill));
    }
    void polygon(std::span<const Point> points, Color fill) override {
        add("<polygon points=\"{}\" {}/>\n", list(points), paint_of("fill", rgba(theme_, fill)));
    }
    void text(Point at, std::string_view words, Color color, Font font) override {
        if (words.empty()) return;
        std::string spans;
        float raised = 0;
        for (const TextRun& run : text_runs(words)) {  // exponents: size 13, raised as in the window
            const float up = run.raised ? std::clamp(0.4F * font.size, 5.0F, 12.0F) : 0;
            const std::string size = run.raised ? " font-size=\"13\"" : "";
            spans += up == raised ? escaped_markup(run.text)
                                  : fmt::format("<tspan dy=\"{:g}\"{}>{}</tspan>", raised - up, size,
                                                escaped_markup(run.text));
            raised = up;
        }
        // 0.96: the middle of the 1.2 em line box plus half a capital's height (0.72 em)
        add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-family=\"{}\" font-weight=\"{}\" font-size=\"{:g}\" "
            "xml:space=\"preserve\" {}>{}</text>\n",
            at.x, at.y + 0.96F * font.size, is_mono(font) ? "JetBrains Mono, monospace" : "Inter, sans-serif",
            is_bold(font) ? 600 : 400, font.size, paint_of("fill", rgba(theme_, color)), spans);
    }
    float text_width(std::string_view words, Font font) override {
        int thousandths = 0;
        for (const TextRun& run : text_runs(words))
            for (const char c : run.text) {
                const auto byte = static_cast<unsigned char>(c);
                if ((byte & 0xC0U) == 0x80) continue;  // the rest of a UTF-8 character
                thousandths += is_mono(font) ? 600 : byte >= 32 && byte < 127 ? kInter[byte - 32U] : 620;
            }
        return static_cast<float>(thousandths) * font.size / 1000 *
               (font.face == Face::sans_bold ? kBoldWider : 1.0F);
    }
    void push_clip(Rect r) override {
        add("<clipPath id=\"{5}clip{0}\"><rect x=\"{1:g}\" y=\"{2:g}\" width=\"{3:g}\" "
            "height=\"{4:g}\"/></clipPath><g clip-path=\"url(#{5}clip{0})\">\n",
            clips_++, r.x0, r.y0, r.width(), r.height(), prefix_);
    }
    void pop_clip() override { body_ += "</g>\n"; }

  private:
    template <class... Args>
    void add(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(body_), format, std::forward<Args>(args)...);
    }
    static std::string list(std::span<const Point> points) {
        std::string out;
        for (const Point p : points) fmt::format_to(std::back_inserter(out), "{:.2f},{:.2f} ", p.x, p.y);
        if (!out.empty()) out.pop_back();
        return out;
    }
    static std::string paint_of(std::string_view what, Rgba c) {
        const std::string opacity =
            c.a == 255 ? "" : fmt::format(" {}-opacity=\"{:.3g}\"", what, static_cast<double>(c.a) / 255);
        return fmt::format("{}=\"#{:02x}{:02x}{:02x}\"{}", what, c.r, c.g, c.b, opacity);
    }

    Theme theme_;
    std::string prefix_;
    std::string body_;
    int clips_ = 0;
};

}  // namespace

std::string to_svg(const Figure& figure, const SvgOptions& options) {
    constexpr float kMargin = 16;
    SvgCanvas canvas(options.theme, options.id_prefix);
    canvas.rect(Rect{0, 0, options.width, options.height}, rgba(options.theme, {Role::surface}));
    paint(figure, options.view, canvas, {kMargin, kMargin, options.width - kMargin, options.height - kMargin},
          options.paint);
    std::string words;  // for who listens to it
    for (const std::string& sentence : to_words(figure)) words += (words.empty() ? "" : " ") + sentence;
    // Contextual alternates are off: with them Inter draws the x of 0x7F as a multiplication sign.
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} "
        "{1:g}\" style=\"font-variant-ligatures:none;font-feature-settings:'calt' "
        "0\">\n<title>{2}</title>\n<desc>{4}</desc>\n"
        "<metadata><figure xmlns=\"urn:fp8lab\" id=\"{3}\">\n",
        options.width, options.height, escaped_markup(figure.title), escaped_markup(figure.id),
        escaped_markup(words));
    for (const auto& [name, value] : figure.parameters)
        out += fmt::format("<parameter name=\"{}\" value=\"{}\"/>\n", escaped_markup(name),
                           escaped_markup(value));
    return out + "</figure></metadata>\n" + canvas.body() + "</svg>\n";
}

}  // namespace fp8lab
