// An output that is written piece by piece and still is there whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace fp8lab {

// The pieces go to a hidden file beside the target, which gets the target's name at the end. Where the
// process is killed meanwhile, that file has what was written so far.
class GrowingFile {
  public:
    // As write_file(): "-" is stdout, links are followed, a device or pipe is written itself. Throws
    // Error{failed}.
    explicit GrowingFile(std::filesystem::path path);
    ~GrowingFile();  // without keep(): nothing was written
    GrowingFile(const GrowingFile&) = delete;
    GrowingFile& operator=(const GrowingFile&) = delete;

    // At once: no buffer. Throw Error{failed} with path and reason, and for stdout ClosedPipe and Interrupted
    // as write_file() does.
    void append(std::span<const std::byte> bytes);
    void append(std::string_view text);
    void keep();  // all is written: it now has its name, durably

  private:
    struct Open;
    [[noreturn]] void fail(int error_number) const;

    std::filesystem::path path_;
    std::unique_ptr<Open> open_;  // null: stdout, or kept
};

}  // namespace fp8lab
