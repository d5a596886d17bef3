// Files that are read in parts, and pipes, which are read once and no further than their head says.
#include "core/files/random_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "core/base/error.h"
#include "core/files/files.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

// A format whose first byte is the size of the file; it takes two bytes to say so.
std::uint64_t size_of(std::span<const std::byte> head) {
    return head.size() < 2 ? 2 : std::to_integer<std::uint64_t>(head[0]);
}

std::string text_of(const RandomFile& file) {
    const auto bytes = file.read_some(0, 1000);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Pipe {
    Scratch scratch;
    std::string name = scratch / "pipe";
    Pipe() { REQUIRE(::mkfifo(name.c_str(), 0600) == 0); }
};

std::string why_not(const std::filesystem::path& path, Pipes pipes) {
    try {
        const RandomFile file(path, size_of, pipes);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.why();
    }
    return "opened";
}

}  // namespace

TEST_CASE("of a pipe as much is read as its head says, and one byte more where there is one") {
    for (const std::string& rest :
         std::vector<std::string>{"bcdef", "bcdefg", "bcdefghijklmnopqrstuvwxyz", "b"}) {
        const std::string text = "\x06" + rest;
        const Pipe pipe;
        std::thread writer([&] {  // waits for the reader, as a shell's does
            const int fd = ::open(pipe.name.c_str(), O_WRONLY);
            static_cast<void>(!::write(fd, text.data(), text.size()));
            ::close(fd);
        });
        const RandomFile file(pipe.name, size_of, Pipes::read);
        writer.join();
        CHECK(text_of(file) == text.substr(0, 7));
        CHECK(file.size() == std::min<std::size_t>(text.size(), 7));
        std::byte last{};
        file.read(1, std::span(&last, 1));
        CHECK(last == std::byte{'b'});
        CHECK_THROWS_WITH_AS(file.read(7, std::span(&last, 1)), doctest::Contains("the file ends here"),
                             Error);
    }
}

TEST_CASE("what is no file is not opened, whatever its size would be") {
    const Pipe pipe;
    CHECK(why_not(pipe.name, Pipes::refused) == "is a pipe, not a file");
    for (const Pipes pipes : {Pipes::refused, Pipes::read}) {
        CHECK(why_not("/dev/zero", pipes) == "is a device, not a file");
        CHECK(why_not(pipe.scratch.path, pipes) == "is a folder, not a file");
        CHECK(why_not(pipe.scratch.path / "none", pipes) == "No such file or directory");
        const std::string name = pipe.scratch / "s";
        ::sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
        REQUIRE(name.size() < sizeof address.sun_path);
        std::ranges::copy(name, address.sun_path);
        const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
        static_cast<void>(::bind(socket, reinterpret_cast<::sockaddr*>(&address), sizeof address));
        CHECK(why_not(name, pipes) == "is a socket, not a file");
        ::close(socket);
    }
    CHECK_THROWS_WITH_AS(RandomFile(std::filesystem::path("-")), doctest::Contains("is a stream"), Error);
}

TEST_CASE("a regular file is read in parts, and what is in memory likewise") {
    const Scratch scratch;
    write_file(scratch.path / "a", std::string_view("0123456789"));
    const auto bytes = read_bytes(scratch.path / "a");
    const RandomFile on_disk(scratch.path / "a"), in_memory(bytes, "a");
    for (const RandomFile* file : {&on_disk, &in_memory}) {
        std::array<std::byte, 3> part{};
        file->read(4, part);
        CHECK(part == std::array{std::byte{'4'}, std::byte{'5'}, std::byte{'6'}});
        CHECK(file->read_some(8, 100).size() == 2);
        CHECK(file->read_some(80, 100).empty());
        CHECK_THROWS_WITH_AS(file->read(8, part), doctest::Contains("byte 10: the file ends here"), Error);
    }
}
