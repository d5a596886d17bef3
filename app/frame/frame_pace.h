// When the next frame is due: at once after input, at 30 Hz while something runs, otherwise not at all. Knows neither
// window nor clock: the loop of a window sleeps for so long, a browser's page asks at every chance that it gets.
#pragma once

namespace fp8lab {

class FramePace {
  public:
    struct Now {
        double time_s = 0;
        bool input = false;  // came since the last call, or waits
        bool runs = false;   // something new is to be drawn, or moves
        bool clock = false;  // a clock is shown: the presenter's
        bool types = false;  // a text field has the keyboard, its caret blinks
    };
    // In how many seconds the next frame is due; 0: now; infinity: not before something happens.
    double due_s(const Now& now);
    // A frame began at `start_s` and took `drawing_s` until its pixels were there, without waiting for the display.
    void drew(double start_s, double drawing_s) { start_s_ = start_s, drawing_s_ = drawing_s; }

  private:
    double start_s_ = 0, drawing_s_ = 0;
    int settle_ = 0;  // frames still to be drawn after input
};

}  // namespace fp8lab
