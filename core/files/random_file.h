// Parts of a file that may be large, read where they are needed. It may stay open for minutes: a file that another
// program shortens or replaces meanwhile is an error here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/files/bounded_file.h"

namespace fp8lab {

// How many bytes a file that begins with these has: what its header says. More than there are where it takes so many to
// say. It may throw input_error.
using SizeByHead = std::function<std::uint64_t(std::span<const std::byte> head)>;

class RandomFile {
  public:
    // Opens a regular file. Throws as read_bytes() where pipes are refused; "-" is refused too.
    explicit RandomFile(const std::filesystem::path& path);
    // Opens a file; also "-" (stdin) and, where allowed, a pipe, which are read whole into memory, up to one byte beyond
    // the size that their head says; the reader of the format then says that there is too much. Throws as read_bytes().
    RandomFile(const std::filesystem::path& path, const SizeByHead& size_by_head, Pipes pipes);
    // A file whose bytes are in memory, under that name.
    RandomFile(std::vector<std::byte> bytes, std::filesystem::path name);
    ~RandomFile();
    RandomFile(RandomFile&& other) noexcept;
    RandomFile& operator=(RandomFile&&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::string where() const { return path_ == "-" ? "stdin" : path_.string(); }  // for messages
    std::uint64_t size() const { return size_; }
    std::int64_t modified_ns() const { return modified_ns_; }  // since 1970, when it was opened

    // Fills the span with the bytes from `offset` on. Throws input_error with the byte where the file ends before,
    // and without it where the file has changed since it was opened. May be called by several threads at a time.
    void read(std::uint64_t offset, std::span<std::byte> into) const;
    // Reads at most `most` bytes from `offset` on, fewer where the file ends.
    std::vector<std::byte> read_some(std::uint64_t offset, std::uint64_t most) const;

  private:
    std::filesystem::path path_;
    int fd_ = -1;                   // -1: in memory
    std::vector<std::byte> bytes_;  // of what is in memory
    std::uint64_t size_ = 0;
    std::int64_t modified_ns_ = 0;
};

}  // namespace fp8lab
