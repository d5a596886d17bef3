#include "core/files/kept_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/json/checksum.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;

fs::path beside(const fs::path& file, const std::string& suffix) { return file.string() + suffix; }

// Never over another one that was set aside before. Empty: it could not be moved.
std::string set_aside(const fs::path& file) {
    fs::path to = beside(file, ".damaged");
    for (int i = 2; fs::exists(to); ++i) to = beside(file, ".damaged-" + std::to_string(i));
    std::error_code problem;
    fs::rename(file, to, problem);
    return problem ? "" : to.filename().string();
}

// Why it could not be taken; nothing: it was.
std::optional<std::string> try_file(const fs::path& file, const std::function<void(const std::string&)>& take,
                                    bool& readable) {
    readable = false;
    try {
        const std::string text = read_text(file);
        readable = true;
        take(text);
        return {};
    } catch (const Error& error) {
        return error.why();
    } catch (const std::exception& error) {
        return error.what();
    }
}

bool is_whole(const fs::path& file) {
    try {
        parse_with_checksum(read_text(file), file.string());
        return true;
    } catch (const Error&) {
        return false;
    }
}

// A second name for the same bytes: takes no room. Where the file system has no second names, a copy.
void keep_previous(const fs::path& file) {
    const fs::path previous = beside(file, ".bak"), linked = beside(file, ".bak.new");
    std::error_code problem;
    fs::remove(linked, problem);
    // Links the file that a symbolic link leads to: the link itself would name the new bytes, once they are written.
    if (::linkat(AT_FDCWD, file.c_str(), AT_FDCWD, linked.c_str(), AT_SYMLINK_FOLLOW) != 0)
        return write_file(previous, read_text(file), file);
    fs::rename(linked, previous, problem);
    if (problem) throw Error{ErrorKind::failed, previous.string(), problem.message()};
}

// As well as it goes: where nothing can be written, the next start finds the same.
void put_back(const fs::path& previous, const fs::path& file) {
    if (::link(previous.c_str(), file.c_str()) == 0) return;
    try {
        write_file(file, read_text(previous), previous);
    } catch (const Error&) {
        return;
    }
}

}  // namespace

std::string load_kept(const fs::path& file, const std::function<void(const std::string&)>& take,
                      Access access) {
    const fs::path previous = beside(file, ".bak");
    const std::string name = file.filename().string();
    std::error_code none;
    const bool there = fs::exists(file, none), before = fs::exists(previous, none);
    if (!there && !before) return {};
    bool readable = false;
    std::string what = name + " is missing";
    if (there) {
        const auto why = try_file(file, take, readable);
        if (!why) return {};
        what = readable ? name + " is damaged" : name + " cannot be read (" + *why + ")";
    }
    const bool mend = access == Access::read_write;
    std::string kept = mend && readable ? set_aside(file) : "";
    const bool gone = !there || !kept.empty();
    if (!kept.empty()) kept = "; it is kept as " + kept;
    if (before && !try_file(previous, take, readable)) {
        if (mend && gone) put_back(previous, file);
        return what + ", so the one before is used" + kept;
    }
    if (before && mend && readable) set_aside(previous);
    return what + (before ? ", and so is the one before" : "") + kept;
}

void save_kept(const fs::path& file, std::string_view text) {
    std::error_code none;
    fs::path like;  // of a damaged file that was renamed
    if (fs::exists(file, none)) {
        if (is_whole(file)) {
            keep_previous(file);
        } else if (const std::string aside = set_aside(file); !aside.empty()) {
            like = file.parent_path() / aside;
        }
    }
    write_file(file, text, like);
}

}  // namespace fp8lab
