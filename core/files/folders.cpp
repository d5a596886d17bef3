#include "core/files/folders.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "core/base/environment.h"
#include "core/base/error.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;
constexpr int kTries = 20;
constexpr unsigned kPause_us = 50'000;

fs::path xdg(const char* name, const char* otherwise, std::string& notice) {
    if (const char* folder = environment(name); folder && fs::path(folder).is_absolute())
        return fs::path(folder) / "fp8lab";
    const HomeFolder home = home_folder();
    notice = home.notice;
    return home.path / otherwise / "fp8lab";
}

// On the same file system a rename; else a copy, and only then is the original removed.
void move_file(const fs::path& from, const fs::path& to) {
    std::error_code problem;
    fs::rename(from, to, problem);
    if (problem != std::errc::cross_device_link) {
        if (problem) throw Error{ErrorKind::failed, from.string(), problem.message()};
        return;
    }
    const fs::path half = to.string() + ".moving";
    fs::copy(from, half, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    fs::rename(half, to);
    fs::remove_all(from);
}

void move_folder(const fs::path& from, const fs::path& to) {
    if (!fs::is_directory(from) || fs::equivalent(from.parent_path(), to.parent_path())) return;
    make_folder(to);
    for (const auto& entry : fs::directory_iterator(from)) {
        const fs::path target = to / entry.path().filename();
        if (!fs::exists(fs::symlink_status(target))) move_file(entry.path(), target);
    }
    std::error_code not_empty;
    fs::remove(from, not_empty);
}

}  // namespace

HomeFolder home_folder() {
    if (const char* home = environment("HOME")) return {home};
    const passwd* account = ::getpwuid(::getuid());
    std::error_code none;
    if (account && account->pw_dir && fs::is_directory(account->pw_dir, none))
        return {account->pw_dir, "HOME is not set; " + std::string(account->pw_dir) +
                                     ", the home folder of the account, is used"};
    return {"/tmp", "HOME is not set and the account has no home folder; /tmp is used, which may be emptied"};
}

ProfileFolders profile_folders(std::string_view override_folder) {
    if (!override_folder.empty()) return fs::path(override_folder);
    if (const char* home = environment("FP8LAB_HOME")) return fs::path(home);
    ProfileFolders folders;
    folders.config = xdg("XDG_CONFIG_HOME", ".config", folders.notice);
    folders.state = xdg("XDG_STATE_HOME", ".local/state", folders.notice);
    folders.data = xdg("XDG_DATA_HOME", ".local/share", folders.notice);
    return folders;
}

void make_folder(const fs::path& folder) {
    std::error_code problem;
    if (!fs::create_directories(folder, problem) && !problem) return;
    if (problem) throw Error{ErrorKind::failed, folder.string(), problem.message()};
    sync_folder(folder.parent_path());  // what is in a folder outlives a power cut only if the folder does
}

void sync_folder(const fs::path& folder) {
    const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    ::fsync(fd);
    ::close(fd);
}

ProfileLock::ProfileLock(ProfileFolders& folders) {
    const auto refuse = [&](std::string why) {
        folders.access = Access::read_only;
        folders.why_read_only = std::move(why);
    };
    int reason = 0;
    std::error_code problem;
    fs::create_directories(folders.state, problem);
    fd_ = problem ? -1 : ::open((folders.state / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    reason = problem ? problem.value() : fd_ < 0 ? errno : 0;
    // A window that was killed just now holds it until the kernel has taken it down.
    for (int i = 0; fd_ >= 0 && i < kTries; ++i) {
        if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
        reason = errno;
        if (reason != EWOULDBLOCK) break;
        ::usleep(kPause_us);
    }
    if (reason == EWOULDBLOCK) refuse("another window has this profile open; nothing is kept here");
    // A full disk may have room again later, and a file system without locks is no reason to forget.
    if (reason == EROFS || reason == EACCES || reason == EPERM)
        refuse(folders.state.string() + ": " + system_reason(reason));
}

ProfileLock::~ProfileLock() {
    if (fd_ >= 0) ::close(fd_);
}

std::string migrate_profile(const ProfileFolders& folders) {
    std::string left;
    for (const char* name : {"exercises", "exports"}) {
        try {
            if (folders.config != folders.data) move_folder(folders.config / name, folders.data / name);
        } catch (const std::exception& error) {
            left += (left.empty() ? "" : "; ") +
                    ("still in " + (folders.config / name).string() + ": " + error.what());
        }
    }
    return left;
}

}  // namespace fp8lab
