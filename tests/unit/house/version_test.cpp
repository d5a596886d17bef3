// The version stands in one place, project() of the CMakeLists.txt at the root, and CHANGELOG.md has an entry for it.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path kRoot = FP8LAB_SOURCE;

std::string text_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The first group of every match.
std::vector<std::string> found_in(const std::string& text, const std::regex& pattern) {
    std::vector<std::string> out;
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
        out.push_back((*at)[1]);
    return out;
}

std::string version() {
    const auto found = found_in(text_of(kRoot / "CMakeLists.txt"),
                                std::regex(R"(project\(fp8lab VERSION (\d+\.\d+\.\d+) )"));
    REQUIRE(found.size() == 1);
    return found[0];
}

}  // namespace

TEST_CASE(
    "the changelog begins with an entry for the version, and each version has one entry that says "
    "something") {
    const std::string text = text_of(kRoot / "CHANGELOG.md");
    const auto versions = found_in(text, std::regex("(?:^|\n)## ([^\n]*)"));
    REQUIRE_FALSE(versions.empty());
    CHECK(versions[0] == version());
    CHECK(std::set(versions.begin(), versions.end()).size() == versions.size());
    for (const std::string& one : versions) {
        CAPTURE(one);
        CHECK(std::regex_match(one, std::regex(R"(\d+\.\d+\.\d+)")));
        const auto begin = text.find("\n## " + one + "\n") + one.size() + 5;
        const std::string entry = text.substr(begin, text.find("\n## ", begin) - begin);
        CHECK(entry.find_first_not_of("\n ") != std::string::npos);
    }
}

// Sources take it from the macro FP8LAB_VERSION, packages from PROJECT_VERSION. What was written by a version, as scenes,
// recordings and the corpus of tests/compat, names that version for good, and so do tests of it and comments about it.
TEST_CASE("no build file, script, package text or document repeats the version") {
    const std::set<std::string> extensions = {".cmake", ".in",  ".sh",  ".py",
                                              ".md",    ".yml", ".txt", ".desktop"};
    const std::set<fs::path> own = {kRoot / "CMakeLists.txt", kRoot / "CHANGELOG.md"};
    const std::string wanted = version();
    std::set<fs::path> files = {kRoot / "README.md", kRoot / "CONTRIBUTING.md", kRoot / "CMakePresets.json"};
    for (const char* folder :
         {"app", "core", "kernels", "labs", "packaging", "scripts", ".github", "assets/docs", "assets/text"})
        for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
            if (extensions.contains(entry.path().extension())) files.insert(entry.path());
    CHECK(files.contains(kRoot / "packaging/changelog.in"));
    for (const fs::path& file : files)
        if (!own.contains(file))
            CHECK_MESSAGE(text_of(file).find(wanted) == std::string::npos, file.string());
}

TEST_CASE("no source has the version as a text of its own") {
    const std::string wanted = version();
    const std::regex texts(R"re("((?:[^"\\\n]|\\.)*)")re");
    for (const char* folder : {"app", "core", "kernels", "labs"})
        for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".cpp" && extension != ".h" && extension != ".cu" && extension != ".cuh")
                continue;
            std::ifstream in(entry.path());
            for (std::string line; std::getline(in, line);) {
                const std::string code = line.substr(0, line.find("//"));
                for (const std::string& text : found_in(code, texts))
                    CHECK_MESSAGE(text.find(wanted) == std::string::npos, entry.path().string(), ": ", text);
            }
        }
}
