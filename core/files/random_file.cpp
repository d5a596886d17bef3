#include "core/files/random_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/files/opened_input.h"

namespace fp8lab {
namespace {

// A signal is heard between two reads, not in one: 2 GB of a file that is in no cache take seconds.
constexpr std::size_t kMostAtOnce = std::size_t{16} << 20;

std::int64_t nanoseconds(const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// Up to the size that its head says, and one byte, where it has one more.
std::vector<std::byte> read_stream(const OpenedInput& input, const SizeByHead& size_by_head) {
    std::vector<std::byte> bytes;
    for (;;) {
        const std::uint64_t size = size_by_head(bytes);
        if (bytes.size() > size || !input.read_on(size + 1, bytes)) return bytes;
    }
}

}  // namespace

RandomFile::RandomFile(const std::filesystem::path& path) : path_(path) {
    if (path == "-") throw input_error("stdin", "is a stream; here a file is read more than once");
    OpenedInput input(path, Pipes::refused);
    size_ = input.size();
    modified_ns_ = input.modified_ns();
    fd_ = input.release();
}

RandomFile::RandomFile(const std::filesystem::path& path, const SizeByHead& size_by_head, Pipes pipes)
    : path_(path) {
    OpenedInput input(path, pipes);
    if (path != "-" && input.is_regular() && input.size() > 0) {
        size_ = input.size();
        modified_ns_ = input.modified_ns();
        fd_ = input.release();
    } else {  // the system says 0 of files that it makes while they are read, such as those of /proc
        bytes_ = read_stream(input, size_by_head);
        size_ = bytes_.size();
    }
}

RandomFile::RandomFile(std::vector<std::byte> bytes, std::filesystem::path name)
    : path_(std::move(name)), bytes_(std::move(bytes)), size_(bytes_.size()) {}

RandomFile::RandomFile(RandomFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      bytes_(std::move(other.bytes_)),
      size_(other.size_),
      modified_ns_(other.modified_ns_) {}

RandomFile::~RandomFile() {
    if (fd_ >= 0) ::close(fd_);
}

void RandomFile::read(std::uint64_t offset, std::span<std::byte> into) const {
    const auto refuse_end = [&](std::uint64_t at) {
        throw input_error(where(), fmt::format("byte {}: the file ends here", at));
    };
    if (fd_ < 0) {
        if (offset > size_ || into.size() > size_ - offset) refuse_end(size_);
        if (!into.empty()) std::memcpy(into.data(), bytes_.data() + offset, into.size());
        return;
    }
    struct stat info {};
    static_cast<void>(::fstat(fd_, &info));
    if (static_cast<std::uint64_t>(info.st_size) != size_ || nanoseconds(info.st_mtim) != modified_ns_)
        throw input_error(where(), "was changed while it was read; open it again");
    while (!into.empty()) {
        const std::size_t part = std::min(into.size(), kMostAtOnce);
        const ssize_t got = ::pread(fd_, into.data(), part, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw input_error(where(), system_reason(errno));
        if (got == 0) refuse_end(offset);
        offset += static_cast<std::uint64_t>(got);
        into = into.subspan(static_cast<std::size_t>(got));
    }
}

std::vector<std::byte> RandomFile::read_some(std::uint64_t offset, std::uint64_t most) const {
    const std::uint64_t size = offset > size_ ? 0 : std::min(most, size_ - offset);
    require_memory(where(), static_cast<double>(size));
    std::vector<std::byte> bytes(size);
    if (size > 0) read(offset, bytes);
    return bytes;
}

}  // namespace fp8lab
