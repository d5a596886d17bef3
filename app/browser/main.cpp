// The program of the page. It is started with what stands behind "#" of the address, and lives as long as the page.
#include <emscripten/emscripten.h>

#include <cmath>
#include <memory>
#include <string>

#include "app/browser/browser_loop.h"
#include "app/browser/page.h"
#include "core/base/error.h"
#include "core/threads/worker.h"

namespace {

using namespace fp8lab;

std::unique_ptr<BrowserLoop> loop;
bool failed = false;

// What is not caught here would end the page without a word.
template <class Work>
void guarded(Work work) {
    if (failed) return;
    try {
        work();
    } catch (const std::exception& error) {
        failed = true;
        emscripten_cancel_main_loop();
        page_failed(error.what());
    }
}

}  // namespace

extern "C" {

// Turns that are due, for as long as a frame can wait. Returns in how many ms the next one is; negative: none is due.
EMSCRIPTEN_KEEPALIVE double page_do_turns() {
    constexpr std::chrono::milliseconds kBetweenFrames{12};
    double left_ms = -1;
    guarded([&] {
        const auto next = do_turns(kBetweenFrames);
        if (next == Worker::kAtOnce)
            left_ms = 0;
        else if (next != Worker::kAsleep)
            left_ms =
                std::ceil(std::chrono::duration<double, std::milli>(next - Worker::Clock::now()).count());
        if (next != Worker::kAsleep) left_ms = std::max(0.0, left_ms);
    });
    return left_ms;
}

EMSCRIPTEN_KEEPALIVE void page_dropped(const char* path) {
    guarded([&] { loop->canvas().note_drop(path); });
}
EMSCRIPTEN_KEEPALIVE void page_pasted(const char* text) {
    guarded([&] { loop->canvas().note_pasted(text); });
}
EMSCRIPTEN_KEEPALIVE void page_open_link(const char* fragment) {
    guarded([&] { loop->open_link(fragment); });
}
EMSCRIPTEN_KEEPALIVE void page_changed() {  // its size, the visibility
    guarded([&] { loop->canvas().input().note(); });
}
EMSCRIPTEN_KEEPALIVE const char* page_probes() {
    static std::string probes;
    guarded([&] { probes = loop->probes(); });
    return probes.c_str();
}

}  // extern "C"

// Arguments: the link; then --probes; then --read-only and why, where another page of this browser has the profile.
int main(int argc, char** argv) {
    SessionOptions options;
    const std::string link = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc; ++i) {
        if (argv[i] == std::string("--probes")) options.probes = true;
        if (argv[i] == std::string("--read-only") && i + 1 < argc) options.read_only = argv[++i];
    }
    guarded([&] {
        loop = std::make_unique<BrowserLoop>(std::move(options));
        if (!link.empty()) loop->open_link(link);
        emscripten_set_main_loop([] { guarded([] { loop->turn(); }); }, 0, false);
    });
    return 0;
}
