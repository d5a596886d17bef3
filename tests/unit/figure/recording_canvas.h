// A canvas that remembers what was painted: the test double of screen and file.
#pragma once

#include <string>
#include <vector>

#include "core/figure/canvas.h"

namespace fp8lab {

class RecordingCanvas final : public Canvas {
  public:
    struct Strip {
        std::vector<Point> points;
        Color color;
        float width;
        Dash dash;
    };
    struct Text {
        Rect rect;
        std::string words;
        Color color;
        Font font;
    };
    explicit RecordingCanvas(Theme theme = Theme::dark) : theme_(theme) {}
    void line_strip(std::span<const Point> points, Color color, float width, Dash dash, bool) override {
        strips.push_back({{points.begin(), points.end()}, color, width, dash});
    }
    void rect(Rect r, Rgba fill) override { rects.push_back(r), fills.push_back(fill); }
    void polygon(std::span<const Point>, Color) override { ++polygons; }
    void text(Point at, std::string_view words, Color color, Font font) override {
        if (words.empty()) return;
        texts.push_back({{at.x, at.y, at.x + text_width(words, font), at.y + line_height(font)},
                         std::string(words),
                         color,
                         font});
    }
    float text_width(std::string_view words, Font font) override {
        return 0.6F * font.size * static_cast<float>(words.size());
    }
    void push_clip(Rect) override { ++clips; }
    void pop_clip() override { --clips; }
    Theme theme() const override { return theme_; }

    const Text* find(std::string_view words) const {
        for (const Text& text : texts)
            if (text.words.find(words) != std::string::npos) return &text;
        return nullptr;
    }

    std::vector<Strip> strips;
    std::vector<Rect> rects;
    std::vector<Rgba> fills;  // of the rectangles
    std::vector<Text> texts;
    int polygons = 0, clips = 0;

  private:
    Theme theme_;
};

}  // namespace fp8lab
