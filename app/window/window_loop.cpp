#include "app/window/window_loop.h"

#include <GLFW/glfw3.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/threads/parallel.h"
#include "labs/ui/fonts.h"

namespace fp8lab {
namespace {

constexpr double kLoopRetry_s = 10;  // what the disk refused
constexpr int kMostOpening = 10;     // frames; no field may keep the keys from all others

// What a test needs to feed input into the window, and to see what came of it.
std::string probe_json(const ui::Context& context, Shell& shell, long frames, long heard) {
    const auto object = nlohmann::json::object();
    nlohmann::json json = {{"frames", frames}, {"heard", heard}, {"lab", ""},
                           {"probes", object}, {"axes", object}, {"metrics", object}};
    for (const auto& [name, item] : context.probes.items) {
        json["probes"][name] = {item.rect.x0, item.rect.y0, item.rect.x1, item.rect.y1};
        if (!item.words.empty()) json["words"][name] = item.words;
        if (item.axes) {
            const auto& [x, y] = *item.axes;
            json["axes"][name] = {x.lo, x.hi, y.lo, y.hi};
        }
    }
    json["theme"] = to_string(context.theme);
    json["notes"] = shell.presentation().wants_notes();
    json["types"] = ImGui::GetIO().WantTextInput;
    json["pointer"] = {ImGui::GetIO().MousePos.x, ImGui::GetIO().MousePos.y};
    json["ring"] = context.focus.visible ? context.focus.name : "";
    if (const Lab* lab = shell.lab()) {
        json["lab"] = lab->info().id;
        for (const Metric& metric : lab->metrics()) {
            json["metrics"][metric.name] =
                metric.text.empty() ? nlohmann::json(metric.value) : nlohmann::json(metric.text);
        }
    }
    return json.dump(1) + "\n";
}

GlWindow::Size first_size(const Settings& settings, float scale) {
    if (settings.width > 0 && settings.height > 0) return {settings.width, settings.height};
    return {static_cast<int>(1440 * scale), static_cast<int>(900 * scale)};
}

}  // namespace

WindowLoop::WindowLoop(const WindowOptions& options)
    : options_(options), folders_(profile_folders(options.profile)), lock_(folders_) {
    lower_priority_of_workers();
    const std::string not_moved = folders_.access == Access::read_write ? migrate_profile(folders_) : "";
    LoadedSettings loaded = load_settings(folders_);
    saved_ = loaded.settings;
    context_.probes.enabled = options.probes || !options.probe_file.empty();
    context_.scale = saved_.scale > 0 ? saved_.scale
                                      : std::clamp(GlWindow::display_scale(), kSmallestScale, kLargestScale);
    window_ = std::make_unique<GlWindow>(first_size(saved_, context_.scale), true);
    ui::load_fonts(context_);
    window_->upload_fonts();
    shell_ = std::make_unique<Shell>(context_, saved_, detect_machine(), folders_, [this] {
        woken_ = true;
        GlWindow::wake();
    });
    if (!folders_.notice.empty()) {
        tell("fp8lab: profile: " + folders_.notice);
        shell_->warn("Profile", folders_.notice);
    }
    if (!loaded.problem.empty()) shell_->warn("Settings", loaded.problem);
    if (!not_moved.empty()) shell_->warn("Exercises of an earlier version", not_moved);
    if (options.verbs) shell_->add_to_manual(options.verbs);
    shell_->open(options.lab);
    if (options.scene) shell_->open(*options.scene);
    if (options.deck) shell_->present(*options.deck);
}

WindowLoop::~WindowLoop() {
    notes_.reset();
    shell_.reset();
}  // ends the labs' workers, which wake the window, first

bool WindowLoop::open() const { return glfwWindowShouldClose(window_->handle()) == GLFW_FALSE; }

void WindowLoop::run() {
    const InterruptListener listener{[this] {
        glfwSetWindowShouldClose(window_->handle(), GLFW_TRUE);
        GlWindow::wake();
    }};
    while (open()) turn();
    if (const std::string lost = keep_at_the_end(); !lost.empty())
        throw Error{ErrorKind::failed, "profile", lost};
    end_if_interrupted(folders_.access == Access::read_write
                           ? "; settings and passed exercises are kept"
                           : "; nothing of this window is kept, the profile is read only: " +
                                 folders_.why_read_only);
}

std::string WindowLoop::keep_at_the_end() {
    std::string lost = shell_->close();
    Settings last = shell_->settings();
    const auto size = window_->size();
    last.width = size.width;
    last.height = size.height;
    if (last == saved_) return lost;
    try {
        save_settings(folders_, last);
    } catch (const Error& error) {  // what refuses the settings has mostly refused the rest as well
        lost += fmt::format("{}the settings could not be saved: {}", lost.empty() ? "" : "; ", error.what());
    }
    return lost;
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
        glfwWaitEventsTimeout(std::min(60.0, shell_->rest(glfwGetTime())));
        return;
    }
    draw();
    shell_->rest(glfwGetTime());
    wait();
}

double WindowLoop::draw(const std::function<void()>& inject_input) {
    if (shell_->fonts_outdated()) {
        ui::load_fonts(context_);
        window_->upload_fonts();
    }
    const double start = glfwGetTime();
    woken_ = false;
    shell_->open_files(window_->take_drops());
    opening_ = context_.opens_text ? opening_ + 1 : 0;
    window_->begin_frame(inject_input, opening_ > 0 && opening_ <= kMostOpening);
    shell_->frame(frame_ms_);
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
    Presentation& presentation = shell_->presentation();
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
    if (!notes_) notes_ = std::make_unique<NotesWindow>(*window_, context_);
    notes_->draw(presentation);
    if (notes_->closed()) presentation.close_notes();
}

void WindowLoop::write_probes() {
    if (options_.probe_file.empty()) return;
    write_file(options_.probe_file, probe_json(context_, *shell_, frames_, heard_));
}

// Until the next frame is due.
void WindowLoop::wait() {
    glfwPollEvents();
    while (open() && !time_is_up_) {
        const bool input = window_->take_input();
        if (input) heard_ = frames_;
        const double left = pace_.due_s({.time_s = glfwGetTime(),
                                         .input = input,
                                         .runs = woken_ || context_.wants_redraw,
                                         .clock = notes_ != nullptr,
                                         .types = ImGui::GetIO().WantTextInput});
        if (left == 0) return;
        const double try_again = keep_settings();
        if (std::isfinite(left)) {
            glfwWaitEventsTimeout(left);
        } else {
            const double due = std::min(try_again, shell_->rest(glfwGetTime()));
            if (context_.wants_redraw) continue;
            if (std::isinf(due)) {
                glfwWaitEvents();
            } else {
                glfwWaitEventsTimeout(due);
            }
        }
    }
}

double WindowLoop::keep_settings() {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    Settings now = shell_->settings();
    now.width = saved_.width;  // kept at the end only: a resize is a hundred sizes
    now.height = saved_.height;
    if (now == saved_) return kNever;
    const double time = glfwGetTime();
    const bool again = now == refused_;
    if (again && time < refused_s_ + kLoopRetry_s) return refused_s_ + kLoopRetry_s - time;
    try {
        save_settings(folders_, now);
        saved_ = now;
        if (refused_) shell_->say("Saved now", "What could not be saved before is");
        context_.wants_redraw |= refused_.has_value();
        refused_.reset();
        return kNever;
    } catch (const Error& error) {
        if (!again) shell_->say("Settings were not saved", error.what());
        context_.wants_redraw |= !again;
        refused_ = now;
        refused_s_ = time;
        return kLoopRetry_s;
    }
}

}  // namespace fp8lab
