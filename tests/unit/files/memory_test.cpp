// Free memory, of a machine that is made up, and what is refused for lack of it.
#include "core/files/memory.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/base/error.h"
#include "tests/sanitized.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

struct Machine {
    Scratch scratch;
    void has(const std::string& file, const std::string& text) const {
        const auto path = scratch.path / file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    std::uint64_t free() const { return free_memory(scratch.path); }
};

constexpr std::uint64_t kKilo = 1024, kMega = kKilo * kKilo;

}  // namespace

TEST_CASE("free memory is what the kernel says is available") {
    const Machine machine;
    machine.has("proc/meminfo", "MemTotal:       24683716 kB\nMemFree:  5 kB\nMemAvailable:    1000 kB\n");
    CHECK(machine.free() == 1000 * kKilo);
}

TEST_CASE("a group's limit counts, its own and those above, and its page cache is free") {
    const Machine machine;
    machine.has("proc/meminfo", "MemAvailable: 16777216 kB\n");
    machine.has("proc/self/cgroup", "3:cpuset:/elsewhere\n0::/user/job\n");
    machine.has("sys/fs/cgroup/user/job/memory.max", "max\n");
    machine.has("sys/fs/cgroup/user/job/memory.current", "5\n");
    CHECK(machine.free() == 16 * kKilo * kMega);
    machine.has("sys/fs/cgroup/user/memory.max", std::to_string(500 * kMega) + "\n");
    machine.has("sys/fs/cgroup/user/memory.current", std::to_string(450 * kMega) + "\n");
    CHECK(machine.free() == 50 * kMega);
    machine.has("sys/fs/cgroup/user/memory.stat", "anon 1\nfile 9\ninactive_file " +
                                                      std::to_string(60 * kMega) + "\nactive_file " +
                                                      std::to_string(40 * kMega) + "\n");
    CHECK(machine.free() == 150 * kMega);
    machine.has("sys/fs/cgroup/memory.max", std::to_string(3 * kMega));
    machine.has("sys/fs/cgroup/memory.current", std::to_string(4 * kMega));
    CHECK(machine.free() == 0);
}

TEST_CASE("a machine that says nothing has no limit but that of the process") {
    if (kSanitized) {
        MESSAGE("skipped: a sanitizer takes terabytes of addresses");
        return;
    }
    const Machine machine;
    const pid_t child = ::fork();
    if (child == 0) {
        const rlimit limit{std::uint64_t{1} << 40, std::uint64_t{1} << 40};
        const bool none = machine.free() > (std::uint64_t{1} << 60),
                   set = ::setrlimit(RLIMIT_AS, &limit) == 0;
        const std::uint64_t left = machine.free();
        ::_exit(none && set && left < limit.rlim_cur && left > limit.rlim_cur - (std::uint64_t{1} << 37) ? 0
                                                                                                         : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
}

TEST_CASE("what needs more than there is is refused with both numbers") {
    CHECK_NOTHROW(require_memory("train", 1000, 1000));
    try {
        require_memory("train", 85.9e9, 23'600'000'000);
        FAIL("was allowed");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::failed);
        CHECK(std::string(error.what()) == "train: not enough memory: 85.9 GB are needed, 23.6 GB are free");
    }
    CHECK_THROWS_AS(require_memory("train", 1e300, std::uint64_t{1} << 63), Error);
    CHECK_THROWS_AS(require_memory("train", 1e30), Error);
    CHECK_NOTHROW(require_memory("train", 2e6));
}
