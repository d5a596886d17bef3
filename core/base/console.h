// Stdout and stderr. What is asked for goes to stdout, and it is an error when it does not arrive. What is
// said beside it goes to stderr, and whether anyone can read it changes nothing.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
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
// Interrupted when a signal asks the process to end meanwhile: unlike a read or write, this wait ends then,
// at once for a read and after a second for a write, which a slow reader may still take.
void wait_for_stream(int descriptor, short events);

// Sends what is buffered for stdout. Throws Error{failed, "stdout", reason}, ClosedPipe, and Interrupted.
void flush_stdout();
// After what is buffered, and past the buffer. For everything long: where the reader stops to read, a signal
// still ends the wait, which it does not within printf(). Throws as flush_stdout(); part is then written.
void write_stdout(std::span<const std::byte> bytes);
void write_stdout(std::string_view text);
[[noreturn]] void throw_stdout_lost(int error_number);
// Sends what is buffered if the reader takes it within a second, and otherwise drops it: at the end of the
// process exit() would wait for that reader without end. Never throws.
void flush_or_drop_stdout() noexcept;

// Descriptors 0 to 2 that are closed are opened on /dev/null in the wrong direction, so that every use fails
// and no file that is opened later becomes stdout; SIGPIPE is ignored, so that a closed pipe is an error like
// others. Once, first of all.
void prepare_streams();

}  // namespace fp8lab
