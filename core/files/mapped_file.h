// A memory-mapped file: only the pages that are used are read, so that one tensor of a file of many gigabytes
// costs the time and memory of one tensor.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace fp8lab {

// Read-only. "-" (stdin) and what cannot be mapped, such as a pipe, is read whole. If another program
// shortens the file while it is mapped, this process ends with SIGBUS: copy what is needed and unmap soon.
class MappedFile {
  public:
    // Throws input_error with the system's reason.
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&&) = delete;
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::span<const std::byte> bytes_;
    std::vector<std::byte> read_;  // instead of a mapping
    bool mapped_ = false;
};

}  // namespace fp8lab
