#include "core/files/opened_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/error.h"
#include "core/files/read_descriptor.h"

namespace fp8lab {
namespace {

// Why what is named is not read; null: it is.
const char* refusal_of(mode_t mode, Pipes pipes) {
    if (S_ISREG(mode) || (S_ISFIFO(mode) && pipes == Pipes::read)) return nullptr;
    return S_ISDIR(mode)    ? "is a folder, not a file"
           : S_ISFIFO(mode) ? "is a pipe, not a file"
           : S_ISSOCK(mode) ? "is a socket, not a file"
                            : "is a device, not a file";
}

}  // namespace

// Without O_NONBLOCK the opening of a pipe waits for its writer.
OpenedInput::OpenedInput(const std::filesystem::path& path, Pipes pipes)
    : where_(path == "-" ? "stdin" : path.string()),
      owned_(path != "-"),
      fd_(owned_ ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : STDIN_FILENO) {
    if (fd_ < 0) {
        const int problem = errno;
        // A socket cannot be opened, and some devices not either.
        const bool is_there = problem == ENXIO && ::stat(path.c_str(), &info_) == 0;
        const char* const kind = is_there ? refusal_of(info_.st_mode, pipes) : nullptr;
        throw input_error(where_, kind ? kind : system_reason(problem));
    }
    static_cast<void>(::fstat(fd_, &info_));  // of an open descriptor it does not fail
    const char* const kind = owned_ ? refusal_of(info_.st_mode, pipes) : nullptr;
    if (!kind) return;
    ::close(fd_);
    throw input_error(where_, kind);
}

OpenedInput::~OpenedInput() {
    if (owned_ && fd_ >= 0) ::close(fd_);
}

std::int64_t OpenedInput::modified_ns() const {
    return static_cast<std::int64_t>(info_.st_mtim.tv_sec) * 1'000'000'000 + info_.st_mtim.tv_nsec;
}

bool OpenedInput::read_on(std::size_t most, std::vector<std::byte>& bytes) const {
    return read_descriptor(fd_, where_, most, bytes, size());
}

int OpenedInput::release() { return std::exchange(fd_, -1); }

}  // namespace fp8lab
