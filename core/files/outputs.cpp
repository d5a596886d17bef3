#include "core/files/outputs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/files/files.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;

Error cannot_write(const std::string& option, const fs::path& path, int error_number) {
    return {ErrorKind::failed, option, "cannot write " + path.string() + ": " + system_reason(error_number)};
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

std::string_view word_for(Holds holds) {
    switch (holds) {
        case Holds::numbers:
            return "numbers";
        case Holds::tensors:
            return "tensors";
        case Holds::table:
            return "a table";
        case Holds::json:
            return "JSON";
        case Holds::page:
            return "a page";
        case Holds::picture:
            return "a picture";
        case Holds::submission:
            return "a submission";
        case Holds::program:
            return "a program";
    }
    return {};
}

// The first bytes of a regular file; empty where it cannot be read.
std::string head_of(const fs::path& file) {
    try {
        return read_head(fs::absolute(file), 256);  // a file may be called "-"
    } catch (const Error&) {
        return {};
    }
}

// An object: a brace and a name with its colon. Less than that may be codes, of which a brace is one.
bool is_json(std::string_view head) {
    constexpr std::string_view kSpace = " \t\r\n";
    if (!head.starts_with('{')) return false;
    const std::size_t name = head.find_first_not_of(kSpace, 1);
    if (name == head.npos) return false;
    if (head[name] == '}') return head.find_first_not_of(kSpace, name + 1) == head.npos;
    if (head[name] != '"') return false;
    const std::size_t end = head.find('"', name + 1);
    const std::size_t colon = end == head.npos ? end : head.find_first_not_of(kSpace, end + 1);
    return colon != head.npos && head[colon] == ':';
}

// How files of known kinds begin. Long enough that raw numbers do not begin so by accident.
struct Mark {
    std::string_view bytes, kind;
    std::optional<Holds> may_become = {};
};
constexpr std::array kMarks = {
    Mark{"\x89PNG", "a picture", Holds::picture},
    Mark{"\xFF\xD8\xFF", "a picture"},
    Mark{"<!DOCTYPE", "a page", Holds::page},
    Mark{"<!doctype", "a page", Holds::page},
    Mark{"<html", "a page", Holds::page},
    Mark{"<svg", "a drawing"},
    Mark{"<?xml", "XML"},
    Mark{"%PDF-", "a PDF"},
    Mark{"PK\x03\x04", "a ZIP archive"},
    Mark{"\x7F"
         "ELF",
         "a program"},
    Mark{"\x93NUMPY", "an array", Holds::numbers},
    Mark{"# fp8lab ", "a table", Holds::table},
};

// What a file that would be replaced certainly is; empty: nothing that is known here, or of the same kind.
std::string_view other_kind(const fs::path& file, Holds holds) {
    const fs::path extension = file.extension();
    if (extension == ".f8lab") return holds == Holds::submission ? "" : "a submission";
    if (extension == ".f8scene") return "a scene";
    if (extension == ".f8deck") return "a deck";
    if (extension == ".safetensors") return holds == Holds::tensors ? "" : "a tensor file";
    const std::string head = head_of(file);
    if (is_json(head)) return holds == Holds::json ? "" : "JSON";
    for (const Mark& mark : kMarks)
        if (head.starts_with(mark.bytes)) return mark.may_become == holds ? "" : mark.kind;
    return {};
}

// Files that lose what they hold, or mix it, when two write to them: not /dev/null.
bool keeps(const struct stat& info, const fs::path& target) {
    if (!S_ISCHR(info.st_mode)) return true;
    const int fd = ::open(target.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    const bool terminal = fd >= 0 && ::isatty(fd) != 0;
    if (fd >= 0) ::close(fd);
    return terminal;
}

void check_replaceable(const std::string& option, const fs::path& path, const fs::path& target, Holds holds) {
    const std::string_view kind = other_kind(target, holds);
    if (kind.empty()) return;
    throw usage_error(option, path.string() + " holds " + std::string(kind) + " and would be replaced by " +
                                  std::string(word_for(holds)) + "; name another file");
}

}  // namespace

std::optional<Outputs::Identity> Outputs::identity_of(const fs::path& target) {
    struct stat info {};
    if (::stat(target.c_str(), &info) == 0) {
        if (!keeps(info, target)) return std::nullopt;
        return Identity{info.st_dev, info.st_ino, {}};
    }
    if (::stat(folder_of(target).c_str(), &info) != 0) return std::nullopt;
    return Identity{info.st_dev, info.st_ino, target.filename().string()};
}

void Outputs::reads(const fs::path& path) {
    struct stat info {};
    const int failed = path == "-" ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info);
    if (failed != 0 || !(S_ISREG(info.st_mode) || S_ISBLK(info.st_mode))) return;
    const Identity identity{info.st_dev, info.st_ino, {}};
    for (const Output& output : outputs_)
        if (output.identity == identity)
            throw usage_error(output.option, path.string() + " is an input of the same call");
    inputs_.push_back(identity);
}

void Outputs::add(const std::string& option, const std::string& shown,
                  const std::optional<Identity>& identity) {
    if (!identity) return;
    if (std::ranges::find(inputs_, *identity) != inputs_.end())
        throw usage_error(option, shown + " is an input of the same call and would be replaced");
    for (const Output& other : outputs_)
        if (other.identity == *identity)
            throw usage_error(option, other.option + " and " + option + " cannot both be " + shown);
    outputs_.push_back({option, *identity});
}

void Outputs::prints(const std::string& option) {
    if (!stdout_taken_by_.empty())
        throw usage_error(option, stdout_taken_by_ + " and " + option + " cannot both be stdout");
    stdout_taken_by_ = option;
    struct stat info {};
    if (::fstat(STDOUT_FILENO, &info) != 0) return;
    if (S_ISCHR(info.st_mode) && ::isatty(STDOUT_FILENO) == 0) return;  // it holds nothing: see keeps()
    add(option, "stdout", Identity{info.st_dev, info.st_ino, {}});
}

void Outputs::writes(const std::string& option, const fs::path& path, Holds holds) {
    if (path.empty()) throw usage_error(option, "the name of the file is empty");
    if (path == "-") return prints(option);
    const auto [target, descriptor] = write_target(path);
    struct stat info {};
    const bool there = ::stat(target.c_str(), &info) == 0;
    if (!there && errno != ENOENT) throw cannot_write(option, path, errno);
    if (there ? S_ISDIR(info.st_mode) : !target.has_filename())
        throw Error(ErrorKind::failed, option, path.string() + " is a folder");
    add(option, path.string(), identity_of(target));
    if (descriptor >= 0) return;  // it is open already
    if (there && S_ISREG(info.st_mode)) check_replaceable(option, path, target, holds);
    // A file is replaced by a rename in its folder; a device or pipe is written itself.
    const bool is_written = there && !S_ISREG(info.st_mode);
    if (is_written ? ::access(target.c_str(), W_OK) != 0 : !takes_files(folder_of(target)))
        throw cannot_write(option, path, errno);
}

void Outputs::writes_into(const std::string& option, const fs::path& folder) {
    if (folder.empty()) throw usage_error(option, "the name of the folder is empty");
    std::error_code none;
    if (fs::exists(folder, none) && !fs::is_directory(folder, none))
        throw Error(ErrorKind::failed, option, folder.string() + " is a file, not a folder");
    add(option, folder.string(), identity_of(folder.has_filename() ? folder : folder.parent_path()));
    fs::path nearest = folder;
    while (!fs::exists(nearest, none) && nearest != folder_of(nearest)) nearest = folder_of(nearest);
    if (!fs::is_directory(nearest, none)) throw cannot_write(option, folder, ENOTDIR);
    if (!takes_files(nearest)) throw cannot_write(option, folder, errno);
}

}  // namespace fp8lab
