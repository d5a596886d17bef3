// Stdout and stderr. What is asked for goes to stdout, and it is an error when it does not arrive. What is
// said beside it goes to stderr, and whether anyone can read it changes nothing.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace fp8lab {

// A line on stderr, with the end of line added. Control characters are shown, not sent to the terminal. A
// failure to write is ignored. Never throws.
void tell(std::string_view line) noexcept;

// The text with every control character and every byte that is no UTF-8 as \n, \t, \x1b: what comes from a
// file or the command line must not drive a terminal.
std::string printable(std::string_view text);

// Thrown where stdout is a pipe that nobody reads any more, as in `fp8lab codes e4m3 | head -1`.
class ClosedPipe final : public std::exception {
  public:
    const char* what() const noexcept override { return "stdout: Broken pipe"; }
};

// Returns when a read (POLLIN) or write (POLLOUT) of the descriptor does not block, or fails. Throws
// Interrupted when a signal asks the process to end meanwhile: unlike a read or write, this wait ends then.
void wait_for_stream(int descriptor, short events);

// Sends what is buffered for stdout. Throws Error{failed, "stdout", reason}, ClosedPipe, and Interrupted.
void flush_stdout();
[[noreturn]] void throw_stdout_lost(int error_number);

// Descriptors 0 to 2 that are closed are opened such that every use of them fails, so that no file that is
// opened later becomes stdout; SIGPIPE is ignored, so that a closed pipe is an error like others. Once, first
// of all.
void prepare_streams();

}  // namespace fp8lab
