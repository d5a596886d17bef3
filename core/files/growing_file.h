// An output that is written piece by piece and gets its name only when it is complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace fp8lab {

// The pieces go to a hidden file beside the target, which keep() renames to the target. If the process is
// killed before that, the hidden file has what was written so far.
class GrowingFile {
  public:
    // As write_file(): "-" is stdout, links are followed, a device or pipe is written directly, mode and owner are
    // those of the file that is replaced, or of `like`. Throws Error{failed}.
    explicit GrowingFile(std::filesystem::path path, const std::filesystem::path& like = {});
    ~GrowingFile();  // without keep() the target is unchanged
    GrowingFile(const GrowingFile&) = delete;
    GrowingFile& operator=(const GrowingFile&) = delete;

    // Written at once, without a buffer. Throw Error{failed} with path and reason, and for stdout ClosedPipe
    // and Interrupted as write_file() does.
    void append(std::span<const std::byte> bytes);
    void append(std::string_view text);
    void keep();  // the file is complete: fsync, then rename to the target

  private:
    struct Open;
    [[noreturn]] void fail(int error_number) const;

    std::filesystem::path path_;
    std::unique_ptr<Open> open_;  // null: stdout, or kept
};

}  // namespace fp8lab
