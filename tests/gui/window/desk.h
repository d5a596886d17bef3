// A display of its own (Xvfb), fp8lab in it, and input (xdotool). Where the controls are is read from the
// file that `--probe-file` writes after every frame: {"frames": so many so far, "heard": so many when input last
// came or still waited, "lab": id, "probes": {name: [x0, y0, x1, y1]}, "axes": {plot: [x.lo, x.hi, y.lo, y.hi]},
// "metrics": {name: value}, "notes": the presenter's window is open, "types": a text field has the keyboard,
// "pointer": [x, y] of the last frame}.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/json.h"
#include "tests/scratch.h"

namespace fp8lab::test {

class Desk {
  public:
    using Json = nlohmann::json;

    Desk() {
        const std::string numbers = (scratch_.path / "display").string();
        // Xvfb writes the number of the display that it found free to this descriptor: no guessing, no race.
        // noreset: it stays ready when the window, its last client, is killed. r: no key repeats, however
        // long a busy machine takes to release it.
        server_ =
            spawn({"sh", "-c",
                   "exec Xvfb -displayfd 3 -screen 0 1600x1000x24 -nolisten tcp -noreset -r 3>" + numbers});
        wait_until([&] { return !read(numbers).empty() && read(numbers).back() == '\n'; },
                   "Xvfb gave no display");
        setenv("DISPLAY", (":" + std::to_string(std::stoi(read(numbers)))).c_str(), 1);
        std::filesystem::create_directory(disk());
        setenv("XDG_DOCUMENTS_DIR", (disk() / "documents").c_str(), 1);
        setenv("FP8LAB_HOME", home().c_str(), 1);
        unsetenv("WAYLAND_DISPLAY");
    }
    ~Desk() {
        end(window_, SIGKILL);
        end(server_, SIGTERM);
    }
    Desk(const Desk&) = delete;
    Desk& operator=(const Desk&) = delete;

    // The window ended by itself, or was killed: what waits for it throws this.
    struct Gone : std::runtime_error {
        Gone() : std::runtime_error("the window has ended") {}
    };

    // Returns after the first frame. `environment`: NAME=VALUE.
    void start(const std::vector<std::string>& arguments = {},
               const std::vector<std::string>& environment = {}) {
        std::filesystem::remove(probe_file());
        const std::string log = (scratch_.path / "log").string();
        std::filesystem::remove(log);
        std::string command = "exec env ";
        for (const std::string& setting : environment) command += setting + " ";
        command += quoted(FP8LAB_BINARY) + " --trace-startup --probe-file " + probe_file();
        for (const std::string& argument : arguments) command += " " + argument;
        window_ = spawn({"sh", "-c", command + " 2>" + log});
        wait_until(
            [&] { return read(log).find("first frame") != std::string::npos && !read(probe_file()).empty(); },
            "the window did not open");
        const auto has_the_keys = [] {
            return system(
                       "w=$(xdotool search --onlyvisible --class fp8lab 2>/dev/null | tail -1) && "
                       "timeout 5 xdotool windowfocus --sync $w 2>/dev/null && "
                       "[ $(xdotool getwindowfocus) = $w ]") == 0;
        };
        wait_until(has_the_keys, "no window on the display");
    }
    // As a session's end does: the window ends by itself. (xdotool's windowclose destroys it under the
    // program.)
    void close() { end(window_, SIGTERM); }

    void kill_now() { end(window_, SIGKILL); }
    // kill -9 from a thread of its own while the input goes on; joined when what is returned is let go of.
    std::jthread kill_after(std::chrono::milliseconds time) const {
        return std::jthread{[time, window = window_](const std::stop_token& stop) {
            const auto when = std::chrono::steady_clock::now() + time;
            while (!stop.stop_requested() && std::chrono::steady_clock::now() < when)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            kill(window, SIGKILL);
        }};
    }
    // What the window writes to; nothing of the test's own lies there.
    std::filesystem::path disk() const { return scratch_.path / "disk"; }
    std::string home() const { return (disk() / "home").string(); }
    std::filesystem::path exports() const { return disk() / "documents/fp8lab"; }
    std::string outside(const std::string& name) const { return scratch_ / name; }
    std::string read_text(const std::string& name) const { return read(home() + "/" + name); }

    Json probes() const {
        std::string text;
        wait_until([&] { return Json::accept(text = read(probe_file())); }, "no probes to read");
        return parsed(text);
    }
    bool wait_for(const std::function<bool(const Json&)>& reached,
                  std::chrono::seconds most = std::chrono::seconds(30)) const {
        try {
            wait_until([&] { return reached(probes()); }, "", most);
        } catch (const Gone&) {
            throw;
        } catch (const std::runtime_error&) {
            return false;
        }
        return true;
    }
    // Tab until the ring is on that control. False: it never came there.
    bool tab_to(const std::string& control) const {
        for (int i = 0; i < 80; ++i) {
            if (probes().value("ring", "") == control) return true;
            key("Tab");
        }
        return false;
    }
    void click(const std::string& probe) const {
        move_to(probe);
        act("mousedown 1");
        act("mouseup 1");
    }
    void drag(const std::string& probe, int dx, int dy) const {
        move_to(probe);
        act("mousedown 1");
        if (dx != 0 || dy != 0) act("mousemove_relative -- " + std::to_string(dx) + " " + std::to_string(dy));
        act("mouseup 1");
    }
    // The same within a frame or two, as on a machine that draws slowly.
    void drag_at_once(const std::string& probe, int dx, int dy) const {
        move_to(probe);
        act("mousedown 1 mousemove_relative -- " + std::to_string(dx) + " " + std::to_string(dy) +
            " mouseup 1");
    }
    void wheel_up(const std::string& probe, int notches) const {
        move_to(probe);
        for (int i = 0; i < notches; ++i) {
            act("click 4");
        }
    }
    // The panel is scrolled until that part of it is above its foot.
    void scroll_panel_to(const std::string& probe) const {
        wait_until([&] { return probes()["probes"].contains(probe); }, "no control named " + probe);
        const Json at_first = probes()["probes"];
        const auto edge = [](const Json& state, const std::string& name, std::size_t side) {
            return state.at(name).at(side).get<double>();
        };
        const double foot = edge(at_first, "panel.reset", 1);
        point_at(static_cast<int>(edge(at_first, "panel.reset", 0)), static_cast<int>(foot / 2));
        for (int i = 0; i < 60 && edge(probes()["probes"], probe, 3) > foot; ++i) act("click 5");
    }
    // Two clicks; a busy machine may draw too few frames between them, so a test asks again, as a person does.
    void double_click(const std::string& probe) const {
        move_to(probe);
        act("click --repeat 2 --delay 60 1");
    }
    // Down and up again, each of `keys` in turn; several may come within a frame. No key twice: GLFW takes
    // the second of two presses of a key with one time stamp for a copy that an input method made, and a busy
    // server stamps what it reads at once with one time.
    void tap(const std::string& keys) const { act("key --delay 30 " + keys); }
    void tap_10_ms(const std::string& key) const { act("keydown " + key + " sleep 0.01 keyup " + key); }
    // The window with that title gets the keys from now on.
    void focus(const std::string& title) const {
        run("timeout 10 xdotool search --sync --onlyvisible --name '^" + title + "$' windowfocus --sync");
    }
    void key_down(const std::string& key) const { run("xdotool keydown " + key); }
    void key_up(const std::string& key) const { run("xdotool keyup " + key); }
    void type(const std::string& text) const {
        for (const char c : text) act(std::string("type --delay 40 -- '") + c + "'");
    }
    // All within a frame or two, as on a machine that draws slowly. No character twice in a row: see tap().
    void click_and_type(const std::string& probe, const std::string& text) const {
        move_to(probe);
        act("mousedown 1 mouseup 1 type --delay 1 " + text);
    }
    static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }
    // What a control says; empty: it is not there, or says nothing.
    std::string words(const std::string& probe) const {
        const Json state = probes();
        return state.contains("words") ? state["words"].value(probe, "") : "";
    }
    double metric(const std::string& name) const { return probes()["metrics"][name].get<double>(); }
    // Tapped and not held: a frame may take longer than the time after which a held key repeats.
    void key(const std::string& keys) const {
        act("key --delay 12 " + keys);
        pause();  // what a press has begun is there some frames after the release
    }

    Json settings() const { return parsed(read(home() + "/settings.json")); }
    void write_settings(const std::string& text) const {
        std::filesystem::create_directories(home());
        std::ofstream(home() + "/settings.json") << text;
    }
    Json read_json(const std::string& name) const { return parsed(read_text(name)); }
    // Exit code of `fp8lab check` on a file of the profile.
    int check(const std::string& name) const {
        const std::string command = quoted(FP8LAB_BINARY) + " check " + home() + "/" + name + " >/dev/null";
        const int status = system(command.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    // A file with that extension among what was exported.
    bool has_export(const std::string& extension) const {
        std::error_code none;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(exports(), none))
            if (entry.path().extension() == extension) return true;
        return false;
    }
    bool has_file(const std::string& name) const { return std::filesystem::exists(home() + "/" + name); }

  private:
    std::string probe_file() const { return (scratch_.path / "probes.json").string(); }

    static std::string read(const std::string& path) {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static pid_t spawn(std::vector<std::string> arguments) {
        const pid_t child = fork();
        if (child != 0) return child;
        std::vector<char*> argv;
        for (std::string& argument : arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        execvp(argv[0], argv.data());
        _exit(127);
    }
    static void end(pid_t& process, int signal) {
        if (process <= 0) return;
        kill(process, signal);
        waitpid(process, nullptr, 0);
        process = 0;
    }
    static void run(const std::string& command) {
        if (system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
    }
    // An event, and the three frames that the window draws after it heard it: a person is slower than a busy machine.
    void act(const std::string& event) const {
        const long before = probes()["heard"];
        run("xdotool " + event);
        wait_for([&](const Json& state) {
            const long heard = state["heard"];
            return heard > before && state["frames"] >= heard + 3;
        });
    }
    void wait_until(const std::function<bool()>& reached, const std::string& otherwise,
                    std::chrono::seconds most = std::chrono::seconds(30)) const {
        const auto give_up = std::chrono::steady_clock::now() + most;
        while (!reached()) {
            if (window_ > 0 && waitpid(window_, nullptr, WNOHANG) == window_) {
                window_ = 0;
                throw Gone{};
            }
            if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error(otherwise);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }
    // Returns when the window has drawn with the pointer there: heard later, it would pass for the answer to
    // what act() does next, and a press, a drag and a release would come within one frame, which is no drag.
    void point_at(int x, int y) const {
        run("xdotool mousemove " + std::to_string(x) + " " + std::to_string(y));
        wait_until([&] { return probes()["pointer"] == Json{x, y}; }, "the window has not heard the pointer");
    }
    // What is above a control may have opened or closed just now: until it has stayed where it was found.
    void move_to(const std::string& probe) const {
        std::vector<double> found, r;
        do {
            wait_until([&] { return probes()["probes"].contains(probe); }, "no control named " + probe);
            r = probes()["probes"][probe].get<std::vector<double>>();
            point_at(static_cast<int>((r[0] + r[2]) / 2), static_cast<int>((r[1] + r[3]) / 2));
            pause();
            const Json after = probes()["probes"];
            found = after.contains(probe) ? after[probe].get<std::vector<double>>() : r;
        } while (found != r);
    }

    Scratch scratch_;
    pid_t server_ = 0;
    mutable pid_t window_ = 0;  // 0: it has ended
};

}  // namespace fp8lab::test
