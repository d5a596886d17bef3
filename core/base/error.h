// The exception for every failure that the user can do something about. The command line prints "fp8lab:
// WHERE: WHY" and exits with the number of the kind (cli.md, "Exit codes"); the window shows the text.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace fp8lab {

enum class ErrorKind {
    failed = 1,   // the work itself failed: a check did not pass, a run diverged
    usage = 2,    // unknown name or value; the message lists the valid ones
    backend = 3,  // the requested backend is not available on this machine
    input = 4,    // unreadable or invalid input; the message has line/column or byte offset
};

class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, std::string where, std::string why)
        : std::runtime_error(where + ": " + why),
          kind_(kind),
          where_(std::move(where)),
          why_(std::move(why)) {}
    ErrorKind kind() const { return kind_; }
    const std::string& where() const { return where_; }
    const std::string& why() const { return why_; }

  private:
    ErrorKind kind_;
    std::string where_, why_;
};

inline Error usage_error(std::string where, std::string why) {
    return {ErrorKind::usage, std::move(where), std::move(why)};
}
inline Error input_error(std::string where, std::string why) {
    return {ErrorKind::input, std::move(where), std::move(why)};
}

// The system's text for an errno: "No space left on device".
inline std::string system_reason(int error_number) { return std::generic_category().message(error_number); }

// usage_error "unknown format 'e4m4'; valid: fp32 fp16 ..." from a range of named things.
template <class Range, class Name>
Error unknown_name(std::string where, std::string_view what, std::string_view got, const Range& valid,
                   Name name_of) {
    std::string why = "unknown " + std::string(what) + " '" + std::string(got) + "'; valid:";
    for (const auto& item : valid) why += " " + std::string(name_of(item));
    return usage_error(std::move(where), std::move(why));
}

}  // namespace fp8lab
