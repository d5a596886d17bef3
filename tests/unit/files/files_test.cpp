#include "core/files/files.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.h"
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
