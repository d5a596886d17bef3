// A file, a pipe or stdin, opened for reading: what it is, before anything is read. A part of bounded_file.h and
// random_file.h.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/files/bounded_file.h"

namespace fp8lab {

class OpenedInput {
  public:
    // "-" is stdin, of any kind. Throws input_error: not there, not readable, another kind than a regular file or,
    // where it may be one, a pipe. Does not wait for the writer of a pipe.
    OpenedInput(const std::filesystem::path& path, Pipes pipes);
    ~OpenedInput();
    OpenedInput(const OpenedInput&) = delete;
    OpenedInput& operator=(const OpenedInput&) = delete;

    const std::string& where() const { return where_; }  // the path, or "stdin"
    bool is_regular() const { return S_ISREG(info_.st_mode); }
    std::uint64_t size() const { return is_regular() ? static_cast<std::uint64_t>(info_.st_size) : 0; }
    std::int64_t modified_ns() const;  // since 1970

    // Reads on until `bytes` holds `most` bytes, or to the end: false. Throws as read_descriptor().
    bool read_on(std::size_t most, std::vector<std::byte>& bytes) const;

    int descriptor() const { return fd_; }
    int release();  // the caller closes it

  private:
    std::string where_;
    bool owned_;
    int fd_;
    struct stat info_ {};
};

}  // namespace fp8lab
