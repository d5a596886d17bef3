// A folder of a test's own, gone at the end of the scope.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

// A word of a shell command, whatever is in it: the checkout may lie in "My Projects".
inline std::string quoted(const std::string& word) {
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
    return out + "'";
}

struct Scratch {
    std::filesystem::path path;
    explicit Scratch(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
        std::string name = (parent / "fp8lab-test-XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    std::string operator/(const std::string& name) const { return (path / name).string(); }
};
