// A test that ctest never runs passes. ctest's list of tests separates by semicolons, and a name with one becomes two
// entries that match no test case; a bracket without its other half joins all names behind it, and nothing runs.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

TEST_CASE("no name of a test case has what separates or groups a list of CMake's") {
    const std::regex name(R"((?:TEST_CASE|TEST_CASE_TEMPLATE)\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+))");
    int names = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(FP8LAB_SOURCE "/tests")) {
        if (entry.path().extension() != ".cpp") continue;
        CAPTURE(entry.path());
        std::ifstream file(entry.path());
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at, ++names)
            CHECK((*at)[1].str().find_first_of(";[]") == std::string::npos);
    }
    CHECK(names > 1000);
}
