// A folder of a test's own, gone at the end of the scope.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace fp8lab {

class Scratch {
  public:
    Scratch() : folder_(std::filesystem::temp_directory_path() / ("fp8lab-nn-" + std::to_string(getpid()))) {
        std::filesystem::create_directories(folder_);
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    std::filesystem::path path(const std::string& name = {}) const { return folder_ / name; }

  private:
    std::filesystem::path folder_;
};

}  // namespace fp8lab
