#include "core/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>

#include "core/base/environment.h"
#include "core/base/error.h"

namespace fp8lab {

namespace {

namespace fs = std::filesystem;

std::string system_reason(int error_number) { return std::generic_category().message(error_number); }

class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() { close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }
    bool ok() const { return fd_ >= 0; }
    bool close() {
        const int fd = std::exchange(fd_, -1);
        return fd < 0 || ::close(fd) == 0;
    }

  private:
    int fd_;
};

bool write_all(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return true;
}

void write_stdout(std::span<const std::byte> bytes) {
    std::cout.flush();
    if (!write_all(STDOUT_FILENO, bytes)) throw Error(ErrorKind::failed, "stdout", system_reason(errno));
}

std::vector<std::byte> read_descriptor(int fd, const std::string& where) {
    std::vector<std::byte> bytes;
    std::size_t used = 0;
    for (;;) {
        if (used == bytes.size()) bytes.resize(std::max<std::size_t>(1 << 16, bytes.size() * 2));
        const ssize_t got = ::read(fd, bytes.data() + used, bytes.size() - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw input_error(where, system_reason(errno));
        if (got == 0) break;
        used += static_cast<std::size_t>(got);
    }
    bytes.resize(used);
    return bytes;
}

}  // namespace

std::vector<std::byte> read_file(const fs::path& path) {
    if (path == "-") return read_descriptor(STDIN_FILENO, "stdin");
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.ok()) throw input_error(path.string(), system_reason(errno));
    return read_descriptor(file.get(), path.string());
}

std::string read_text(const fs::path& path) {
    const auto bytes = read_file(path);
    std::string text(bytes.size(), '\0');
    if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
    return text;
}

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
    if (path == "-") return write_stdout(bytes);
    const auto fail = [&](int error_number) {
        return Error(ErrorKind::failed, path.string(), system_reason(error_number));
    };
    // A device or pipe cannot be replaced by a rename; what it takes is written straight to it.
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
        Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        if (!device.ok() || !write_all(device.get(), bytes)) throw fail(errno);
        return;
    }
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    std::string temporary = (folder / ("." + path.filename().string() + ".XXXXXX")).string();
    Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!file.ok()) throw fail(errno);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    const bool written = write_all(file.get(), bytes) && ::fchmod(file.get(), 0666 & ~mask) == 0 &&
                         ::fsync(file.get()) == 0 && file.close() &&
                         ::rename(temporary.c_str(), path.c_str()) == 0;
    if (!written) {
        const int error_number = errno;
        ::unlink(temporary.c_str());
        throw fail(error_number);
    }
    // The rename is durable once the folder is; some file systems refuse to sync a folder, which is not an
    // error.
    Descriptor parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent.ok()) ::fsync(parent.get());
}

void write_file(const fs::path& path, std::string_view text) {
    write_file(path, std::as_bytes(std::span(text)));
}

fs::path executable_folder() {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

fs::path asset(std::string_view name) {
    std::vector<fs::path> roots;
    if (const char* folder = environment("FP8LAB_ASSETS")) {
        roots = {folder};
    } else {
        roots = {executable_folder() / "assets", executable_folder() / "../share/fp8lab"};
    }
    std::string tried;
    for (const fs::path& root : roots) {
        if (fs::exists(root / name)) return root / name;
        tried += (tried.empty() ? "" : " and ") + (root / name).lexically_normal().string();
    }
    throw input_error("assets", "not found: " + tried);
}

}  // namespace fp8lab
