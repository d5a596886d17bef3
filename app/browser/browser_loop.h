// The page's loop around Shell: asked at each chance that the browser gives, it draws where a frame is due, and lets the
// workers have turns between frames.
#pragma once

#include <string>

#include "app/browser/page_canvas.h"
#include "app/desk/session.h"
#include "app/frame/frame_pace.h"

namespace fp8lab {

class BrowserLoop {
  public:
    explicit BrowserLoop(SessionOptions options);  // throws as PageCanvas does

    void turn();  // a chance to draw
    void open_link(std::string_view fragment) {
        session_.shell().open_link(fragment), canvas_.input().note();
    }
    PageCanvas& canvas() { return canvas_; }
    std::string probes() { return probes_; }  // probe_json() after the last frame; where they are wanted

  private:
    void draw(double now_s);
    void draw_notes();
    void follow_presentation();

    bool wants_probes_, woken_ = false;
    Session session_;
    PageCanvas canvas_;
    FramePace pace_;
    bool presenting_ = false;
    double frame_ms_ = -1, rest_at_ = 0;  // rest_at_: s, when the Shell wants to be asked at the latest
    long frames_ = 0, heard_ = 0;
    int opening_ = 0;  // for how many frames a text field has asked for the keyboard; keys wait meanwhile
    std::string probes_;
};

}  // namespace fp8lab
