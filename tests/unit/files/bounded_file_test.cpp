// Files from strangers: looked at before they are read.
#include "core/files/bounded_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/files/growing_file.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

std::string reason_against(const std::filesystem::path& path, std::size_t most) {
    try {
        read_bounded(path, most);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(error.where() == path.string());
        return error.why();
    }
    return "";
}

}  // namespace

TEST_CASE("a file is read whole up to its limit, and not one byte beyond") {
    const Scratch home;
    const std::string text(200'000, 'x');
    write_file(home.path / "a", std::string_view(text));
    CHECK(read_bounded(home.path / "a", text.size()) == text);
    CHECK(reason_against(home.path / "a", text.size() - 1) == "is 200 KB; such a file has at most 200 KB");
    CHECK(read_head(home.path / "a", 10) == "xxxxxxxxxx");
    write_file(home.path / "empty", std::string_view());
    CHECK(read_bounded(home.path / "empty", 0).empty());
    // A file whose size the system does not say.
    CHECK(read_bounded("/proc/self/status", 1 << 16).find("VmRSS") != std::string::npos);
    CHECK(reason_against("/proc/self/status", 10).find("is larger than") == 0);
}

TEST_CASE("what is no file is said at once: nothing waits for a pipe, nothing reads a device") {
    const Scratch home;
    REQUIRE(::mkfifo((home / "pipe").c_str(), 0600) == 0);
    CHECK(reason_against(home.path / "pipe", 100) == "is a pipe, not a file");
    CHECK(reason_against("/dev/zero", 100) == "is a device, not a file");
    CHECK(reason_against(home.path, 100) == "is a folder, not a file");
    CHECK(reason_against(home.path / "absent", 100) == "No such file or directory");
    std::filesystem::create_symlink("loop", home.path / "loop");
    CHECK(reason_against(home.path / "loop", 100).find("symbolic links") != std::string::npos);
    CHECK_THROWS_AS(read_head(home.path / "pipe", 10), Error);
}

TEST_CASE("a growing file has its name only when it is kept, until then its pieces are beside it") {
    const Scratch home;
    write_file(home.path / "t.csv", std::string_view("before"));
    const auto hidden = [&] {
        std::string text;
        for (const auto& entry : std::filesystem::directory_iterator(home.path))
            if (entry.path().filename().string().starts_with(".t.csv.")) text += read_text(entry.path());
        return text;
    };
    {
        GrowingFile file(home.path / "t.csv");
        file.append("one\n");
        file.append("two\n");
        CHECK(hidden() == "one\ntwo\n");
        CHECK(read_text(home.path / "t.csv") == "before");
    }
    CHECK(hidden().empty());
    CHECK(read_text(home.path / "t.csv") == "before");
    GrowingFile file(home.path / "t.csv");
    file.append("three\n");
    file.keep();
    CHECK(read_text(home.path / "t.csv") == "three\n");
    CHECK(hidden().empty());
    CHECK_THROWS_AS(GrowingFile(home.path / "no" / "t.csv"), Error);
}
