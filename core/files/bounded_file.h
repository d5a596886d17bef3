// Reading files that may be anything: the one way in. Kind and size are looked at before the first byte is read, and
// opening never blocks. What is read in parts, a model of many gigabytes, is a RandomFile (random_file.h), which opens
// in the same way.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace fp8lab {

// Whether a pipe may stand where a file is named: a FIFO, or the /dev/fd/63 of `<(command)`. It can be read once, so only
// where a verb reads its input once.
enum class Pipes { refused, read };

// The most that a text or a JSON document of this program has, in bytes: recordings, series, settings, configurations.
inline constexpr std::size_t kLargestDocument = std::size_t{64} << 20;

// The whole content of a regular file of at most `most` bytes; "-" is stdin, of any kind. A file that grows
// during the read is not read beyond `most`. Throws input_error(path, ...): no such file, not readable, a
// loop of links; a folder, a device, a socket or, where they are refused, a pipe; too large. Throws Error{failed}
// where the memory does not suffice (memory.h), and Interrupted (stop.h) when the process is asked to end while it waits
// for a pipe or for stdin.
std::string read_bounded(const std::filesystem::path& path, std::size_t most, Pipes pipes = Pipes::refused);
std::vector<std::byte> read_bytes(const std::filesystem::path& path, std::size_t most = kLargestDocument,
                                  Pipes pipes = Pipes::refused);

// The whole content of a document of the program's own.
inline std::string read_text(const std::filesystem::path& path) {
    return read_bounded(path, kLargestDocument);
}

// The first bytes of a regular file of any size, at most `bytes`: enough to recognise its kind.
std::string read_head(const std::filesystem::path& path, std::size_t bytes);

}  // namespace fp8lab
