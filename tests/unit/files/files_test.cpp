#include "core/files/files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/files/growing_file.h"
#include "core/files/kept_file.h"
#include "core/json/checksum.h"
#include "tests/scratch.h"

using namespace fp8lab;
namespace fs = std::filesystem;

namespace {

auto entries(const Scratch& folder) {
    return std::distance(fs::directory_iterator(folder.path), fs::directory_iterator());
}

}  // namespace

TEST_CASE("a file comes back as it was written, and no temporary stays behind") {
    const Scratch folder;
    write_file(folder.path / "a", std::string_view("one\0two", 7));
    CHECK(read_text(folder.path / "a") == std::string("one\0two", 7));
    write_file(folder.path / "a", std::string_view("three"));
    CHECK(read_text(folder.path / "a") == "three");
    CHECK(entries(folder) == 1);
}

TEST_CASE("a file that is replaced passes on its mode, and its owner where root may set it") {
    const Scratch folder;
    const fs::path file = folder.path / "a", link = folder.path / "link";
    const auto info_of = [](const fs::path& path) {
        struct stat info {};
        REQUIRE(::stat(path.c_str(), &info) == 0);
        return info;
    };
    const mode_t before = ::umask(022);
    write_file(file, std::string_view("new"));
    CHECK((info_of(file).st_mode & 07777) == 0644);
    fs::create_symlink("a", link);
    for (const mode_t mode : {mode_t{0600}, mode_t{0400}, mode_t{0660}, mode_t{0777}}) {
        REQUIRE(::chmod(file.c_str(), mode) == 0);
        write_file(file, std::string_view("again"));
        CHECK((info_of(file).st_mode & 07777) == mode);
        write_file(link, std::string_view("through the link"));
        CHECK((info_of(file).st_mode & 07777) == mode);
    }
    REQUIRE(::chmod(file.c_str(), 0600) == 0);
    {
        GrowingFile growing(file);
        growing.append("secret");
        for (const auto& entry :
             fs::directory_iterator(folder.path))  // it cannot be read while it grows either
            if (entry.path().filename().string().starts_with('.'))
                CHECK((info_of(entry.path()).st_mode & 07777) == 0600);
    }
    write_file(folder.path / "b", std::string_view("x"), file);  // a new file like another
    CHECK((info_of(folder.path / "b").st_mode & 07777) == 0600);
    if (::getuid() == 0) {
        REQUIRE(::chown(file.c_str(), 65534, 65534) == 0);
        write_file(file, std::string_view("by root"));
        CHECK(info_of(file).st_uid == 65534);
        CHECK(info_of(file).st_gid == 65534);
    }
    ::umask(before);
}

TEST_CASE("a kept file and the one before pass on their mode, also where the file was damaged") {
    const Scratch folder;
    const fs::path file = folder.path / "settings.json";
    const auto mode_of = [](const fs::path& path) {
        struct stat info {};
        REQUIRE(::stat(path.c_str(), &info) == 0);
        return info.st_mode & 07777;
    };
    save_kept(file, with_checksum({{"n", 1}}, 2));
    REQUIRE(::chmod(file.c_str(), 0600) == 0);
    save_kept(file, with_checksum({{"n", 2}}, 2));
    CHECK(mode_of(file) == 0600);
    CHECK(mode_of(folder.path / "settings.json.bak") == 0600);
    REQUIRE(::truncate(file.c_str(), 5) == 0);
    save_kept(file, with_checksum({{"n", 3}}, 2));
    CHECK(mode_of(file) == 0600);
    CHECK(mode_of(folder.path / "settings.json.damaged") == 0600);
}

TEST_CASE("a write that fails says why and leaves no temporary") {
    const Scratch folder;
    CHECK_THROWS_AS(write_file(folder.path / "no/such/folder", std::string_view("x")), Error);
    fs::create_directory(folder.path / "taken");
    CHECK_THROWS_AS(write_file(folder.path / "taken", std::string_view("x")), Error);
    CHECK(entries(folder) == 1);
}

TEST_CASE("reading what is not there says which file and why") {
    try {
        read_bytes("/no/such/file");
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(std::string(error.what()) == "/no/such/file: No such file or directory");
    }
    CHECK_THROWS_AS(read_bytes("/tmp"), Error);
}

TEST_CASE("a descriptor of another process is not taken for one of this process") {
    int to_child[2] = {}, from_child[2] = {};
    REQUIRE(::pipe(to_child) == 0);
    REQUIRE(::pipe(from_child) == 0);
    const pid_t child = ::fork();
    if (child == 0) {  // its stdout is the pipe; it ends when the parent closes the other pipe
        ::dup2(from_child[1], STDOUT_FILENO);
        ::close(to_child[1]);
        char ready = 'r';
        static_cast<void>(::write(from_child[1], &ready, 1) + ::read(to_child[0], &ready, 1));
        ::_exit(0);
    }
    char byte = 0;
    REQUIRE(::read(from_child[0], &byte, 1) == 1);
    const std::string name = "/proc/" + std::to_string(child) + "/fd/1";
    CHECK(write_target(name).descriptor == -1);
    write_file(name, std::string_view("x"));
    CHECK(::read(from_child[0], &byte, 1) == 1);
    CHECK(byte == 'x');
    CHECK(write_target("/dev/stdout").descriptor == STDOUT_FILENO);
    CHECK(write_target("/proc/self/fd/2").descriptor == STDERR_FILENO);
    for (const int fd : {to_child[0], to_child[1], from_child[0], from_child[1]}) ::close(fd);
    ::waitpid(child, nullptr, 0);
}
