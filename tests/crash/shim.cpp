// Preloaded into a program under test: something goes wrong at the Nth call of write, fsync or rename that
// touches FAULT_FOLDER. FAULT: "kill" before the call; "torn": half of a write, then kill; an errno's number:
// that call and all later ones fail with it ("once:" before it: that one only). The number of calls so far is
// in FAULT_COUNT, a file outside the folder. Without FAULT they are only counted.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

std::atomic<long> g_calls = 0;

const char* setting(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool within(const char* path) {
    const std::string folder = setting("FAULT_FOLDER");
    return !folder.empty() && std::strncmp(path, folder.c_str(), folder.size()) == 0;
}

bool within(int fd) {
    char path[PATH_MAX] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    return ::readlink(link.c_str(), path, sizeof path - 1) > 0 && within(path);
}

enum class Fate { go_on, tear, fail };

// Of a call that counts.
Fate fate() {
    const long call = ++g_calls;
    if (const char* file = std::getenv("FAULT_COUNT")) {
        static const auto open_file = next<int (*)(const char*, int, ...)>("open");
        static const auto write_bytes = next<ssize_t (*)(int, const void*, size_t)>("write");
        const int fd = open_file(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        const std::string text = std::to_string(call);
        if (fd >= 0 && write_bytes(fd, text.data(), text.size()) >= 0) ::close(fd);
    }
    std::string fault = setting("FAULT");
    const long at = std::atol(setting("FAULT_AT"));
    if (fault.empty() || call < at) return Fate::go_on;
    const bool once = fault.starts_with("once:");
    if (once) fault.erase(0, 5);
    if (once && call > at) return Fate::go_on;
    if (fault == "kill") ::kill(::getpid(), SIGKILL);
    if (fault == "torn") return Fate::tear;
    errno = std::atoi(fault.c_str());
    return Fate::fail;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t count) {
    static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
    const Fate what = within(fd) ? fate() : Fate::go_on;
    if (what == Fate::fail) return -1;
    if (what == Fate::tear) {
        real(fd, bytes, count / 2);
        ::kill(::getpid(), SIGKILL);
    }
    return real(fd, bytes, count);
}

int fsync(int fd) {
    static const auto real = next<int (*)(int)>("fsync");
    const Fate what = within(fd) ? fate() : Fate::go_on;
    if (what == Fate::tear) ::kill(::getpid(), SIGKILL);
    return what == Fate::fail ? -1 : real(fd);
}

int rename(const char* from, const char* to) {
    static const auto real = next<int (*)(const char*, const char*)>("rename");
    const Fate what = within(to) ? fate() : Fate::go_on;
    if (what == Fate::tear) ::kill(::getpid(), SIGKILL);
    return what == Fate::fail ? -1 : real(from, to);
}
}
