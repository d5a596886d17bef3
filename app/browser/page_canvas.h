// The canvas of the page: WebGL 2, ImGui's context, and the page's events as its frames take them. Knows nothing of what is
// drawn. Emscripten's GLFW is not used: it ignores the device's pixels, touch and the clipboard.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/desk/input_feed.h"
#include "app/desk/touch.h"

struct EmscriptenKeyboardEvent;
struct EmscriptenTouchEvent;

namespace fp8lab {

class PageCanvas {
  public:
    PageCanvas();  // throws Error{failed} where the browser has no WebGL 2
    PageCanvas(const PageCanvas&) = delete;
    PageCanvas& operator=(const PageCanvas&) = delete;
    // It is there as long as the page.

    void upload_fonts();  // after load_fonts()
    // Backend and ImGui::NewFrame(). `now_s`: of this frame. `keys_wait`: the keys are for a later one.
    void begin_frame(double now_s, bool keys_wait);
    void end_frame();  // ImGui::Render() and OpenGL's part; the cursor is the one that was asked for
    InputFeed& input() { return input_; }

    void note_drop(std::string path) { drops_.push_back(std::move(path)), input_.note(); }
    std::vector<std::string> take_drops() { return std::exchange(drops_, {}); }
    void note_pasted(std::string text) { pasted_ = std::move(text), input_.note(); }

  private:
    void listen();
    bool key(const EmscriptenKeyboardEvent& event, bool down);  // true: the browser does nothing with it
    void touched(const EmscriptenTouchEvent& event, bool began);
    void release_all();  // keys: their releases go elsewhere

    bool has_objects_ = false;  // the backend's, on the GPU
    double last_s_ = 0;
    int cursor_ = 0;                   // ImGuiMouseCursor
    std::map<std::string, int> down_;  // keys: KeyboardEvent.code, and what it went down as
    std::vector<std::string> drops_;
    std::string pasted_, handed_;  // what the page pasted last, and what ImGui was given of it
    InputFeed input_;
    Touch touch_;
};

}  // namespace fp8lab
