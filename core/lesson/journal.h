// What the window shows and no file keeps: one line a change, {"key", "value", "at", "checksum"}, written as
// it happens. The last line of a key counts. A crash leaves the journal behind; a window that is closed
// removes it.
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
    // Lines that a crash cut short, or that are damaged, are passed over. Nothing: no journal, or no whole
    // line.
    static std::optional<Left> left_behind(const std::filesystem::path& file);

    explicit Journal(std::filesystem::path file);  // touches no file yet
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    void take_over(Left left);  // goes on with what a crash left: nothing of it is noted again
    // What is so at the start needs no line.
    void assume(const std::string& key, nlohmann::json value);
    // Writes a line if the value is another one than noted last; it then outlives the process. Throws
    // Error{failed}: the next note() of the same value tries again.
    void note(const std::string& key, nlohmann::json value, const std::string& at);
    bool dirty() const { return dirty_; }
    void sync();    // throws Error{failed}; what was noted then outlives a power cut as well
    void remove();  // closed cleanly

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
