// Parts of a large file, read where they are needed. Unlike a mapping (mapped_file.h) it may stay open for minutes: a
// file that another program shortens or replaces meanwhile is an error here, not a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace fp8lab {

class RandomFile {
  public:
    // Throws input_error with the system's reason; also for a folder, a pipe or a device.
    explicit RandomFile(const std::filesystem::path& path);
    ~RandomFile();
    RandomFile(RandomFile&& other) noexcept;
    RandomFile& operator=(RandomFile&&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::uint64_t size() const { return size_; }
    std::int64_t modified_ns() const { return modified_ns_; }  // since 1970, when it was opened

    // All bytes from `offset` on. Throws input_error, with the byte: the file ends before; and without: it is not what
    // it was when it was opened. May be called by several threads at a time.
    void read(std::uint64_t offset, std::span<std::byte> into) const;

  private:
    std::filesystem::path path_;
    int fd_ = -1;
    std::uint64_t size_ = 0;
    std::int64_t modified_ns_ = 0;
};

}  // namespace fp8lab
