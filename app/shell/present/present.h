// Presentation (look.md 5): chrome away, one sentence, at most four numbers, one figure, the
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

#include "labs/course/lecture.h"
#include "labs/ui/context.h"
#include "labs/ui/plot/plot.h"
#include "labs/view.h"

namespace fp8lab {

class Presentation {
  public:
    explicit Presentation(ui::Context& context) : context_(context) {}
    void open_notes() { notes_ = true; }

    // deck: stop() puts it aside for resume(); a lab of the desk goes on there.
    void start(std::unique_ptr<Lecture> lecture, bool deck);
    void stop();  // back to the desk, as it was left
    // The deck that was left last, at its scene and with its votes; its training is paused. False: there is
    // none.
    bool resume();
    bool active() const { return lecture_ != nullptr; }
    Lecture* lecture() { return lecture_.get(); }

    void take_keys();       // those of this frame, to key() and typed()
    void key(ui::Key key);  // was pressed
    // A character came: "?" opens the list of keys. Any character closes it, also of a key that ui::Key does
    // not have.
    void typed(unsigned character);
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
    bool is_late_vote(ui::Key key) const;
    Picture take();
    void show(const Picture& picture, Rect area);
    void draw_question(Rect area);
    void draw_choice(std::size_t choice, Rect box);
    void draw_numbers(const std::vector<Number>& numbers, Rect area);
    float draw_sentence(const std::string& words, Rect area);  // the y below it
    void draw_room(Rect area);
    float draw_state(Rect strip);
    void draw_strip(Rect strip);
    void draw_keys(Rect window);  // present_keys.cpp
    void open(std::unique_ptr<Lecture> lecture);
    LabView& view();

    ui::Context& context_;
    std::unique_ptr<Lecture> lecture_, left_;  // left_: what resume() goes on with
    bool deck_ = false;                        // lecture_ is one
    std::map<Lab*, std::unique_ptr<LabView>> views_;
    ui::PlotState plot_;
    std::size_t shown_ = 0;  // the scene that plot_ belongs to
    bool notes_ = false;     // the presenter's window is open
    bool keys_ = false;      // the list of keys lies over the scene
    bool no_vote_ = false;   // Right was pressed before the first vote
    double asked_s_ = -10;   // ImGui's time of the last frame with a question
    int keys_closed_ = -2;   // the frame in which a key closed it
    std::optional<Picture> frozen_;
    Theme theme_ = Theme::projector;
    Theme desk_theme_ = Theme::dark;
    float desk_scale_ = 1;
    std::chrono::steady_clock::time_point started_;
};

}  // namespace fp8lab
