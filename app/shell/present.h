// Presentation (LOOK.md: l4-present-light): chrome away, one sentence, at most four numbers, one figure, the
// scene strip; keys only. At 1920x1080 everything is twice its size on the desk: text 30 px, sentence and
// digits 48, curves 4 to 6.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "labs/lecture.h"
#include "labs/ui/context.h"
#include "labs/ui/plot/plot.h"
#include "labs/view.h"

namespace fp8lab {

class Presentation {
  public:
    explicit Presentation(ui::Context& context) : context_(context) {}
    void open_notes() { notes_ = true; }

    void start(std::unique_ptr<Lecture> lecture);
    void stop();  // back to the desk, as it was left
    bool active() const { return lecture_ != nullptr; }
    Lecture* lecture() { return lecture_.get(); }

    void key(int key);  // GLFW code, pressed
    void frame(Rect window);
    bool wants_notes() const { return active() && notes_; }
    void close_notes() { notes_ = false; }
    bool frozen() const { return frozen_.has_value(); }
    double seconds() const;  // since start()
    Theme theme() const { return theme_; }

  private:
    struct Number {
        std::string text, label;
        Marker marker;
    };
    struct Picture {  // of one scene; what stands still while it is frozen
        std::string sentence;
        std::vector<Number> numbers;
        Figure figure;
    };
    Picture take();
    void show(const Picture& picture, Rect area);
    void draw_question(Rect area);
    void draw_choice(std::size_t choice, Rect box);
    void draw_numbers(const std::vector<Number>& numbers, Rect area);
    float draw_sentence(const std::string& words, Rect area);  // the y below it
    void draw_room(Rect area);
    void draw_strip(Rect strip);
    LabView& view();

    ui::Context& context_;
    std::unique_ptr<Lecture> lecture_;
    std::map<Lab*, std::unique_ptr<LabView>> views_;
    ui::PlotState plot_;
    std::size_t shown_ = 0;  // the scene that plot_ belongs to
    bool notes_ = false;     // the presenter's window is open
    std::optional<Picture> frozen_;
    Theme theme_ = Theme::projector;
    Theme desk_theme_ = Theme::dark;
    float desk_scale_ = 1;
    std::chrono::steady_clock::time_point started_;
};

}  // namespace fp8lab
