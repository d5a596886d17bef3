#include "app/window/gl_window.h"

#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "labs/ui/input.h"

namespace fp8lab {
namespace {

// GLFW's last error as a sentence's end: " (X11: ...)".
std::string glfw_reason() {
    const char* words = nullptr;
    glfwGetError(&words);
    return words == nullptr ? "" : std::string(" (") + words + ")";
}

Error no_window(const std::string& why) { return {ErrorKind::failed, "window", why}; }

void start_glfw() {
    // Asked first: without a display, libraries that GLFW 3.4 loads print messages of their own.
    if (!environment("DISPLAY") && !environment("WAYLAND_DISPLAY")) {
        throw no_window("there is no display here (DISPLAY and WAYLAND_DISPLAY are not set)");
    }
    if (glfwInit() != GLFW_TRUE) throw no_window("the display could not be opened" + glfw_reason());
}

GlWindow& window_of(GLFWwindow* window) { return *static_cast<GlWindow*>(glfwGetWindowUserPointer(window)); }

void mark(GLFWwindow* window) { window_of(window).input().note(); }

// Installed before ImGui's own callbacks, which call these in turn.
void listen(GLFWwindow* window, GlWindow* self) {
    glfwSetWindowUserPointer(window, self);
    glfwSetDropCallback(window, [](GLFWwindow* w, int count, const char** paths) {
        window_of(w).note_drops({paths, static_cast<std::size_t>(count)});
    });
    glfwSetScrollCallback(window, [](GLFWwindow* w, double, double) { mark(w); });
    glfwSetCursorPosCallback(window, [](GLFWwindow* w, double x, double y) {
        window_of(w).input().pointer(static_cast<float>(x), static_cast<float>(y));
    });
    glfwSetCursorEnterCallback(window, [](GLFWwindow* w, int) { mark(w); });
    glfwSetWindowFocusCallback(window, [](GLFWwindow* w, int) { mark(w); });
    glfwSetWindowRefreshCallback(window, [](GLFWwindow* w) { mark(w); });
    glfwSetWindowIconifyCallback(window, [](GLFWwindow* w, int) { mark(w); });
    glfwSetFramebufferSizeCallback(window, [](GLFWwindow* w, int, int) { mark(w); });
}

// The monitor that most of the window lies on.
GLFWmonitor* monitor_of(GLFWwindow* window, std::span<GLFWmonitor*> monitors) {
    int x = 0, y = 0, width = 0, height = 0;
    glfwGetWindowPos(window, &x, &y);
    glfwGetWindowSize(window, &width, &height);
    GLFWmonitor* best = monitors.front();
    int most = -1;
    for (GLFWmonitor* monitor : monitors) {
        int left = 0, top = 0;
        glfwGetMonitorPos(monitor, &left, &top);
        const GLFWvidmode* mode = glfwGetVideoMode(monitor);
        const int wide = std::max(0, std::min(x + width, left + mode->width) - std::max(x, left));
        const int high = std::max(0, std::min(y + height, top + mode->height) - std::max(y, top));
        if (wide * high > most) {
            most = wide * high;
            best = monitor;
        }
    }
    return best;
}

std::span<GLFWmonitor*> all_monitors() {
    int count = 0;
    GLFWmonitor** monitors = glfwGetMonitors(&count);
    return {monitors, static_cast<std::size_t>(count)};
}

// GLFW names keys by their place on a US keyboard. Ctrl Z is the key that says Z, whatever the layout.
int by_layout(int key, int scancode) {
    const bool has_name = key > ' ' && key <= '`';  // GLFW's codes are ASCII here
    const char* name = has_name ? glfwGetKeyName(key, scancode) : nullptr;
    if (name == nullptr || name[0] == 0 || name[1] != 0) return key;
    const char c = name[0];
    if (c >= 'a' && c <= 'z') return c - 'a' + 'A';
    const bool known =
        (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view(",-.=").find(c) < 4;
    return known ? c : key;
}

InputEvent key_event(int key, int scancode, int action, int mods) {
    return {.down = action != GLFW_RELEASE, .key = key, .scancode = scancode, .mods = mods};
}

// Replaces ImGui's own callbacks: begin_frame() gives each frame its events.
void queue_input(GLFWwindow* window) {
    glfwSetKeyCallback(window, [](GLFWwindow* w, int key, int scancode, int action, int mods) {
        if (action == GLFW_REPEAT) return window_of(w).note_repeat();
        window_of(w).note_key(key_event(key, scancode, action, mods));
    });
    glfwSetCharCallback(window, [](GLFWwindow* w, unsigned character) {
        window_of(w).note_key({.kind = InputEvent::Kind::character, .character = character});
    });
    glfwSetMouseButtonCallback(window, [](GLFWwindow* w, int button, int action, int) {
        window_of(w).input().button(button, action != GLFW_RELEASE);
    });
}

}  // namespace

GlWindow::GlWindow(Size size, bool visible, GlWindow* first) : first_(first) {
    start_glfw();
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 2);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
    glfwWindowHint(GLFW_AUTO_ICONIFY, GLFW_FALSE);  // a lecture stays up while the notes have the focus
    glfwWindowHint(GLFW_FOCUS_ON_SHOW, first_ == nullptr ? GLFW_TRUE : GLFW_FALSE);
    glfwWindowHint(GLFW_VISIBLE, visible ? GLFW_TRUE : GLFW_FALSE);
    glfwWindowHintString(GLFW_X11_CLASS_NAME, "fp8lab");  // both, or GLFW takes the title
    glfwWindowHintString(GLFW_X11_INSTANCE_NAME, "fp8lab");
    window_ = glfwCreateWindow(size.width, size.height, "FP8 Lab", nullptr, nullptr);
    if (window_ == nullptr) {
        const std::string reason = glfw_reason();
        if (first_ == nullptr) glfwTerminate();
        throw no_window("OpenGL 3.2 is not available here" + reason);
    }
    glfwMakeContextCurrent(window_);
    glfwSwapInterval(visible ? 1 : 0);
    IMGUI_CHECKVERSION();
    imgui_ = ImGui::CreateContext();
    ImGui::SetCurrentContext(imgui_);
    ImGui::GetIO().IniFilename = nullptr;        // the settings to remember are in the profile
    ImGui::GetIO().MouseDoubleClickTime = 0.5F;  // seconds; ImGui's 0.3 are two frames of a slow machine
    if (first_ == nullptr) {
        listen(window_, this);
    } else {
        glfwSetWindowUserPointer(window_, this);
        glfwSetKeyCallback(window_, [](GLFWwindow* w, int key, int scancode, int action, int mods) {
            if (action == GLFW_REPEAT) return window_of(w).note_repeat();
            window_of(w).give_to_first(key_event(key, scancode, action, mods));
        });
        glfwSetCharCallback(window_, [](GLFWwindow* w, unsigned character) {
            window_of(w).give_to_first({.kind = InputEvent::Kind::character, .character = character});
        });
    }
    ImGui_ImplGlfw_InitForOpenGL(window_, first_ == nullptr);
    if (first_ == nullptr) queue_input(window_);
    ImGui_ImplOpenGL3_Init("#version 150");
}

GlWindow::~GlWindow() {
    // The window may close while the key is down that closed it, and its release would never be heard.
    for (const int key : std::exchange(given_, {})) give_to_first({.key = key});
    use();
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    ImGui::DestroyContext();
    glfwDestroyWindow(window_);
    if (first_ == nullptr)
        glfwTerminate();
    else
        first_->use();
}

void GlWindow::use() const {
    glfwMakeContextCurrent(window_);
    ImGui::SetCurrentContext(imgui_);
}

int GlWindow::monitors() { return static_cast<int>(all_monitors().size()); }

void GlWindow::fill_monitor(int number) {
    const auto monitors = all_monitors();
    if (monitors.empty() || glfwGetWindowMonitor(window_) != nullptr) return;
    glfwGetWindowPos(window_, &desk_[0], &desk_[1]);
    glfwGetWindowSize(window_, &desk_[2], &desk_[3]);
    GLFWmonitor* monitor = number >= 1 && number <= static_cast<int>(monitors.size())
                               ? monitors[static_cast<std::size_t>(number - 1)]
                               : monitor_of(window_, monitors);
    const GLFWvidmode* mode = glfwGetVideoMode(monitor);
    glfwSetWindowMonitor(window_, monitor, 0, 0, mode->width, mode->height, mode->refreshRate);
}

void GlWindow::leave_monitor() {
    if (glfwGetWindowMonitor(window_) == nullptr) return;
    glfwSetWindowMonitor(window_, nullptr, desk_[0], desk_[1], desk_[2], desk_[3], GLFW_DONT_CARE);
}

void GlWindow::place_on_other_monitor(const GlWindow& window) {
    const auto monitors = all_monitors();
    GLFWmonitor* taken = glfwGetWindowMonitor(window.window_);
    if (taken == nullptr && !monitors.empty()) taken = monitor_of(window.window_, monitors);
    for (GLFWmonitor* monitor : monitors) {
        if (monitor == taken) continue;
        int x = 0, y = 0;
        glfwGetMonitorPos(monitor, &x, &y);
        return glfwSetWindowPos(window_, x + 40, y + 40);
    }
}

float GlWindow::display_scale() {
    start_glfw();
    float x = 1;
    float y = 1;
    if (GLFWmonitor* monitor = glfwGetPrimaryMonitor()) glfwGetMonitorContentScale(monitor, &x, &y);
    return x;
}

void GlWindow::wake() { glfwPostEmptyEvent(); }

void GlWindow::upload_fonts() {
    // The first time all device objects: the backend makes missing ones in NewFrame(), and would then build
    // the atlas again without load_fonts()' corrections. Later the texture only: new vertex buffers would be
    // taken for as large as the old ones (ImGui 1.86), and a frame smaller than the largest so far stay
    // black.
    if (std::exchange(has_objects_, true)) {
        ImGui_ImplOpenGL3_DestroyFontsTexture();
        ImGui_ImplOpenGL3_CreateFontsTexture();
    } else {
        ImGui_ImplOpenGL3_CreateDeviceObjects();
    }
    ImGui::GetIO().Fonts->ClearTexData();  // the copy in main memory: 4 MB at scale 1, 60 MB at 3
}

void GlWindow::note_key(const InputEvent& event) {
    InputEvent heard = event;
    if (event.kind == InputEvent::Kind::key) heard.key = by_layout(event.key, event.scancode);
    input_.key(heard);
}

void GlWindow::note_repeat() { (first_ == nullptr ? *this : *first_).input_.note(); }

void GlWindow::give_to_first(const InputEvent& event) {
    if (event.kind == InputEvent::Kind::key) {
        if (event.down)
            given_.insert(event.key);
        else
            given_.erase(event.key);
    }
    first_->note_key(event);
}

void GlWindow::begin_frame(const std::function<void()>& inject_input, bool keys_wait) {
    input_.feed_keys(keys_wait);
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    if (inject_input)
        inject_input();
    else if (first_ == nullptr)
        input_.feed_mouse(true);
    ImGui::NewFrame();
}

void GlWindow::end_frame() {
    ImGui::Render();
    submit();
}

void GlWindow::submit() {
    const Size pixels = size();
    glViewport(0, 0, pixels.width, pixels.height);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
}

void GlWindow::present() { glfwSwapBuffers(window_); }

void GlWindow::finish() { glFinish(); }

void GlWindow::note_drops(std::span<const char*> paths) {
    input_.note();
    drops_.insert(drops_.end(), paths.begin(), paths.end());
}

std::vector<std::string> GlWindow::take_drops() { return std::exchange(drops_, {}); }

GlWindow::Size GlWindow::size() const {
    Size size{};
    glfwGetFramebufferSize(window_, &size.width, &size.height);
    return size;
}

std::string GlWindow::renderer() const {
    const GLubyte* words = glGetString(GL_RENDERER);
    return words == nullptr ? "" : reinterpret_cast<const char*>(words);
}

std::vector<std::uint8_t> GlWindow::pixels() const {
    const Size size = this->size();
    const auto row = static_cast<std::size_t>(size.width) * 3;
    const auto rows = static_cast<std::size_t>(size.height);
    std::vector<std::uint8_t> image(row * rows);
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadBuffer(GL_BACK);
    glReadPixels(0, 0, size.width, size.height, GL_RGB, GL_UNSIGNED_BYTE, image.data());
    for (std::size_t y = 0; y < rows / 2; ++y) {  // OpenGL's first row is the bottom one
        std::swap_ranges(image.begin() + static_cast<std::ptrdiff_t>(y * row),
                         image.begin() + static_cast<std::ptrdiff_t>((y + 1) * row),
                         image.begin() + static_cast<std::ptrdiff_t>((rows - 1 - y) * row));
    }
    return image;
}

}  // namespace fp8lab
