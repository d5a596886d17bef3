// The real binary as a process of its own, with streams that go wrong and signals: what process.h, which goes
// through a shell, cannot do.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "process.h"
#include "tests/sanitized.h"

#ifdef FP8LAB_GUI
constexpr bool kHasWindow = true;
#else
constexpr bool kHasWindow = false;  // `screenshot` only says so
#endif

// Where a stream of the child leads. unread: a full pipe whose reader does not read; broken: a pipe without a
// reader.
enum class Stream { file, full, closed, unread, broken };

class Child {
  public:
    struct Streams {
        Stream out = Stream::file, err = Stream::file;
        bool input_ends = true;       // else stdin is a pipe into which nothing comes
        bool ignores_hangup = false;  // as nohup starts it
        std::string display = {};
        std::string terminal = {};  // stderr leads there
    };

    Child(const Scratch& scratch, const std::vector<std::string>& arguments, const Streams& streams)
        : out_file_(scratch / "child.out"), err_file_(scratch / "child.err") {
        std::filesystem::remove(out_file_);
        std::filesystem::remove(err_file_);
        if (!streams.input_ends && ::pipe2(stdin_, O_CLOEXEC) != 0) std::abort();
        std::vector<char*> words = {const_cast<char*>(FP8LAB_BINARY)};
        for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
        words.push_back(nullptr);
        const int out = open_stream(streams.out, out_file_),
                  err = streams.terminal.empty()
                            ? open_stream(streams.err, err_file_)
                            : ::open(streams.terminal.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
        const int in = streams.input_ends ? ::open("/dev/null", O_RDONLY | O_CLOEXEC) : stdin_[0];
        const std::string home = "FP8LAB_HOME=" + (scratch / "home");
        pid_ = ::fork();
        if (pid_ == 0) {
            for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);
            if (streams.ignores_hangup) ::signal(SIGHUP, SIG_IGN);
            ::dup2(in, 0);
            out < 0 ? ::close(1) : ::dup2(out, 1);
            err < 0 ? ::close(2) : ::dup2(err, 2);
            ::setenv("DISPLAY", streams.display.c_str(), 1);
            ::unsetenv("WAYLAND_DISPLAY");
            ::putenv(const_cast<char*>(home.c_str()));
            ::execv(FP8LAB_BINARY, words.data());
            ::_exit(127);
        }
        for (const int fd : {out, err, in})
            if (fd >= 0 && fd != stdin_[0]) ::close(fd);
    }
    ~Child() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        for (const int fd : kept_) ::close(fd);
        for (const int fd : stdin_)
            if (fd >= 0) ::close(fd);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    std::string out() const { return slurp(out_file_); }
    std::string err() const { return slurp(err_file_); }
    void signal(int number) const { ::kill(pid_, number); }

    // Of the processor, until now; after wait() in all.
    double cpu_seconds() const {
        if (pid_ < 0) return used_;
        const std::string stat = slurp("/proc/" + std::to_string(pid_) + "/stat");
        std::istringstream fields(stat.substr(stat.rfind(')') + 1));  // from the third on
        std::string other;
        for (int field = 3; field < 14; ++field) fields >> other;
        long user = 0, system = 0;
        fields >> user >> system;
        return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    }

    // The exit code; -1: it did not end in time, or was ended by the signal itself and not by its handler.
    // The limit is one against hanging, for slow machines.
    int wait(std::chrono::seconds limit = std::chrono::seconds(60)) {
        int status = 0;
        rusage used{};
        const bool ended = until([&] { return ::wait4(pid_, &status, WNOHANG, &used) == pid_; }, limit);
        if (!ended) return -1;
        pid_ = -1;
        const auto seconds = [](const timeval& t) {
            return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
        };
        used_ = seconds(used.ru_utime) + seconds(used.ru_stime);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    // Its handlers are installed: a signal is the program's own affair from here on.
    bool handles_signals() const {
        return until([&] {
            std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
            for (std::string line; std::getline(status, line);)
                if (line.starts_with("SigCgt:"))
                    return (std::stoull(line.substr(7), nullptr, 16) & (1ULL << (SIGHUP - 1))) != 0;
            return false;
        });
    }

    static bool until(const std::function<bool()>& happened,
                      std::chrono::seconds limit = std::chrono::seconds(60)) {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (!happened()) {
            if (std::chrono::steady_clock::now() > end) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        return true;
    }

  private:
    int open_stream(Stream stream, const std::string& file) {
        if (stream == Stream::closed) return -1;
        if (stream == Stream::full) return ::open("/dev/full", O_WRONLY | O_CLOEXEC);
        if (stream == Stream::file)
            return ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        int ends[2] = {-1, -1};
        if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
        if (stream == Stream::broken) {
            ::close(ends[0]);
            return ends[1];
        }
        kept_.push_back(ends[0]);
        const std::string page(4096, 'x');
        ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
        while (::write(ends[1], page.data(), page.size()) > 0) continue;
        ::fcntl(ends[1], F_SETFL, 0);
        return ends[1];
    }

    std::string out_file_, err_file_;
    int stdin_[2] = {-1, -1};
    std::vector<int> kept_;
    pid_t pid_ = -1;
    double used_ = 0;
};
