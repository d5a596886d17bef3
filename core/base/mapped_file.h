// The bytes of a file without reading it: pages come in when they are touched, so that one tensor out of a
// file of many gigabytes costs one tensor.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace fp8lab {

// Read-only. "-" (stdin) and what cannot be mapped, a pipe say, is read whole. A file that another program
// cuts short meanwhile ends this one (SIGBUS): take out what is needed and let the mapping go.
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
