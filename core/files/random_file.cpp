#include "core/files/random_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/error.h"

namespace fp8lab {
namespace {

std::int64_t nanoseconds(const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

RandomFile::RandomFile(const std::filesystem::path& path) : path_(path) {
    // Without O_NONBLOCK the opening of a pipe waits for its writer.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd_ < 0) throw input_error(path.string(), system_reason(errno));
    struct stat info {};
    static_cast<void>(::fstat(fd_, &info));  // of an open descriptor it does not fail
    if (!S_ISREG(info.st_mode)) {
        ::close(fd_);
        throw input_error(path.string(), S_ISDIR(info.st_mode) ? "is a folder, not a file"
                                                               : "is no file that can be read in parts");
    }
    size_ = static_cast<std::uint64_t>(info.st_size);
    modified_ns_ = nanoseconds(info.st_mtim);
}

RandomFile::RandomFile(RandomFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      modified_ns_(other.modified_ns_) {}

RandomFile::~RandomFile() {
    if (fd_ >= 0) ::close(fd_);
}

void RandomFile::read(std::uint64_t offset, std::span<std::byte> into) const {
    struct stat info {};
    static_cast<void>(::fstat(fd_, &info));
    if (static_cast<std::uint64_t>(info.st_size) != size_ || nanoseconds(info.st_mtim) != modified_ns_)
        throw input_error(path_.string(), "was changed while it was read; open it again");
    while (!into.empty()) {
        const ssize_t got = ::pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw input_error(path_.string(), system_reason(errno));
        if (got == 0) throw input_error(path_.string(), fmt::format("byte {}: the file ends here", offset));
        offset += static_cast<std::uint64_t>(got);
        into = into.subspan(static_cast<std::size_t>(got));
    }
}

}  // namespace fp8lab
