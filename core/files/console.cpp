#include "core/files/console.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <system_error>

#include "core/base/error.h"
#include "core/base/stop.h"

namespace fp8lab {
namespace {

// The length of the UTF-8 character at the start of `text`; 0: there is none, or a control character.
std::size_t printable_character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
    std::uint32_t code = first & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 0x3FU);
    }
    constexpr std::uint32_t kShortest[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    const bool control = code < 0xA0;  // U+0080 to U+009F
    const bool turns = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);  // direction
    return code < kShortest[length] || code > 0x10FFFF || surrogate || control || turns ? 0 : length;
}

void append_escaped(std::string& out, char c) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    if (c == '\n') {
        out += "\\n";
    } else if (c == '\t') {
        out += "\\t";
    } else {
        const auto byte = static_cast<unsigned char>(c);
        out += "\\x";
        out += kDigits[byte >> 4];
        out += kDigits[byte & 15];
    }
}

// Writes to stderr without escaping. A failure is ignored.
void write_message(std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

std::size_t terminal_width() {
    constexpr std::size_t kUsual = 80;
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

// The first `most` characters of UTF-8.
std::string_view first_characters(std::string_view text, std::size_t most) {
    std::size_t end = 0, count = 0;
    for (; end < text.size(); ++end) {
        const bool starts = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
        if (starts && count++ == most) break;
    }
    return text.substr(0, end);
}

}  // namespace

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = printable_character(text);
        if (length > 0) {
            out += text.substr(0, length);
        } else {
            append_escaped(out, text.front());
        }
        text.remove_prefix(length > 0 ? length : 1);
    }
    return out;
}

void tell(std::string_view line) noexcept {
    try {
        erase_line();
        write_message(printable(line) + "\n");
    } catch (...) {  // no memory for a message
        return;
    }
}

void draw_line(std::string_view line) noexcept {
    try {
        const std::string text = printable(line);
        set_open_line(true);
        write_message(std::string(kOverLine) + std::string(first_characters(text, terminal_width() - 1)));
    } catch (...) {  // no memory for a message
        return;
    }
}

void erase_line() noexcept {
    if (set_open_line(false)) write_message(kOverLine);
}

void throw_stdout_lost(int error_number) {
    if (error_number == EPIPE) throw ClosedPipe();
    throw Error(ErrorKind::failed, "stdout", system_reason(error_number));
}

void wait_for_stream(int descriptor, short events) {
    constexpr int kPause_ms = 200;  // a signal may come just before poll()
    pollfd stream{descriptor, events, 0};
    for (int patience = events == POLLOUT ? 5 : 0;;) {
        const int ready = ::poll(&stream, 1, kPause_ms);
        if (ready > 0 || (ready < 0 && errno != EINTR)) return;
        if (interrupted() && patience-- == 0) end_if_interrupted();
    }
}

void flush_stdout() {
    wait_for_stream(STDOUT_FILENO, POLLOUT);
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw_stdout_lost(errno != 0 ? errno : EIO);
}

void flush_or_drop_stdout() noexcept {
    constexpr int kPatience_ms = 1000;
    pollfd stream{STDOUT_FILENO, POLLOUT, 0};
    if (::poll(&stream, 1, kPatience_ms) == 1) std::fflush(stdout);
    ::__fpurge(stdout);
}

void write_stdout(std::span<const std::byte> bytes) {
    flush_stdout();
    // A pipe that poll() calls writable takes this much without blocking. A file never waits for a reader.
    struct stat info {};
    const bool is_file = ::fstat(STDOUT_FILENO, &info) == 0 && S_ISREG(info.st_mode);
    const std::size_t most = is_file ? std::size_t{1} << 20 : std::size_t{PIPE_BUF};
    while (!bytes.empty()) {
        wait_for_stream(STDOUT_FILENO, POLLOUT);
        const auto piece = bytes.first(std::min(bytes.size(), most));
        const ssize_t written = ::write(STDOUT_FILENO, piece.data(), piece.size());
        if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (written < 0) throw_stdout_lost(errno);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

void write_stdout(std::string_view text) { write_stdout(std::as_bytes(std::span(text))); }

void prepare_streams() {
    ::signal(SIGPIPE, SIG_IGN);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            // The lowest free number: fd. Stdin cannot be read and the others not be written.
            static_cast<void>(::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

}  // namespace fp8lab
