#include "core/files/bounded_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/read_descriptor.h"

namespace fp8lab {
namespace {

// A descriptor that is open for reading, with what the system knows of it.
class Opened {
  public:
    // Without O_NONBLOCK the opening of a pipe waits for its writer.
    explicit Opened(const std::filesystem::path& path)
        : where_(path == "-" ? "stdin" : path.string()),
          owned_(path != "-"),
          fd_(owned_ ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : STDIN_FILENO) {
        if (fd_ < 0) fail();
        static_cast<void>(::fstat(fd_, &info_));  // of an open descriptor it does not fail
    }
    ~Opened() {
        if (owned_ && fd_ >= 0) ::close(fd_);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

    const std::string& where() const { return where_; }
    bool is_regular() const { return S_ISREG(info_.st_mode); }
    std::uint64_t size() const { return is_regular() ? static_cast<std::uint64_t>(info_.st_size) : 0; }

    void refuse_other_kinds() const {
        if (!owned_ || is_regular()) return;
        const char* kind = S_ISDIR(info_.st_mode)    ? "is a folder, not a file"
                           : S_ISFIFO(info_.st_mode) ? "is a pipe, not a file"
                           : S_ISSOCK(info_.st_mode) ? "is a socket, not a file"
                                                     : "is a device, not a file";
        throw input_error(where_, kind);
    }

    // At most that many bytes; fewer where the file ends.
    std::string read(std::size_t most) const {
        const auto bytes = read_descriptor(fd_, where_, most, size());
        std::string text(bytes.size(), '\0');
        if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
        return text;
    }

  private:
    [[noreturn]] void fail() const { throw input_error(where_, system_reason(errno)); }

    std::string where_;
    bool owned_;
    int fd_;
    struct stat info_ {};
};

}  // namespace

std::string read_bounded(const std::filesystem::path& path, std::size_t most) {
    const Opened file(path);
    file.refuse_other_kinds();
    if (file.size() > most)
        throw input_error(file.where(), "is " + format_bytes(file.size()) + "; such a file has at most " +
                                            format_bytes(most));
    std::string text = file.read(most + 1);
    if (text.size() > most)
        throw input_error(file.where(),
                          "is larger than " + format_bytes(most) + ", the most such a file has");
    return text;
}

std::string read_head(const std::filesystem::path& path, std::size_t bytes) {
    const Opened file(path);
    file.refuse_other_kinds();
    return file.read(bytes);
}

}  // namespace fp8lab
