#include "core/convert/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/folders.h"
#include "core/threads/ask.h"

namespace fp8lab {

namespace fs = std::filesystem;

namespace {

// Refuses where something took the name meanwhile, if the system has a call for that and the file system knows it.
int rename_new(const fs::path& from, const fs::path& to) {
#ifdef RENAME_NOREPLACE
    const int result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
    if (result == 0 || (errno != EINVAL && errno != ENOSYS)) return result;
#endif
    return ::rename(from.c_str(), to.c_str());
}

}  // namespace

NewFolder::NewFolder(const std::string& option, fs::path path) : path_(std::move(path)) {
    if (!path_.has_filename()) path_ = path_.parent_path();  // "out/"
    if (path_.empty()) throw usage_error(option, "the name of the folder is empty");
    std::error_code none;
    if (fs::exists(fs::symlink_status(path_, none)))
        throw usage_error(option, path_.string() + " is there already; name another folder");
    std::string name = (path_.parent_path() / ("." + path_.filename().string() + ".XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr)
        throw Error{ErrorKind::failed, option, path_.string() + " cannot be made: " + system_reason(errno)};
    hidden_ = name;
}

NewFolder::~NewFolder() {
    std::error_code ignored;
    if (!kept_) fs::remove_all(hidden_, ignored);
}

void NewFolder::require_room(std::uint64_t bytes) const {
    std::error_code problem;
    const fs::space_info space = fs::space(hidden_, problem);
    if (!problem && space.available < bytes)
        throw Error{ErrorKind::failed, path_.string(),
                    fmt::format("not enough room: {} are needed, {} are free", format_bytes(bytes),
                                format_bytes(space.available))};
}

void NewFolder::keep() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    constexpr mode_t kAll = 0777;
    ::chmod(hidden_.c_str(), kAll & ~mask);
    sync_folder(hidden_);
    if (rename_new(hidden_, path_) != 0) throw Error{ErrorKind::failed, path_.string(), system_reason(errno)};
    kept_ = true;
    sync_folder(path_.parent_path());
}

PlacedFile::PlacedFile(fs::path path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail(errno);
}

PlacedFile::~PlacedFile() { ::close(fd_); }

void PlacedFile::fail(int error_number) const {
    throw Error{ErrorKind::failed, path_.string(), system_reason(error_number)};
}

void PlacedFile::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
    constexpr std::uint64_t kAhead = std::uint64_t{16} << 20;  // bytes between two hints
    const std::uint64_t before = written_.fetch_add(bytes.size()), after = before + bytes.size();
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) fail(n < 0 ? errno : ENOSPC);
        bytes = bytes.subspan(static_cast<std::size_t>(n));
        offset += static_cast<std::uint64_t>(n);
    }
    // Linux starts to write what is not on the disk yet, and drops what is.
    if (before / kAhead != after / kAhead) static_cast<void>(::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED));
}

void PlacedFile::sync(std::uint64_t size) const {
    constexpr std::uint64_t kPart = std::uint64_t{2} << 20;
    for (std::uint64_t at = 0; at < size; at += kPart) {
        ask_between();
        ::sync_file_range(fd_, static_cast<off64_t>(at), static_cast<off64_t>(std::min(kPart, size - at)),
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    }
    if (::fsync(fd_) != 0) fail(errno);
}

}  // namespace fp8lab
