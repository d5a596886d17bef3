#include "core/base/bounded_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/units.h"

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
        constexpr std::size_t kFirst = 1 << 16;
        std::string text;
        std::size_t used = 0;
        while (used < most) {
            if (used == text.size())
                text.resize(std::min(most, std::max<std::size_t>({kFirst, used * 2, size() + 1})));
            if (!owned_) wait_for_stream(fd_, POLLIN);  // ends when the process is asked to end
            const ssize_t got = ::read(fd_, text.data() + used, text.size() - used);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) fail();
            if (got == 0) break;
            used += static_cast<std::size_t>(got);
        }
        text.resize(used);
        return text;
    }

  private:
    [[noreturn]] void fail() const { throw input_error(where_, std::generic_category().message(errno)); }

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
