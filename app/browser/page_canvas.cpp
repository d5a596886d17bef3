#include "app/browser/page_canvas.h"

#include <GLES3/gl3.h>
#include <backends/imgui_impl_opengl3.h>
#include <emscripten/html5.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "app/browser/page.h"
#include "app/desk/browser_keys.h"
#include "core/base/error.h"
#include "labs/ui/input.h"

namespace fp8lab {
namespace {

constexpr const char* kCanvas = "#canvas";

// GLFW's: as feed_system_key() takes them.
int modifiers(bool ctrl, bool shift, bool alt) { return (shift ? 1 : 0) | (ctrl ? 2 : 0) | (alt ? 4 : 0); }

// What the browser needs itself: copying and pasting (their events bring the text), its own tools, and Alt with an arrow.
bool is_the_browsers(const EmscriptenKeyboardEvent& event) {
    const std::string_view key = event.key;
    if (key == "F11" || key == "F12") return true;
    if (event.altKey && key.starts_with("Arrow")) return true;
    const bool ctrl = event.ctrlKey || event.metaKey;
    if (!ctrl) return false;
    if (event.shiftKey) return key == "I" || key == "J";
    const int letter = key_of(key, event.code, false);
    return letter == 'C' || letter == 'X' || letter == 'V';
}

const char* cursor_name(int cursor) {
    switch (cursor) {
        case ImGuiMouseCursor_None:
            return "none";
        case ImGuiMouseCursor_TextInput:
            return "text";
        case ImGuiMouseCursor_ResizeAll:
            return "move";
        case ImGuiMouseCursor_ResizeNS:
            return "ns-resize";
        case ImGuiMouseCursor_ResizeEW:
            return "ew-resize";
        case ImGuiMouseCursor_ResizeNESW:
            return "nesw-resize";
        case ImGuiMouseCursor_ResizeNWSE:
            return "nwse-resize";
        case ImGuiMouseCursor_Hand:
            return "pointer";
        case ImGuiMouseCursor_NotAllowed:
            return "not-allowed";
        default:
            return "default";
    }
}

}  // namespace

PageCanvas::PageCanvas() {
    EmscriptenWebGLContextAttributes wanted;
    emscripten_webgl_init_context_attributes(&wanted);
    wanted.majorVersion = 2;
    wanted.alpha = wanted.depth = wanted.stencil = wanted.antialias = false;
    const auto webgl = emscripten_webgl_create_context(kCanvas, &wanted);
    if (webgl <= 0) throw Error{ErrorKind::failed, "page", "this browser has no WebGL 2"};
    emscripten_webgl_make_context_current(webgl);
    IMGUI_CHECKVERSION();
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.MouseDoubleClickTime = 0.5F;
    io.BackendFlags |= ImGuiBackendFlags_HasMouseCursors;
    io.ClipboardUserData = this;
    io.SetClipboardTextFn = [](void*, const char* text) { page_copy(text); };
    io.GetClipboardTextFn = [](void* self) {
        auto& canvas = *static_cast<PageCanvas*>(self);
        canvas.handed_ = canvas.pasted_;
        return canvas.handed_.c_str();
    };
    ImGui_ImplOpenGL3_Init("#version 300 es");
    listen();
}

void PageCanvas::listen() {
    const char* const window = EMSCRIPTEN_EVENT_TARGET_WINDOW;
    const auto key_down = [](int, const EmscriptenKeyboardEvent* event, void* self) {
        return static_cast<PageCanvas*>(self)->key(*event, true);
    };
    const auto key_up = [](int, const EmscriptenKeyboardEvent* event, void* self) {
        return static_cast<PageCanvas*>(self)->key(*event, false);
    };
    emscripten_set_keydown_callback(window, this, true, key_down);
    emscripten_set_keyup_callback(window, this, true, key_up);
    emscripten_set_blur_callback(window, this, true,
                                 [](int, const EmscriptenFocusEvent*, void* self) -> bool {
                                     static_cast<PageCanvas*>(self)->release_all();
                                     return false;
                                 });
    // On the window: a drag goes on outside the canvas.
    const auto moved = [](int, const EmscriptenMouseEvent* event, void* self) -> bool {
        const double ratio = page_pixel_ratio();
        static_cast<PageCanvas*>(self)->input_.pointer(static_cast<float>(event->clientX * ratio),
                                                       static_cast<float>(event->clientY * ratio));
        return true;
    };
    const auto button = [](int type, const EmscriptenMouseEvent* event, void* self) -> bool {
        constexpr std::array kImGui = {0, 2, 1};  // a browser counts left, middle, right
        auto& canvas = *static_cast<PageCanvas*>(self);
        if (type == EMSCRIPTEN_EVENT_MOUSEDOWN) page_focus();
        const double ratio = page_pixel_ratio();
        canvas.input_.pointer(static_cast<float>(event->clientX * ratio),
                              static_cast<float>(event->clientY * ratio));
        if (event->button < kImGui.size())
            canvas.input_.button(kImGui.at(event->button), type == EMSCRIPTEN_EVENT_MOUSEDOWN);
        return true;
    };
    emscripten_set_mousemove_callback(window, this, true, moved);
    emscripten_set_mousedown_callback(kCanvas, this, true, button);
    emscripten_set_mouseup_callback(window, this, true, button);
    const auto wheel = [](int, const EmscriptenWheelEvent* event, void* self) -> bool {
        constexpr double kPerNotch[] = {100, 3, 1};  // of pixels, lines, pages
        const double by = kPerNotch[std::min(event->deltaMode, 2U)];
        ImGui::GetIO().AddMouseWheelEvent(static_cast<float>(-event->deltaX / by),
                                          static_cast<float>(-event->deltaY / by));
        static_cast<PageCanvas*>(self)->input_.note();
        return true;
    };
    emscripten_set_wheel_callback(kCanvas, this, true, wheel);
    const auto touch = [](int type, const EmscriptenTouchEvent* event, void* self) -> bool {
        static_cast<PageCanvas*>(self)->touched(*event, type == EMSCRIPTEN_EVENT_TOUCHSTART);
        return true;  // and no mouse events after it
    };
    emscripten_set_touchstart_callback(kCanvas, this, true, touch);
    emscripten_set_touchmove_callback(kCanvas, this, true, touch);
    emscripten_set_touchend_callback(kCanvas, this, true, touch);
    emscripten_set_touchcancel_callback(kCanvas, this, true, touch);
}

bool PageCanvas::key(const EmscriptenKeyboardEvent& event, bool down) {
    // A key goes up as what it went down as: with Shift in between it types another sign.
    const auto held = down_.find(event.code);
    const int key =
        !down && held != down_.end() ? held->second : key_of(event.key, event.code, event.shiftKey);
    const bool ctrl = event.ctrlKey || event.metaKey;  // a Mac's chords have Command
    if (event.repeat) {
        input_.note();  // ImGui repeats by its own clock
    } else if (key >= 0) {
        if (down)
            down_[event.code] = key;
        else
            down_.erase(event.code);
        input_.key({.down = down, .key = key, .mods = modifiers(ctrl, event.shiftKey, event.altKey)});
    }
    const bool chord = ctrl && !event.altKey;  // with Alt it is AltGr, which types
    if (const unsigned character = character_of(event.key); down && character != 0 && !chord)
        input_.key({.kind = InputEvent::Kind::character, .character = character});
    // While Command is down a Mac tells of no other key that goes up.
    if (!down && std::string_view(event.key) == "Meta") release_all();
    return !is_the_browsers(event);
}

void PageCanvas::release_all() {
    for (const auto& [code, key] : std::exchange(down_, {})) input_.key({.key = key});
}

void PageCanvas::touched(const EmscriptenTouchEvent& event, bool began) {
    const auto ratio = static_cast<float>(page_pixel_ratio());
    std::vector<Touch::Finger> fingers;
    for (int i = 0; i < event.numTouches; ++i) {
        const EmscriptenTouchPoint& point = event.touches[i];
        if (!point.onTarget) continue;
        fingers.push_back(
            {static_cast<float>(point.clientX) * ratio, static_cast<float>(point.clientY) * ratio});
    }
    touch_.changed(fingers, began, input_);
}

void PageCanvas::upload_fonts() {
    if (std::exchange(has_objects_, true)) {
        ImGui_ImplOpenGL3_DestroyFontsTexture();
        ImGui_ImplOpenGL3_CreateFontsTexture();
    } else {
        ImGui_ImplOpenGL3_CreateDeviceObjects();
    }
    ImGui::GetIO().Fonts->ClearTexData();
}

void PageCanvas::begin_frame(double now_s, bool keys_wait) {
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {static_cast<float>(page_width()), static_cast<float>(page_height())};
    io.DeltaTime = static_cast<float>(std::clamp(now_s - last_s_, 1e-4, 1.0));
    last_s_ = now_s;
    input_.feed_keys(keys_wait);
    const float line = 5 * ImGui::GetFontSize();  // ImGui scrolls five lines a notch
    if (const float notches = touch_.wheel(ui::control_held(), line, input_); notches != 0)
        io.AddMouseWheelEvent(0, notches);
    ImGui_ImplOpenGL3_NewFrame();
    input_.feed_mouse(false);
    ImGui::NewFrame();
}

void PageCanvas::end_frame() {
    ImGui::Render();
    glViewport(0, 0, page_width(), page_height());
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    if (const int cursor = ImGui::GetMouseCursor(); std::exchange(cursor_, cursor) != cursor)
        page_cursor(cursor_name(cursor));
}

}  // namespace fp8lab
