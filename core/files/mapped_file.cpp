#include "core/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/files/files.h"

namespace fp8lab {

MappedFile::MappedFile(const std::filesystem::path& path) {
    const int fd = path == "-" ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info = {};
    if (fd >= 0 && ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        const auto size = static_cast<std::size_t>(info.st_size);
        void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
        mapped_ = at != MAP_FAILED;
        if (mapped_) bytes_ = {static_cast<const std::byte*>(at), size};
    }
    if (fd >= 0) ::close(fd);
    if (mapped_) return;
    read_ = read_file(path);
    bytes_ = read_;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      read_(std::move(other.read_)),
      mapped_(std::exchange(other.mapped_, false)) {}

MappedFile::~MappedFile() {
    if (mapped_) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace fp8lab
