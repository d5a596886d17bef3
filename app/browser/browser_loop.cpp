#include "app/browser/browser_loop.h"

#include <emscripten/em_js.h>
#include <emscripten/emscripten.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "app/browser/page.h"
#include "app/desk/probe_json.h"
#include "app/shell/present/notes.h"
#include "labs/ui/fonts.h"

namespace fp8lab {
namespace {

constexpr int kMostOpening = 10;  // frames; no field may keep the keys from all others

double now_s() { return emscripten_get_now() / 1000; }

std::string link(std::string_view fragment) {
    char* const address = page_address();
    std::string out = std::string(address) + "#" + std::string(fragment);
    std::free(address);
    return out;
}

}  // namespace

BrowserLoop::BrowserLoop(SessionOptions options)
    : wants_probes_(options.probes),
      // Text is as large as the page's.
      session_(std::move(options), [] { return static_cast<float>(page_pixel_ratio()); }) {
    ui::load_fonts(session_.context());
    canvas_.upload_fonts();
    session_.start({.wake = [this] { woken_ = true; },
                    .reloads = true,
                    .deliver =
                        [](const std::filesystem::path& file, std::span<const std::byte> bytes) {
                            page_download(file.filename().c_str(), bytes.data(), bytes.size());
                        },
                    .ask_for_files = page_ask_for_files,
                    .link = link});
}

void BrowserLoop::turn() {
    ui::Context& context = session_.context();
    Shell& shell = session_.shell();
    const bool input = canvas_.input().take();
    if (input) heard_ = frames_;
    const double now = now_s();
    const double left = pace_.due_s({.time_s = now,
                                     .input = input,
                                     .runs = woken_ || context.wants_redraw,
                                     .clock = shell.presentation().wants_notes(),
                                     .types = ImGui::GetIO().WantTextInput});
    page_go_on();
    if (left == 0) draw(now);
    if (left == 0 || now >= rest_at_) rest_at_ = now + std::min(session_.keep_settings(now), shell.rest(now));
}

void BrowserLoop::draw(double now) {
    ui::Context& context = session_.context();
    Shell& shell = session_.shell();
    if (shell.fonts_outdated()) {
        ui::load_fonts(context);
        canvas_.upload_fonts();
    }
    woken_ = false;
    shell.open_files(canvas_.take_drops());
    opening_ = context.opens_text ? opening_ + 1 : 0;
    canvas_.begin_frame(now, opening_ > 0 && opening_ <= kMostOpening);
    shell.frame(frame_ms_);
    draw_notes();
    canvas_.end_frame();
    frame_ms_ = 1000 * (now_s() - now);
    pace_.drew(now, frame_ms_ / 1000);
    ++frames_;
    if (wants_probes_) probes_ = probe_json(session_, frames_, heard_);
    follow_presentation();
}

// A page has one window: the notes lie over it.
void BrowserLoop::draw_notes() {
    Presentation& presentation = session_.shell().presentation();
    if (!presentation.wants_notes()) return;
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(size);
    ImGui::SetNextWindowFocus();
    ImGui::Begin("notes", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
    fp8lab::draw_notes(session_.context(), presentation, {0, 0, size.x, size.y});
    ImGui::End();
}

void BrowserLoop::follow_presentation() {
    const bool active = session_.shell().presentation().active();
    if (std::exchange(presenting_, active) != active) page_fullscreen(active);
}

}  // namespace fp8lab
