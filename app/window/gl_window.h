// GLFW window + OpenGL 3.2 core + ImGui's two backends, as one object. Knows nothing of what is drawn.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "app/desk/input_feed.h"

struct GLFWwindow;
struct ImGuiContext;

namespace fp8lab {

class GlWindow {
  public:
    struct Size {
        int width, height;
    };
    // Physical px. Throws Error{failed} with one sentence. A second window has an ImGui of its own, lives no
    // longer than the first, and gives its keys and characters to it.
    GlWindow(Size size, bool visible, GlWindow* first = nullptr);
    ~GlWindow();
    GlWindow(const GlWindow&) = delete;
    GlWindow& operator=(const GlWindow&) = delete;

    void use() const;  // what follows draws in this window; after it was made, or another one used

    // The whole monitor `number` (from 1; 0: the one that the window is on), or a window again.
    void fill_monitor(int number);
    void leave_monitor();
    static int monitors();
    void place_on_other_monitor(const GlWindow& window);  // where there is one

    static float display_scale();  // of the primary monitor; opens no window
    static void wake();            // from any thread: the event loop takes a turn

    void upload_fonts();  // after load_fonts()
    // Both backends and ImGui::NewFrame(). `inject_input` may feed mouse and keys (labs/ui/input.h) after the system.
    // `keys_wait`: the system's keys are for a later frame.
    void begin_frame(const std::function<void()>& inject_input = {}, bool keys_wait = false);
    void end_frame();  // ImGui::Render(), which ends our own work, and submit()
    void submit();     // OpenGL's part: the draw data into the back buffer
    void present();    // swap: waits for the display where there is one
    void finish();     // waits until everything is drawn
    void note_drops(std::span<const char*> paths);
    std::vector<std::string> take_drops();  // paths of files dropped since the last call
    void note_key(const InputEvent& event);
    void note_repeat();  // a key is held: ImGui repeats by its own clock
    InputFeed& input() { return input_; }
    Size size() const;
    std::string renderer() const;  // GL_RENDERER
    std::vector<std::uint8_t> pixels()
        const;  // RGB, top row first, of the frame drawn last, before present()
    GLFWwindow* handle() const { return window_; }

  private:
    void give_to_first(const InputEvent& event);

    GLFWwindow* window_ = nullptr;
    GlWindow* first_ = nullptr;
    ImGuiContext* imgui_ = nullptr;
    bool has_objects_ = false;  // the backend's, on the GPU
    std::vector<std::string> drops_;
    InputFeed input_;
    std::set<int> given_;  // of a second window: keys that are down and were reported to the first one
    int desk_[4] = {};     // x, y, width, height before fill_monitor()
};

}  // namespace fp8lab
