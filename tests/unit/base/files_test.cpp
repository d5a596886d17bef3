#include "core/base/files.h"

#include <doctest/doctest.h>

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
        read_file("/no/such/file");
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(std::string(error.what()) == "/no/such/file: No such file or directory");
    }
    CHECK_THROWS_AS(read_file("/tmp"), Error);
}
