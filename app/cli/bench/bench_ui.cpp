// bench ui: what the window costs. Opens it, acts on it like a hand, and measures from outside what a person
// waits for.
#include "app/cli/bench/bench_frames.h"
#include "app/cli/bench/bench_measuring.h"
#include "app/cli/bench/bench_sliders.h"
#include "app/cli/bench/bench_switches.h"
#include "core/base/error.h"

#ifdef FP8LAB_GUI

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <thread>

#include "app/shell/machine.h"
#include "app/window/window_loop.h"
#include "core/base/stop.h"
#include "core/files/folders.h"
#include "core/files/progress_line.h"
#include "core/threads/parallel.h"
#include "labs/live/session.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::cli {
namespace {

using Json = nlohmann::json;

constexpr int kUiRepeats = 60;
constexpr double kIdle_s = 4;
constexpr double kTrain_s = 1.5;  // of training in each state and round
constexpr int kRounds = 7;
constexpr std::size_t kTracePoints = 1'000'000;

// Settings of its own: a bench leaves the user's alone.
struct TemporaryProfile {
    TemporaryProfile() { make_folder(path); }
    ~TemporaryProfile() { std::filesystem::remove_all(path); }
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / fmt::format("fp8lab-bench-{}", getpid());
};

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Waits without input; a signal ends the wait.
void pass_time(WindowLoop& loop, double seconds) {
    loop.run_for(seconds);
    end_if_interrupted();
}

void sleep_for(double seconds) {
    constexpr int kSlices = 10;  // between which a signal is seen
    for (int i = 0; i < kSlices; ++i, end_if_interrupted())
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds / kSlices));
}

// Our own work, and the whole until the pixels are there.
Json time_frames(WindowLoop& loop, int repeats) {
    for (int i = 0; i < 5; ++i) loop.draw();
    std::vector<double> own, whole;
    for (int i = 0; i < repeats; ++i, end_if_interrupted()) {
        whole.push_back(time_ms([&] {
            own.push_back(loop.draw());
            loop.window().finish();
        }));
    }
    return {{"own_work", to_json(summarize(own))}, {"to_pixels", to_json(summarize(whole))}};
}

Json time_trace(WindowLoop& loop, int repeats) {
    std::vector<double> x(kTracePoints), y(kTracePoints);
    for (std::size_t i = 0; i < kTracePoints; ++i) {
        x[i] = static_cast<double>(i);
        y[i] = std::sin(x[i] * 1e-4) + 0.3 * std::sin(x[i] * 0.7);
    }
    Figure figure{.id = "trace", .title = "A trace of a million points"};
    figure.line("trace", data(std::move(x)), data(std::move(y)));
    ui::PlotState state;
    std::vector<double> own, submit;
    for (int i = 0; i < repeats; ++i, end_if_interrupted()) {
        loop.window().begin_frame();
        own.push_back(time_ms([&] {
            ui::begin_frame(loop.context());
            const ImVec2 size = ImGui::GetIO().DisplaySize;
            ImGui::SetNextWindowPos({0, 0});
            ImGui::SetNextWindowSize(size);
            ImGui::Begin("trace", nullptr, ImGuiWindowFlags_NoDecoration);
            ui::plot(loop.context(), "trace", figure, state, {24, 24, size.x - 24, size.y - 24});
            ImGui::End();
            ImGui::Render();
        }));
        submit.push_back(time_ms([&] { loop.window().submit(); }));
        loop.window().present();
    }
    return {{"points", kTracePoints},
            {"own_work", to_json(summarize(own))},           // until the draw data are complete
            {"opengl_submit", to_json(summarize(submit))}};  // the driver's, on this machine's renderer
}

Json measure_idle(WindowLoop& loop) {
    loop.shell().open("");
    pass_time(loop, 0.5);
    const double before = cpu_seconds();
    const long frames = loop.frames();
    pass_time(loop, kIdle_s);
    return {{"seconds", kIdle_s},
            {"cpu_pct", 100 * (cpu_seconds() - before) / kIdle_s},
            {"frames", loop.frames() - frames}};
}

// The training's step now: the first update() takes a snapshot that may be old, and asks for a new one.
int current_step(live::Session& lab) {
    lab.update();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    lab.update();
    return lab.step();
}

// On a GPU a network that keeps it busy.
void prepare(live::Session& lab, const std::string& backend) {
    std::vector<std::string> settings = {"steps=100000"};
    if (!backend.empty()) settings.push_back("backend=" + backend);
    if (backend == "cuda") settings.insert(settings.end(), {"task=noise", "size=4096"});
    for (const std::string& setting : settings) {
        set_field(lab.fields(), setting);
        lab.update();
    }
    lab.act("restart");
    lab.act("run");
    for (; current_step(lab) == 0; end_if_interrupted())  // its tensors, plans and graphs come first
        if (lab.failed()) throw Error{ErrorKind::failed, "bench ui", lab.status().message};
}

// Steps a second while `pass` lets the time go by.
double steps_per_second(live::Session& lab, const std::function<void(double seconds)>& pass) {
    const int before = current_step(lab);
    int after = before;
    const double ms = time_ms([&] {
        pass(kTrain_s);
        after = current_step(lab);
    });
    return 1000 * (after - before) / ms;
}

// As a window manager does; where there is none, the window can only be hidden.
bool put_away(WindowLoop& loop) {
    glfwIconifyWindow(loop.window().handle());
    pass_time(loop, 0.2);
    const bool iconified = glfwGetWindowAttrib(loop.window().handle(), GLFW_ICONIFIED) == GLFW_TRUE;
    if (!iconified) glfwHideWindow(loop.window().handle());
    return iconified;
}

void bring_back(WindowLoop& loop) {
    glfwRestoreWindow(loop.window().handle());
    glfwShowWindow(loop.window().handle());
    pass_time(loop, 0.2);
}

// The window on the training, on home, and away, each round beginning with another of them, so that neither a
// busy machine nor the training's age favours one.
Json measure_training(WindowLoop& loop, const std::string& backend, int repeats) {
    const auto made = find_lab("train").make();
    live::Session& alone = live::session_of(*made);
    loop.shell().open("train");
    loop.shell().show(Tab::explore);
    auto& lab = live::session_of(*loop.shell().lab());
    const auto in_window = [&] {
        return steps_per_second(lab, [&](double seconds) { pass_time(loop, seconds); });
    };
    std::array<std::vector<double>, 3> speed;  // shown, on home, away
    std::vector<double> without;
    double frames_per_second = 0;
    bool iconified = true;
    for (int round = 0; round < kRounds; ++round) {
        prepare(alone, backend);
        without.push_back(steps_per_second(alone, sleep_for));
        alone.pause();
        prepare(lab, backend);
        for (int turn = 0; turn < 3; ++turn) {
            const int place = (round + turn) % 3;
            loop.shell().open(place == 1 ? "" : "train");
            if (place == 2) iconified = put_away(loop) && iconified;
            const long frames = loop.frames();
            speed[static_cast<std::size_t>(place)].push_back(in_window());
            if (place == 0) frames_per_second = static_cast<double>(loop.frames() - frames) / kTrain_s;
            if (place == 2) bring_back(loop);
        }
        lab.pause();
    }
    prepare(lab, backend);
    const Json beside = time_frames_beside(loop, lab, repeats);
    lab.pause();
    const auto median = [](std::vector<double> values) { return summarize(std::move(values)).median_ms; };
    return {{"threads", threads()},
            {"steps_per_second",
             {{"no_window", median(without)},
              {"shown", median(speed[0])},
              {"on_home", median(speed[1])},
              {iconified ? "iconified" : "hidden_no_window_manager", median(speed[2])}}},
            {"redraws_per_second", frames_per_second},
            {"frames_to_pixels", beside},
            {"worker_blocked_ms", lab.status().blocked_ms}};
}

// L13 beside its frames.
Json measure_transformer(WindowLoop& loop, int repeats) {
    loop.shell().open("transformer");
    loop.shell().show(Tab::explore);
    auto& lab = live::session_of(*loop.shell().lab());
    const Json beside = time_frames_beside(loop, lab, repeats);
    lab.act("restart");
    lab.act("run");
    wait_until(loop, [&] { return !lab.running() || lab.step() > 0; });  // a GPU's plans are made first
    if (lab.failed()) throw Error{ErrorKind::failed, "bench ui", lab.status().message};
    const int first = lab.step();
    const long frames = loop.frames();
    const auto start = std::chrono::steady_clock::now();
    double seconds = 0;
    wait_until(loop, [&] {
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return seconds >= kTrain_s || !lab.running();  // a GPU is at the end before
    });
    lab.update();
    const double steps = lab.step() - first, redraws = static_cast<double>(loop.frames() - frames);
    lab.act("pause");
    return {{"provenance", to_string(lab.provenance())},
            {"steps_per_second", steps / seconds},
            {"redraws_per_second", redraws / seconds},
            {"frames_to_pixels", beside},
            {"worker_blocked_ms", lab.status().blocked_ms}};
}

// Adds to `result` as it goes.
void measure_window(WindowLoop& loop, const std::string& backend, int repeats, Json& result) {
    ProgressLine progress;
    const auto measure = [&](const char* what, const auto& work) {
        progress.at(std::string("bench ui: ") + what);
        result[what] = work();
    };
    result["frames"]["home"] = time_frames(loop, repeats);
    for (const LabEntry& entry : lab_registry()) {
        progress.at(fmt::format("bench ui: frames of {}", entry.id));
        loop.shell().open(entry.id);
        loop.shell().show(Tab::explore);
        result["frames"][std::string(entry.id)] = time_frames(loop, repeats);
    }
    measure("measuring", [&] { return time_measuring(loop); });
    measure("switch_to_pixels", [&] { return time_switches(loop, repeats); });
    measure("slider_to_pixels", [&] { return time_sliders(loop, repeats); });
    measure("million_point_trace", [&] { return time_trace(loop, repeats); });
    measure("idle", [&] { return measure_idle(loop); });
    measure("training", [&] { return measure_training(loop, backend, repeats); });
    measure("transformer", [&] { return measure_transformer(loop, repeats); });
}

}  // namespace

Json bench_ui(const BenchOptions& options, const Globals&, bool json) {
    const int repeats = options.repeat > 0 ? options.repeat : kUiRepeats;
    const Interruptible keeps;  // its profile is removed, whatever ends it
    const TemporaryProfile profile;
    WindowOptions window;
    window.profile = profile.path.string();
    window.probes = true;
    WindowLoop loop{window};
    const InterruptListener listener{[&loop] { loop.end_run(); }};
    loop.draw();
    Json result = json_header({loop.window().renderer(), Provenance::cpu_emulated});
    result["first_frame_ms"] = process_age_ms();
    result["resident_mb"] = static_cast<double>(resident_bytes()) / 1e6;
    try {
        measure_window(loop, options.backend, repeats, result);
    } catch (const Interrupted&) {
        result["ended_by"] = end_signal_name();
    }
    if (!json) print_json(result);
    return result;
}

}  // namespace fp8lab::cli

#else

namespace fp8lab::cli {

nlohmann::json bench_ui(const BenchOptions&, const Globals&, bool) {
    throw Error{ErrorKind::failed, "bench ui", "this build has no window (FP8LAB_GUI=OFF)"};
}

}  // namespace fp8lab::cli

#endif
