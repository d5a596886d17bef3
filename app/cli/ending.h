// How a call of the program ends: what was thrown becomes one line on stderr and an exit code.
#pragma once

#include <functional>
#include <string>

namespace fp8lab::cli {

// The codes beside those of ErrorKind (core/base/error.h). Signals: 128 + the number.
inline constexpr int kClosedPipe = 141;  // as a shell reports a program that SIGPIPE ended

// The table of the codes, for --help.
std::string exit_codes();

// Does the work, sends what stdout still holds, and returns the exit code. `doing`: the verb, which may be
// known only later.
int to_the_end(const std::function<int()>& work, const std::string& doing);

}  // namespace fp8lab::cli
