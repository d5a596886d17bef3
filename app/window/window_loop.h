// The event-driven loop around Shell: draws after input, at 30 Hz while something runs, and otherwise not at
// all.
#pragma once

#include <imgui.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "app/desk/session.h"
#include "app/frame/frame_pace.h"
#include "app/window/gl_window.h"
#include "app/window/notes_window.h"
#include "app/window/window.h"

namespace fp8lab {

class WindowLoop {
  public:
    explicit WindowLoop(const WindowOptions& options);  // throws as run_window() does
    ~WindowLoop();

    // Until the window is closed; then saves exercises and settings. Throws Error{failed} with all that could not be
    // saved, and Interrupted after a signal.
    void run();
    void end_run();                // run_for() and run_until() return; from any thread
    void run_for(double seconds);  // the same, for a while: what a person's inaction looks like (`bench ui`)

    // Frame by frame at the window's own pace, the first one now. True: `done` held after one of them; false: the window
    // was closed, or end_run() was called.
    bool run_until(const std::function<bool()>& done);
    bool woken() const { return woken_; }  // since the last frame began: there is something new to draw

    // One frame now; returns our own work in ms, OpenGL's drawing included, waiting for the display not.
    // `inject_input` may move the mouse (labs/ui/input.h) after the system's events were taken.
    double draw(const std::function<void()>& inject_input = {});

    Shell& shell() { return session_.shell(); }
    ui::Context& context() { return session_.context(); }
    GlWindow& window() { return *window_; }
    long frames() const { return frames_; }

  private:
    bool open() const;
    void turn();  // a frame, then waiting until the next is due
    void wait();
    void follow_presentation();  // the whole monitor, and the presenter's window
    void write_probes();

    WindowOptions options_;
    std::atomic<bool> woken_ = false;
    std::unique_ptr<GlWindow> window_;
    Session session_;  // after what its workers wake
    std::unique_ptr<NotesWindow> notes_;
    bool presenting_ = false;
    std::atomic<bool> time_is_up_ = false;
    double frame_ms_ = -1;
    FramePace pace_;
    long frames_ = 0;
    long heard_ = 0;   // frames_ when input last came or still waited
    int opening_ = 0;  // for how many frames a text field has asked for the keyboard; keys wait meanwhile
};

}  // namespace fp8lab
