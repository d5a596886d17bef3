#include "core/lesson/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <system_error>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/files/folders.h"
#include "core/json/checksum.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kSlack = 1 << 20;  // bytes of lines that later ones replaced, before it is written anew

Error failure(const std::filesystem::path& file) {
    return {ErrorKind::failed, file.string(), system_reason(errno)};
}

std::string line_of(const std::string& key, const Json& value, const std::string& at) {
    return with_checksum({{"key", key}, {"value", value}, {"at", at}}, -1);
}

}  // namespace

std::optional<Journal::Left> Journal::left_behind(const std::filesystem::path& file) {
    std::error_code none;
    if (!std::filesystem::exists(file, none)) return {};
    Left left;
    try {
        std::istringstream lines(read_text(file));
        for (std::string line; std::getline(lines, line);) {
            try {
                Json json = parse_json(line, "");
                if (!json.is_object() || !take_checksum(json, "")) continue;
                left.at = json.at("at").get<std::string>();
                left.values[json.at("key").get<std::string>()] = std::move(json["value"]);
            } catch (const std::exception&) {
                continue;
            }
        }
    } catch (const Error&) {
        return {};
    }
    if (left.values.empty()) return {};
    return left;
}

Journal::Journal(std::filesystem::path file) : file_(std::move(file)) {}

Journal::~Journal() {
    if (fd_ >= 0) ::close(fd_);
}

void Journal::take_over(Left left) {
    for (const auto& [key, value] : left.values) noted_[key] = value;
    written_ = std::move(left.values);
    rewrite(left.at);
}

void Journal::assume(const std::string& key, Json value) { noted_.try_emplace(key, std::move(value)); }

void Journal::note(const std::string& key, Json value, const std::string& at) {
    const auto known = noted_.find(key);
    if (known != noted_.end() && known->second == value) return;
    if (fd_ < 0 || bytes_ > bytes_whole_ * 2 + kSlack) {
        const auto before = written_;
        written_[key] = value;
        try {
            rewrite(at);
        } catch (const Error&) {
            written_ = before;
            throw;
        }
    } else {
        append(line_of(key, value, at));
        written_[key] = value;
    }
    noted_[key] = std::move(value);
}

void Journal::append(const std::string& line) {
    const std::string text = (torn_ ? "\n" : "") + line;
    dirty_ = true;
    std::string_view rest = text;
    while (!rest.empty()) {
        const ssize_t written = ::write(fd_, rest.data(), rest.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            const Error error = failure(file_);
            torn_ = torn_ || rest.size() < text.size();
            throw error;
        }
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
    torn_ = false;
    bytes_ += text.size();
}

// Each key once, in the place of what was there, whole or not at all.
void Journal::rewrite(const std::string& at) {
    std::string text;
    for (const auto& [key, value] : written_) text += line_of(key, value, at);
    make_folder(file_.parent_path());
    write_file(file_, text);
    if (fd_ >= 0) ::close(fd_);
    fd_ = ::open(file_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd_ < 0) throw failure(file_);
    bytes_ = bytes_whole_ = text.size();
    torn_ = dirty_ = false;
}

void Journal::sync() {
    if (!dirty_ || fd_ < 0) return;
    if (::fsync(fd_) != 0) throw failure(file_);
    dirty_ = false;
}

void Journal::remove() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    dirty_ = false;
    written_.clear();
    std::error_code none;
    std::filesystem::remove(file_, none);
}

}  // namespace fp8lab
