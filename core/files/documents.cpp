#include "core/files/documents.h"

#include <cstdlib>
#include <sstream>
#include <string>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/files/folders.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;

std::string folder_from(const char* name) {
    const char* value = environment(name);
    return value ? value : "";
}

// XDG_DOCUMENTS_DIR="$HOME/Dokumente": an absolute path, or one below $HOME; nothing else is allowed there.
fs::path from_user_dirs(const fs::path& file, const std::string& home) {
    const std::string key = "XDG_DOCUMENTS_DIR=\"", below = "$HOME";
    std::istringstream in;
    try {
        in.str(read_text(file));
    } catch (const Error&) {  // there is none, as on most servers
        return {};
    }
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(key) || !line.ends_with('"')) continue;
        const std::string value = line.substr(key.size(), line.size() - key.size() - 1);
        if (value.starts_with(below + "/")) return fs::path(home + value.substr(below.size()));
        if (value.starts_with("/")) return value;
    }
    return {};
}

}  // namespace

fs::path documents_folder() {
    if (const fs::path set = folder_from("XDG_DOCUMENTS_DIR"); set.is_absolute()) return set;
    const std::string home = home_folder().path.string();
    const fs::path config = folder_from("XDG_CONFIG_HOME");
    const fs::path named =
        from_user_dirs((config.is_absolute() ? config : fs::path(home) / ".config") / "user-dirs.dirs", home);
    return named.empty() ? fs::path(home) / "Documents" : named;
}

}  // namespace fp8lab
