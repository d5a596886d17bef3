// Stdout and stderr. Results go to stdout, and a write that fails is an error. Messages go to stderr, and a
// write that fails there is ignored.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <string_view>

namespace fp8lab {

// Writes a line to stderr and adds the end of line. Control characters are escaped. A failure to write is
// ignored. Never throws. What draw_line() has drawn is replaced.
void tell(std::string_view line) noexcept;

// For a terminal: a line that the next one replaces, cut to the width of the terminal. erase_line() takes it away, before
// something else is written to that terminal.
void draw_line(std::string_view line) noexcept;
void erase_line() noexcept;

// The text with every control character and every byte that is not UTF-8 escaped as \n, \t, \x1b, because
// text from a file or the command line must not control a terminal.
std::string printable(std::string_view text);

// Thrown where the reader of the pipe on stdout is gone, as in `fp8lab codes e4m3 | head -1`.
class ClosedPipe final : public std::exception {
  public:
    const char* what() const noexcept override { return "stdout: Broken pipe"; }
};

// Waits until a read (POLLIN) or write (POLLOUT) of the descriptor does not block, or fails. Throws
// Interrupted when a signal asks the process to end during the wait: at once for a read, after one second for
// a write, in which a slow reader may still take the data.
void wait_for_stream(int descriptor, short events);

// Writes what is buffered for stdout. Throws Error{failed, "stdout", reason}, ClosedPipe, and Interrupted.
void flush_stdout();
// Writes what is buffered, then the argument without buffering. For long output: a signal ends the wait for a
// reader that has stopped, which it does not within printf(). Throws as flush_stdout(); a part may be
// written.
void write_stdout(std::span<const std::byte> bytes);
void write_stdout(std::string_view text);
[[noreturn]] void throw_stdout_lost(int error_number);
// Writes what is buffered if the reader takes it within one second, else drops it: exit() would wait for that
// reader for ever. Never throws.
void flush_or_drop_stdout() noexcept;

// Call once, before anything else. Opens those of descriptors 0 to 2 that are closed on /dev/null in the
// wrong direction: every use fails, and no file that is opened later becomes stdout. Ignores SIGPIPE, so that
// a write to a closed pipe returns an error.
void prepare_streams();

}  // namespace fp8lab
