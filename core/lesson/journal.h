// A log of state that is in no other file: one line per change, {"key", "value", "at", "checksum"}, written
// at once. The last line of a key is valid. After a crash the journal remains; closing the window removes it.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace fp8lab {

class Journal {
  public:
    struct Left {
        std::string at;  // of the last line, ISO 8601
        std::map<std::string, nlohmann::json> values;
    };
    // The state that a crash left. Incomplete and damaged lines are skipped. None: no journal, or no valid
    // line.
    static std::optional<Left> left_behind(const std::filesystem::path& file);

    explicit Journal(std::filesystem::path file);  // opens no file yet
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    void take_over(Left left);  // continues with what a crash left; these values are not written again
    // Sets a value at the start, which needs no line.
    void assume(const std::string& key, nlohmann::json value);
    // Writes a line if the value has changed since the last note(); it then survives the end of the process.
    // Throws Error{failed}; the next note() of the same value tries again.
    void note(const std::string& key, nlohmann::json value, const std::string& at);
    bool dirty() const { return dirty_; }
    void sync();    // fsync: the lines then survive a power failure too; throws Error{failed}
    void remove();  // the window was closed normally

  private:
    void append(const std::string& line);
    void rewrite(const std::string& at);

    std::filesystem::path file_;
    std::map<std::string, nlohmann::json> noted_, written_;  // written_: what the file holds
    int fd_ = -1;
    std::size_t bytes_ = 0, bytes_whole_ = 0;  // of the file; when it held no line twice
    bool dirty_ = false, torn_ = false;        // torn_: the file may end within a line
};

}  // namespace fp8lab
