// What a figure is painted on. Pixels are logical (scale 1); a canvas multiplies by its own scale.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/figure/figure.h"

namespace fp8lab {

struct Point {
    float x = 0, y = 0;
};
struct Rect {
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    float width() const { return x1 - x0; }
    float height() const { return y1 - y0; }
    bool contains(Point p) const { return p.x >= x0 && p.x < x1 && p.y >= y0 && p.y < y1; }
};

// Faces and sizes of look.md 4: Inter and JetBrains Mono, 400 and 600; 13 15 18 24 32.
enum class Face { sans, sans_bold, mono, mono_bold };
struct Font {
    Face face = Face::sans;
    float size = 13;
};
// The type scale, by face and size: 13 labels and table text, 15 body and titles, 18 worked arithmetic, 24
// results.
inline constexpr Font kSans13{Face::sans, 13}, kBold13{Face::sans_bold, 13}, kMono13{Face::mono, 13},
    kMonoBold13{Face::mono_bold, 13}, kSans15{Face::sans, 15}, kBold15{Face::sans_bold, 15},
    kMono15{Face::mono, 15}, kSans18{Face::sans, 18}, kBold18{Face::sans_bold, 18}, kMono18{Face::mono, 18},
    kMonoBold18{Face::mono_bold, 18}, kBold24{Face::sans_bold, 24}, kMono24{Face::mono, 24};
inline float line_height(Font font) { return 1.2F * font.size; }  // the box whose top left text() takes

class Canvas {
  public:
    virtual ~Canvas() = default;
    virtual void line_strip(std::span<const Point> points, Color color, float width, Dash dash,
                            bool closed) = 0;
    virtual void rect(Rect rect, Rgba fill) = 0;  // edges on whole physical pixels; never thinner than one
    virtual void polygon(std::span<const Point> convex, Color fill) = 0;  // clockwise
    virtual void text(Point top_left, std::string_view text, Color color,
                      Font font) = 0;  // "2^-6" raises what follows ^ up to the next space
    virtual float text_width(std::string_view text, Font font) = 0;
    virtual void push_clip(Rect rect) = 0;
    virtual void pop_clip() = 0;
    virtual Theme theme() const = 0;

    void rect(Rect area, Color fill) { rect(area, rgba(theme(), fill)); }
};

// Lengths of mark and gap, px; {0, 0} is solid.
constexpr std::array<float, 2> dash_lengths(Dash dash) {
    switch (dash) {
        case Dash::solid:
            return {0, 0};
        case Dash::dash:
            return {7, 4};
        case Dash::dot:
            return {2, 3};
        case Dash::long_dash:
            return {14, 5};
    }
    return {0, 0};
}

}  // namespace fp8lab
