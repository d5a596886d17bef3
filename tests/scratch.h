// A folder of a test's own, gone at the end of the scope.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

struct Scratch {
    std::filesystem::path path;
    Scratch() {
        std::string name = (std::filesystem::temp_directory_path() / "fp8lab-test-XXXXXX").string();
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
