#include "app/window/window_loop.h"

#include <GLFW/glfw3.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "app/desk/probe_json.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/threads/parallel.h"
#include "labs/ui/fonts.h"

namespace fp8lab {
namespace {

constexpr int kMostOpening = 10;  // frames; no field may keep the keys from all others

GlWindow::Size first_size(const Settings& settings, float scale) {
    if (settings.width > 0 && settings.height > 0) return {settings.width, settings.height};
    return {static_cast<int>(1440 * scale), static_cast<int>(900 * scale)};
}

SessionOptions session_options(const WindowOptions& options) {
    SessionOptions out = options;
    out.probes |= !options.probe_file.empty();
    return out;
}

}  // namespace

WindowLoop::WindowLoop(const WindowOptions& options)
    : options_(options), session_(session_options(options), GlWindow::display_scale) {
    lower_priority_of_workers();
    window_ = std::make_unique<GlWindow>(first_size(session_.saved(), context().scale), true);
    ui::load_fonts(context());
    window_->upload_fonts();
    session_.start({.wake = [this] {
        woken_ = true;
        GlWindow::wake();
    }});
}

WindowLoop::~WindowLoop() = default;

bool WindowLoop::open() const { return glfwWindowShouldClose(window_->handle()) == GLFW_FALSE; }

void WindowLoop::run() {
    const InterruptListener listener{[this] {
        glfwSetWindowShouldClose(window_->handle(), GLFW_TRUE);
        GlWindow::wake();
    }};
    while (open()) turn();
    const GlWindow::Size size = window_->size();
    if (const std::string lost = session_.keep_at_the_end(size.width, size.height); !lost.empty())
        throw Error{ErrorKind::failed, "profile", lost};
    end_if_interrupted(session_.folders().access == Access::read_write
                           ? "; settings and passed exercises are kept"
                           : "; nothing of this window is kept, the profile is read only: " +
                                 session_.folders().why_read_only);
}

void WindowLoop::end_run() {
    time_is_up_ = true;
    GlWindow::wake();
}

void WindowLoop::run_for(double seconds) {
    {
        const std::jthread clock{[this, seconds](const std::stop_token& ended) {
            std::mutex mutex;
            std::condition_variable_any never;
            std::unique_lock lock{mutex};
            never.wait_for(lock, ended, std::chrono::duration<double>(seconds), [] { return false; });
            end_run();
        }};
        while (open() && !time_is_up_) turn();
    }
    time_is_up_ = false;
}

bool WindowLoop::run_until(const std::function<bool()>& done) {
    for (draw(); !done(); draw()) {
        if (!open() || time_is_up_) return false;
        wait();
    }
    return true;
}

void WindowLoop::turn() {
    if (glfwGetWindowAttrib(window_->handle(), GLFW_ICONIFIED) == GLFW_TRUE) {
        glfwWaitEventsTimeout(std::min(60.0, shell().rest(glfwGetTime())));
        return;
    }
    draw();
    shell().rest(glfwGetTime());
    wait();
}

double WindowLoop::draw(const std::function<void()>& inject_input) {
    if (shell().fonts_outdated()) {
        ui::load_fonts(context());
        window_->upload_fonts();
    }
    const double start = glfwGetTime();
    woken_ = false;
    shell().open_files(window_->take_drops());
    opening_ = context().opens_text ? opening_ + 1 : 0;
    window_->begin_frame(inject_input, opening_ > 0 && opening_ <= kMostOpening);
    shell().frame(frame_ms_);
    window_->end_frame();
    frame_ms_ = 1000 * (glfwGetTime() - start);
    window_->finish();
    pace_.drew(start, glfwGetTime() - start);
    window_->present();
    if (frames_++ == 0 && options_.trace_startup) {
        tell(fmt::format("fp8lab: first frame after {:.0f} ms, {} resident, {}", process_age_ms(),
                         format_bytes(resident_bytes()), window_->renderer()));
    }
    write_probes();
    follow_presentation();
    return frame_ms_;
}

void WindowLoop::follow_presentation() {
    Presentation& presentation = shell().presentation();
    if (presentation.active() != presenting_) {
        presenting_ = presentation.active();
        if (presenting_) {
            window_->fill_monitor(options_.monitor);
            if (GlWindow::monitors() > 1) presentation.open_notes();
        } else {
            window_->leave_monitor();
        }
    }
    if (!presentation.wants_notes()) return notes_.reset();
    if (!notes_) notes_ = std::make_unique<NotesWindow>(*window_, context());
    notes_->draw(presentation);
    if (notes_->closed()) presentation.close_notes();
}

void WindowLoop::write_probes() {
    if (options_.probe_file.empty()) return;
    write_file(options_.probe_file, probe_json(session_, frames_, heard_));
}

// Until the next frame is due.
void WindowLoop::wait() {
    glfwPollEvents();
    while (open() && !time_is_up_) {
        const bool input = window_->input().take();
        if (input) heard_ = frames_;
        const double left = pace_.due_s({.time_s = glfwGetTime(),
                                         .input = input,
                                         .runs = woken_ || context().wants_redraw,
                                         .clock = notes_ != nullptr,
                                         .types = ImGui::GetIO().WantTextInput});
        if (left == 0) return;
        const double try_again = session_.keep_settings(glfwGetTime());
        if (std::isfinite(left)) {
            glfwWaitEventsTimeout(left);
        } else {
            const double due = std::min(try_again, shell().rest(glfwGetTime()));
            if (context().wants_redraw) continue;
            if (std::isinf(due)) {
                glfwWaitEvents();
            } else {
                glfwWaitEventsTimeout(due);
            }
        }
    }
}

}  // namespace fp8lab
