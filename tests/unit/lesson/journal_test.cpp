#include "core/lesson/journal.h"

#include <doctest/doctest.h>

#include <fstream>

#include "core/base/error.h"
#include "core/files/files.h"
#include "tests/scratch.h"

using namespace fp8lab;
namespace fs = std::filesystem;

TEST_CASE("what was noted is found after a crash, the last of each key, closing leaves nothing") {
    const Scratch folder;
    const fs::path file = folder.path / "state/journal.jsonl";
    CHECK_FALSE(Journal::left_behind(file).has_value());
    Journal journal(file);
    journal.assume("a", 1);
    journal.note("a", 1, "14:30");
    CHECK_FALSE(fs::exists(file));  // nothing changed yet
    for (int i = 2; i < 9; ++i) journal.note("a", i, "14:3" + std::to_string(i));
    journal.note("b", "x", "14:40");
    const auto size = fs::file_size(file);
    journal.note("b", "x", "14:41");
    CHECK(fs::file_size(file) == size);
    const auto left = Journal::left_behind(file);
    REQUIRE(left.has_value());
    CHECK(left->at == "14:40");
    CHECK(left->values.at("a") == 8);
    CHECK(left->values.at("b") == "x");
    journal.remove();
    CHECK_FALSE(fs::exists(file));
}

TEST_CASE("cut anywhere, or with any byte changed, the lines that are whole still count") {
    const Scratch folder;
    const fs::path file = folder.path / "journal.jsonl";
    Journal journal(file);
    for (int i = 1; i <= 5; ++i) journal.note("a", i, "14:32");
    const std::string text = read_text(file);
    for (std::size_t length = 0; length < text.size(); ++length) {
        std::ofstream(file) << text.substr(0, length);
        const auto left = Journal::left_behind(file);
        // A line is whole without its newline.
        const auto whole =
            std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length + 1), '\n');
        CHECK(left.has_value() == (whole > 0));
        if (left) CHECK(left->values.at("a") == whole);
    }
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string changed = text;
        changed[at] = changed[at] == '#' ? '$' : '#';
        std::ofstream(file) << changed;
        const auto left = Journal::left_behind(file);
        REQUIRE(left.has_value());
        CHECK(left->values.at("a") >= 3);  // a newline that is gone takes two lines with it
    }
}

TEST_CASE("a line that nests without end is passed over") {
    const Scratch folder;
    const fs::path file = folder.path / "journal.jsonl";
    Journal journal(file);
    journal.note("a", 1, "14:32");
    std::ofstream(file, std::ios::app)
        << R"({"key": "b", "value": )" << std::string(1'000'000, '[') << std::string(1'000'000, ']') << "}\n";
    const auto left = Journal::left_behind(file);
    REQUIRE(left.has_value());
    CHECK(left->values.size() == 1);
}

TEST_CASE("it goes on with what a crash left, and is written anew when most of it is old") {
    const Scratch folder;
    const fs::path file = folder.path / "journal.jsonl";
    {
        Journal journal(file);
        journal.note("a", 1, "14:32");
        journal.note("b", 1, "14:33");
    }
    std::ofstream(file, std::ios::app) << "{\"key\": \"a\", \"val";
    Journal journal(file);
    journal.take_over(*Journal::left_behind(file));
    journal.note("b", 2, "14:34");
    const auto left = Journal::left_behind(file);
    CHECK(left->values.at("a") == 1);
    CHECK(left->values.at("b") == 2);
    for (int i = 0; i < 300; ++i) journal.note("c", std::string(10000, 'x') + std::to_string(i), "14:35");
    CHECK(fs::file_size(file) < 1'300'000);
    CHECK(Journal::left_behind(file)->values.at("a") == 1);
    CHECK(Journal::left_behind(file)->values.at("c").get<std::string>().ends_with("x299"));
}

TEST_CASE("a folder that takes no file is an error with the reason, and nothing else happens") {
    Journal journal("/proc/fp8lab/journal.jsonl");
    CHECK_THROWS_AS(journal.note("a", 1, "14:32"), Error);
    CHECK_THROWS_AS(journal.note("a", 1, "14:32"), Error);
    journal.sync();
    journal.remove();
}
