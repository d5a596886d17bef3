// The folders of a profile (settings, state, progress) and which process may write to them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fp8lab {

enum class Access { read_write, read_only };

// XDG Base Directory Specification; --profile DIR and FP8LAB_HOME put all three into one folder.
struct ProfileFolders {
    std::filesystem::path config;  // settings.json, keys.json
    std::filesystem::path state;   // journal.jsonl, lock
    std::filesystem::path data;    // exercises/: evidence, predictions; scenes/, exports/
    Access access = Access::read_write;
    std::string why_read_only = {};  // a sentence for the status line
    std::string notice = {};         // says so where the profile is in an unexpected place: HOME is not set

    ProfileFolders() = default;
    ProfileFolders(std::filesystem::path all) : config(all), state(all), data(std::move(all)) {}
};

// --profile DIR, else FP8LAB_HOME, else $XDG_CONFIG_HOME, $XDG_STATE_HOME and $XDG_DATA_HOME, each with
// /fp8lab; where one is unset, empty or relative: ~/.config, ~/.local/state, ~/.local/share.
ProfileFolders profile_folders(std::string_view override_folder = {});

// $HOME, else the home folder of the user's account, else the one for temporary files. `notice` says that it
// is not $HOME.
struct HomeFolder {
    std::filesystem::path path;
    std::string notice = {};
};
HomeFolder home_folder();

// Creates the folder and its parents where they are missing, with fsync. Throws Error{failed} with the
// system's reason.
void make_folder(const std::filesystem::path& folder);
// Calls fsync on the folder, so that a renamed file survives a power cut. That a file system refuses is no error.
void sync_folder(const std::filesystem::path& folder);

// The first window that opens a profile may write to it; later ones only read. The kernel releases the lock
// when the process ends, in whatever way. Sets access and why_read_only, also where no file can be created in
// the folder.
class ProfileLock {
  public:
    explicit ProfileLock(ProfileFolders& folders);
    ~ProfileLock();
    ProfileLock(const ProfileLock&) = delete;
    ProfileLock& operator=(const ProfileLock&) = delete;

  private:
    int fd_ = -1;
};

// Until version 0.1 exercises and exports were in the folder of the configuration: moves them to `data` and
// keeps what exists there. Returns what could not be moved and why, as a sentence; empty: nothing is left.
std::string migrate_profile(const ProfileFolders& folders);

}  // namespace fp8lab
