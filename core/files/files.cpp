#include "core/files/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/console.h"
#include "core/files/folders.h"
#include "core/files/growing_file.h"

namespace fp8lab {

namespace {

namespace fs = std::filesystem;

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

// Sixty bits, as 12 letters and digits: no other file has this name by accident.
std::string random_suffix() {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
    std::random_device source;
    std::string out;
    for (int i = 0; i < 12; ++i) out += kLetters[source() % kLetters.size()];
    return out;
}

// Beside the target, so that it can be renamed; hidden, and not too long where the target's name is.
fs::path temporary_beside(const fs::path& target) {
    constexpr std::size_t kLongest = 200;  // of 255, in bytes
    const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
    return folder / ("." + target.filename().string().substr(0, kLongest) + "." + random_suffix());
}

// The folder of the descriptors of a process, in the form that the kernel gives it: /proc/1234/fd.
bool is_descriptor_folder(const fs::path& folder) {
    return folder.string().starts_with("/proc/") && folder.filename() == "fd";
}

bool is_our_own(const fs::path& descriptor_folder) {
    std::error_code problem;
    const fs::path process = fs::read_symlink("/proc/self", problem);
    return !problem && descriptor_folder.string().starts_with("/proc/" + process.string() + "/");
}

}  // namespace

WriteTarget write_target(const fs::path& path) {
    constexpr int kMostLinks = 40;  // as the kernel follows
    fs::path target = path;
    for (int i = 0; i < kMostLinks; ++i) {
        std::error_code problem;
        const fs::path folder = fs::weakly_canonical(target.parent_path(), problem);
        const std::string name = target.filename().string();
        int number = -1;
        const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
        const bool is_number = failure == std::errc{} && end == name.data() + name.size();
        if (is_number && is_descriptor_folder(folder)) {
            if (is_our_own(folder)) return {target, number};
            // The descriptor of another process: its pipe or device has no name that the link could be followed to.
            struct stat info {};
            if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return {target};
        }
        const fs::path to = fs::read_symlink(target, problem);
        if (problem) return {target};  // no link, or not there
        target = to.is_absolute() ? to : target.parent_path() / to;
    }
    throw Error(ErrorKind::failed, path.string(), system_reason(ELOOP));
}

bool takes_files(const fs::path& folder) {
    if (::access(folder.c_str(), W_OK) != 0) return false;
    const RemovedAtEnd probe(temporary_beside(folder / "fp8lab"));
    const Descriptor file(::open(probe.path(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    return file.ok() && ::unlink(probe.path()) == 0;
}

struct GrowingFile::Open {
    WriteTarget target;
    std::optional<RemovedAtEnd> temporary;  // none: a device or pipe, written itself
    std::optional<Descriptor> file;
};

namespace {

// The mode of the file that is replaced, and as far as this user may set them its owner and group. Where the group
// cannot be kept, its members are others: they get no more than those had. False: a mode that cannot be set.
bool take_mode(int fd, const struct stat& of) {
    mode_t mode = of.st_mode & 07777;
    if (::fchown(fd, of.st_uid, of.st_gid) != 0 && ::fchown(fd, static_cast<uid_t>(-1), of.st_gid) != 0) {
        struct stat now {};
        if (::fstat(fd, &now) == 0 && now.st_gid != of.st_gid)
            mode = (mode & ~mode_t{070}) | (mode & ((mode & 07) << 3));
        mode &= 0777;  // the set-id bits are the old owner's
    }
    return ::fchmod(fd, mode) == 0;
}

}  // namespace

GrowingFile::GrowingFile(fs::path path, const fs::path& like) : path_(std::move(path)) {
    if (path_ == "-") return;
    auto open = std::make_unique<Open>();
    open->target = write_target(path_);
    const auto& [target, descriptor] = open->target;
    if (descriptor == STDOUT_FILENO) return;
    // A device or pipe cannot be replaced by a rename; what it takes is written straight to it.
    struct stat info {};
    if (descriptor >= 0 || (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode))) {
        open->file.emplace(descriptor >= 0 ? ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
                                           : ::open(target.c_str(), O_WRONLY | O_CLOEXEC));
    } else {
        const bool has_model =
            ::stat(target.c_str(), &info) == 0 || (!like.empty() && ::stat(like.c_str(), &info) == 0);
        // This is done before anything is written, so that only those who may read the file can read the temporary.
        const mode_t first = has_model ? info.st_mode & 0700 : 0666;
        open->temporary.emplace(temporary_beside(target));
        open->file.emplace(::open(open->temporary->path(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, first));
        // A file system without modes is no reason to refuse a result.
        if (open->file->ok() && has_model && !take_mode(open->file->get(), info) && errno != EPERM &&
            errno != ENOTSUP && errno != ENOSYS)
            fail(errno);
    }
    if (!open->file->ok()) fail(errno);
    open_ = std::move(open);
}

GrowingFile::~GrowingFile() {
    if (open_ && open_->temporary) ::unlink(open_->temporary->path());
}

void GrowingFile::fail(int error_number) const {
    throw Error(ErrorKind::failed, path_.string(), system_reason(error_number));
}

void GrowingFile::append(std::span<const std::byte> bytes) {
    if (!open_) return write_stdout(bytes);
    if (!write_all(open_->file->get(), bytes)) fail(errno);
}

void GrowingFile::append(std::string_view text) { append(std::as_bytes(std::span(text))); }

void GrowingFile::keep() {
    if (!open_) return;
    Descriptor& file = *open_->file;
    const fs::path target = open_->target.path;
    if (open_->temporary) {
        if (::fsync(file.get()) != 0 || !file.close() ||
            ::rename(open_->temporary->path(), target.c_str()) != 0)
            fail(errno);
        sync_folder(target.parent_path());  // the rename is durable once the folder is
    }
    open_.reset();
}

void write_file(const fs::path& path, std::span<const std::byte> bytes, const fs::path& like) {
    GrowingFile file(path, like);
    file.append(bytes);
    file.keep();
}

void write_file(const fs::path& path, std::string_view text, const fs::path& like) {
    write_file(path, std::as_bytes(std::span(text)), like);
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
        std::error_code problem;
        if (fs::exists(root / name, problem)) return root / name;
        tried += (tried.empty() ? "" : " and ") + (root / name).lexically_normal().string();
        if (problem) tried += " (" + problem.message() + ")";
    }
    throw input_error("assets", "not found: " + tried);
}

}  // namespace fp8lab
