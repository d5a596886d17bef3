#include "core/files/outputs.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/files.h"
#include "core/files/kept_file.h"
#include "core/json/checksum.h"
#include "tests/scratch.h"

using namespace fp8lab;
namespace fs = std::filesystem;

namespace {

// Stdout is this file while one lives.
class StdoutInto {
  public:
    explicit StdoutInto(const fs::path& file) : before_(::dup(STDOUT_FILENO)) {
        std::fflush(stdout);
        const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        ::dup2(fd, STDOUT_FILENO);
        ::close(fd);
    }
    ~StdoutInto() {
        ::dup2(before_, STDOUT_FILENO);
        ::close(before_);
    }
    StdoutInto(const StdoutInto&) = delete;
    StdoutInto& operator=(const StdoutInto&) = delete;

  private:
    int before_;
};

struct Refusal {
    int code = 0;  // 0: none
    std::string where, why;
};

Refusal refusal_of(const std::function<void(Outputs&)>& declare) {
    Outputs outputs;
    try {
        declare(outputs);
    } catch (const Error& error) {
        return {static_cast<int>(error.kind()), error.where(), error.why()};
    }
    return {};
}

}  // namespace

TEST_CASE("an output is never an input, under whatever name it goes") {
    const Scratch scratch;
    const fs::path file = scratch.path / "in.txt";
    write_file(file, "1");
    fs::create_symlink(file, scratch.path / "link");
    fs::create_hard_link(file, scratch.path / "second");
    fs::create_directory_symlink(scratch.path, scratch.path / "here");
    for (const std::string name : {"in.txt", "./in.txt", "link", "second", "here/in.txt", "here/./in.txt"}) {
        CAPTURE(name);
        const Refusal refused = refusal_of([&](Outputs& outputs) {
            outputs.reads(file);
            outputs.writes("--csv", scratch.path / name, Holds::table);
        });
        CHECK(refused.code == 2);
        CHECK(refused.where == "--csv");
        CHECK(refused.why.find("is an input of the same call") != std::string::npos);
        CHECK(refusal_of([&](Outputs& outputs) {
                  outputs.writes("--csv", scratch.path / name, Holds::table);
                  outputs.reads(file);
              }).code == 2);
    }
    CHECK(refusal_of([&](Outputs& outputs) {
              outputs.reads(file);
              outputs.writes("--csv", scratch.path / "out.txt", Holds::table);
          }).code == 0);
    CHECK(read_text(file) == "1");
}

TEST_CASE("an output is never another output, also where neither is there yet") {
    const Scratch scratch;
    fs::create_directory_symlink(scratch.path, scratch.path / "here");
    fs::create_symlink("new", scratch.path / "dangling");
    const auto both = [&](const fs::path& one, const fs::path& other) {
        return refusal_of([&](Outputs& outputs) {
                   outputs.writes("--csv", one, Holds::table);
                   outputs.writes("--json", other, Holds::json);
               })
            .code;
    };
    for (const std::string name : {"new", "./new", "here/new", "dangling"}) {
        CAPTURE(name);
        CHECK(both(scratch.path / "new", scratch.path / name) == 2);
    }
    CHECK(both(scratch.path / "new", scratch.path / "New") == 0);
    CHECK(both("/dev/null", "/dev/null") == 0);  // it holds nothing
    CHECK(both("-", "-") == 2);
    CHECK(refusal_of([](Outputs& outputs) {
              outputs.prints("--json");
              outputs.writes("--csv", "-", Holds::table);
          }).why == "--json and --csv cannot both be stdout");
    CHECK(refusal_of([&](Outputs& outputs) {
              outputs.writes("--csv", scratch.path / "ck", Holds::table);
              outputs.writes_into("--save", scratch.path / "ck");
          }).code == 2);
}

TEST_CASE("the file that stdout leads to is no other output") {
    const Scratch scratch;
    const auto code_of = [&](const std::function<void(Outputs&)>& declare) {
        const StdoutInto redirected(scratch.path / "t");
        return refusal_of(declare).code;
    };
    CHECK(code_of([&](Outputs& outputs) {
              outputs.prints("stdout");
              outputs.writes("--csv", scratch.path / "t", Holds::table);
          }) == 2);
    CHECK(code_of([&](Outputs& outputs) {
              outputs.writes("--csv", "-", Holds::table);
              outputs.writes("--json", "/dev/stdout", Holds::json);
          }) == 2);
    CHECK(code_of([&](Outputs& outputs) {
              outputs.prints("stdout");
              outputs.writes("--csv", scratch.path / "other", Holds::table);
          }) == 0);
}

TEST_CASE("work of another kind is not replaced: the name of the output was forgotten") {
    const Scratch scratch;
    struct Case {
        std::string name, text;
        Holds holds;
        int code;
    };
    for (const Case& c : {Case{"a.f8lab", "{\"fp8lab_bundle\": 1}", Holds::table, 2},
                          Case{"a.f8lab", "anything", Holds::table, 2},
                          Case{"a.f8lab", "{\"fp8lab_bundle\": 1}", Holds::submission, 0},
                          Case{"L1.1.json", "{\n \"fp8lab_evidence\": 1}", Holds::table, 2},
                          Case{"L1.1.json", "{\n \"fp8lab_evidence\": 1}", Holds::page, 2},
                          Case{"run.json", "{\"provenance\": 1}", Holds::json, 0},
                          Case{"a.f8scene", "{}", Holds::json, 2},
                          Case{"a.f8scene", "{}", Holds::numbers, 2},
                          Case{"r.html", "<!DOCTYPE html>", Holds::page, 0},
                          Case{"r.html", "<!DOCTYPE html>", Holds::table, 2},
                          Case{"L1.1.json", "{\n \"fp8lab_evidence\": 1}", Holds::submission, 2},
                          Case{"L1.1.json", "{\n \"fp8lab_evidence\": 1}", Holds::numbers, 2},
                          Case{"codes", "{\"{}", Holds::numbers, 0},  // 0x7B is a code of E4M3
                          Case{"codes", "<!%@", Holds::numbers, 0},
                          Case{"w.npy", "\x93NUMPY", Holds::numbers, 0},
                          Case{"w.npy", "\x93NUMPY", Holds::json, 2},
                          Case{"photo.png", "\x89PNG\r\n", Holds::numbers, 2},
                          Case{"photo.png", "\x89PNG\r\n", Holds::picture, 0},
                          Case{"photo.jpg", "\xFF\xD8\xFF\xE0", Holds::numbers, 2},
                          Case{"paper.pdf", "%PDF-1.7", Holds::numbers, 2},
                          Case{"all.zip", "PK\x03\x04", Holds::table, 2},
                          Case{"tool",
                               "\x7F"
                               "ELF",
                               Holds::numbers, 2},
                          Case{"r.html", "<!DOCTYPE html>", Holds::numbers, 2},
                          Case{"figure.svg", "<svg xmlns", Holds::numbers, 2},
                          Case{"run.csv", "# fp8lab 0.1.0 train", Holds::numbers, 2},
                          Case{"run.csv", "# fp8lab 0.1.0 train", Holds::table, 0},
                          Case{"w.safetensors", "        {}", Holds::table, 2},
                          Case{"w.safetensors", "        {}", Holds::numbers, 2},
                          Case{"w.safetensors", "        {}", Holds::tensors, 0},
                          Case{"marks.csv", "path,exercise\n", Holds::table, 0},
                          Case{"empty", "", Holds::table, 0}}) {
        CAPTURE(c.name);
        const fs::path file = scratch.path / c.name;
        write_file(file, c.text);
        const Refusal refused = refusal_of([&](Outputs& outputs) { outputs.writes("-o", file, c.holds); });
        CHECK(refused.code == c.code);
        if (c.code != 0) CHECK(refused.why.find("name another file") != std::string::npos);
        CHECK(read_text(file) == c.text);
    }
}

TEST_CASE("what cannot be written is said before the work") {
    const Scratch scratch;
    const auto code_of = [&](const fs::path& path) {
        return refusal_of([&](Outputs& outputs) { outputs.writes("-o", path, Holds::page); }).code;
    };
    CHECK(code_of("") == 2);
    CHECK(code_of(scratch.path) == 1);
    CHECK(code_of(scratch.path / "new/") == 1);
    CHECK(code_of(scratch.path / "no/such/folder") == 1);
    CHECK(code_of(scratch.path / std::string(300, 'x')) == 1);
    CHECK(code_of("/proc/self/mem/x") == 1);
    fs::create_symlink("loop", scratch.path / "loop");
    CHECK(code_of(scratch.path / "loop") == 1);
    write_file(scratch.path / "file", "");
    const auto into = [&](const fs::path& path) {
        return refusal_of([&](Outputs& outputs) { outputs.writes_into("--save", path); }).code;
    };
    CHECK(into("") == 2);
    CHECK(into(scratch.path / "file") == 1);
    CHECK(into(scratch.path / "file/below") == 1);
    CHECK(into(scratch.path / "new/below") == 0);
    CHECK(into(scratch.path / "new/") == 0);
    CHECK_FALSE(fs::exists(scratch.path / "new"));  // it is made when something is written
}

TEST_CASE("a link stays a link, and what it leads to is replaced") {
    const Scratch scratch;
    fs::create_directory(scratch.path / "far");
    write_file(scratch.path / "far/a", "old");
    fs::create_symlink("far/a", scratch.path / "link");
    fs::create_symlink("link", scratch.path / "link of link");
    fs::create_symlink("far/new", scratch.path / "dangling");
    write_file(scratch.path / "link of link", "new");
    write_file(scratch.path / "dangling", "made");
    CHECK(fs::is_symlink(scratch.path / "link"));
    CHECK(fs::is_symlink(scratch.path / "link of link"));
    CHECK(fs::is_symlink(scratch.path / "dangling"));
    CHECK(read_text(scratch.path / "far/a") == "new");
    CHECK(read_text(scratch.path / "far/new") == "made");
}

TEST_CASE("a kept file that is a link keeps the one before, too") {
    const Scratch scratch;
    fs::create_directory(scratch.path / "far");
    fs::create_symlink("far/settings.json", scratch.path / "settings.json");
    const fs::path file = scratch.path / "settings.json";
    save_kept(file, with_checksum({{"theme", "dark"}}, 1));
    save_kept(file, with_checksum({{"theme", "light"}}, 1));
    CHECK(fs::is_symlink(file));
    CHECK(read_text(file).find("light") != std::string::npos);
    CHECK(read_text(file.string() + ".bak").find("dark") != std::string::npos);
}

TEST_CASE("a new file has the mode that the user's mask says, and a name of 255 bytes is not too long") {
    const Scratch scratch;
    const mode_t before = ::umask(027);
    const fs::path file = scratch.path / std::string(255, 'n');
    write_file(file, "x");
    ::umask(before);
    struct stat info {};
    REQUIRE(::stat(file.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0640);
}

// A child checks the folder again and again until the signal ends it, each time at another place.
TEST_CASE("a check of a folder that a signal ends leaves no file there") {
    const Scratch scratch;
    // Else doctest's handler runs in a child that has none of its own yet, and may wait for ever for what the fork left locked.
    const auto before = ::signal(SIGTERM, SIG_DFL);
    for (int i = 0; i < 40; ++i) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            ::close(STDERR_FILENO);
            handle_end_signals("test");
            for (;;) static_cast<void>(takes_files(scratch.path));
        }
        ::usleep(2000 + 37 * static_cast<useconds_t>(i));
        ::kill(child, SIGTERM);
        int status = 0;
        ::waitpid(child, &status, 0);
        // Before the child has its handlers the signal itself ends it.
        CHECK((WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM)));
    }
    CHECK(fs::is_empty(scratch.path));
    ::signal(SIGTERM, before);
}
