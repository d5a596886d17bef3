#include "core/files/folders.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "core/files/files.h"
#include "tests/scratch.h"

using namespace fp8lab;
namespace fs = std::filesystem;

TEST_CASE("three folders as XDG says, --profile and FP8LAB_HOME put them into one") {
    ::setenv("HOME", "/h", 1);
    for (const char* name : {"FP8LAB_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"})
        ::unsetenv(name);
    const auto are = [](const char* config, const char* state, const char* data) {
        const ProfileFolders folders = profile_folders();
        CHECK(folders.config == config);
        CHECK(folders.state == state);
        CHECK(folders.data == data);
    };
    are("/h/.config/fp8lab", "/h/.local/state/fp8lab", "/h/.local/share/fp8lab");
    ::setenv("XDG_CONFIG_HOME", "relative", 1);
    ::setenv("XDG_STATE_HOME", "", 1);
    ::setenv("XDG_DATA_HOME", "/d", 1);
    are("/h/.config/fp8lab", "/h/.local/state/fp8lab", "/d/fp8lab");
    ::setenv("FP8LAB_HOME", "/f", 1);
    are("/f", "/f", "/f");
    CHECK(profile_folders("/p").data == "/p");
    CHECK(profile_folders("/p").access == Access::read_write);
}

TEST_CASE("a profile of version 0.1 is moved, once, and nothing is written over") {
    const Scratch home;
    ProfileFolders folders;
    folders.config = home.path / "config/fp8lab";
    folders.state = home.path / "state/fp8lab";
    folders.data = home.path / "data/fp8lab";
    fs::create_directories(folders.config / "exercises");
    fs::create_directories(folders.config / "exports/bits-1");
    fs::create_directories(folders.data / "exercises");
    const auto put = [](const fs::path& file, const char* words) { std::ofstream(file) << words; };
    put(folders.config / "settings.json", "settings");
    put(folders.config / "exercises/L1.1.json", "old");
    put(folders.config / "exercises/L1.2.json", "old");
    put(folders.data / "exercises/L1.2.json", "new");
    put(folders.config / "exports/bits-1/a.svg", "svg");
    CHECK(migrate_profile(folders) == "");
    CHECK(migrate_profile(folders) == "");
    CHECK(read_text(folders.config / "settings.json") == "settings");
    CHECK(read_text(folders.data / "exercises/L1.1.json") == "old");
    CHECK(read_text(folders.data / "exercises/L1.2.json") == "new");
    CHECK(read_text(folders.config / "exercises/L1.2.json") == "old");  // stays, for whoever looks for it
    CHECK(read_text(folders.data / "exports/bits-1/a.svg") == "svg");
    CHECK_FALSE(fs::exists(folders.config / "exports"));
    CHECK(migrate_profile(home.path / "config/fp8lab") == "");  // all in one: nothing to move
    CHECK(fs::exists(folders.config / "exercises/L1.2.json"));
}

TEST_CASE("what cannot be moved stays, and is named") {
    const Scratch home;
    ProfileFolders folders;
    folders.config = home.path / "config";
    folders.data = "/proc/fp8lab";
    fs::create_directories(folders.config / "exercises");
    std::ofstream(folders.config / "exercises/L1.1.json") << "old";
    const std::string left = migrate_profile(folders);
    CHECK(left.find("still in " + (folders.config / "exercises").string()) == 0);
    CHECK(read_text(folders.config / "exercises/L1.1.json") == "old");
}
