#include "core/files/documents.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "core/files/files.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

std::string documents_with(const std::string& user_dirs) {
    const Scratch home;
    ::setenv("HOME", home.path.c_str(), 1);
    ::unsetenv("XDG_CONFIG_HOME");
    std::filesystem::create_directories(home.path / ".config");
    write_file(home.path / ".config/user-dirs.dirs", user_dirs);
    std::string found = documents_folder().string();
    if (found.starts_with(home.path.string())) found = "~" + found.substr(home.path.string().size());
    return found;
}

}  // namespace

TEST_CASE("the documents folder is the one that the desktop names, else ~/Documents") {
    ::unsetenv("XDG_DOCUMENTS_DIR");
    CHECK(documents_with("# written by xdg-user-dirs\nXDG_DESKTOP_DIR=\"$HOME/Desk\"\n"
                         "XDG_DOCUMENTS_DIR=\"$HOME/Dokumente\"\n") == "~/Dokumente");
    CHECK(documents_with("XDG_DOCUMENTS_DIR=\"/srv/docs\"\n") == "/srv/docs");
    CHECK(documents_with("XDG_DOCUMENTS_DIR=\"relative\"\n") == "~/Documents");
    CHECK(documents_with("") == "~/Documents");
    const Scratch home;  // the pipe has no writer, and the call does not wait for one
    ::setenv("HOME", home.path.c_str(), 1);
    std::filesystem::create_directories(home.path / ".config");
    REQUIRE(::mkfifo((home / ".config/user-dirs.dirs").c_str(), 0600) == 0);
    CHECK(documents_folder() == home.path / "Documents");
    ::setenv("XDG_DOCUMENTS_DIR", "/from/environment", 1);
    CHECK(documents_with("XDG_DOCUMENTS_DIR=\"/srv/docs\"\n") == "/from/environment");
    ::unsetenv("XDG_DOCUMENTS_DIR");
}
