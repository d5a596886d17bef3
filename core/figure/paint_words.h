// The words of marks: where they stand, and what they stand on. They are painted after all curves, points and bars. A
// note under which one of these lies moves to the nearest place beside its point where none does; where there is no
// such place it stays and has a rectangle of the surface's colour under it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/figure/paint.h"

namespace fp8lab {

// Hands on what is painted, and remembers which cells of an area it marks. What differs from the surface by less than
// kMarked in contrast marks nothing: grids, tints and faint raw data are ground.
class MarkedCanvas : public Canvas {
  public:
    MarkedCanvas(Canvas& canvas, Rect area);  // logical px
    void line_strip(std::span<const Point> points, Color color, float width, Dash dash, bool closed) override;
    void rect(Rect rect, Rgba fill) override;
    void polygon(std::span<const Point> convex, Color fill) override;
    void text(Point top_left, std::string_view text, Color color, Font font) override {
        canvas_.text(top_left, text, color, font);
    }
    float text_width(std::string_view text, Font font) override { return canvas_.text_width(text, font); }
    void push_clip(Rect rect) override;
    void pop_clip() override;
    Theme theme() const override { return canvas_.theme(); }
    using Canvas::rect;

    bool marked(Rect rect) const;

  private:
    bool is_ground(Rgba fill) const;
    void mark(Rect rect);  // its cells, inside the clip rectangle

    Canvas& canvas_;
    Rect area_;
    std::size_t columns_, rows_;
    std::vector<bool> cells_;
    std::vector<Rect> clips_;
};

// The words of one mark.
struct Note {
    struct Line {
        std::string text;
        Color ink;
        Font font;
    };
    std::vector<Line> lines;
    Font font = kSans13;  // of the first
    int rank = 2;  // where two cover each other the lower one stays: 0 brackets, 1 what states the finding
    bool boxed = false;  // whether there are marks under it or not
    std::optional<Color> ground =
        {};                      // it stands on a fill of this colour, which covers the marks that cross it
    float width = 0, align = 0;  // of its lines: 0 left, 1 right
    std::vector<Point>
        places;  // top left, logical px; the first is where it was put, the others where it may go

    // The box of all its lines at a place; read(): from the tops of its capitals to its last line's descenders.
    Rect area(Point at) const;
    Rect read(Point at) const;
    float lead() const;  // more between a first line that is larger and the second
};

// The words of text marks, brackets and names of lines and spans; none where there is no text in the plot.
std::optional<Note> note_of(const Series& series, const FigureLayout& layout, Canvas& canvas);

// Paints the notes of all visible series over what the canvas has already. `taken`: the places of other words.
void paint_notes(const Figure& figure, const View2D& view, const FigureLayout& layout, MarkedCanvas& canvas,
                 std::vector<Rect> taken);

// Paints the words at the ends of curves and returns their rectangles.
std::vector<Rect> paint_end_labels(const Figure& figure, const View2D& view, const FigureLayout& layout,
                                   MarkedCanvas& canvas);
// The ground of words that lie over marks, 3 px wider than they are.
void paint_box(Canvas& canvas, Rect words);

}  // namespace fp8lab
