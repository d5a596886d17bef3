// Reading files that may be anything. Kind and size are checked before the first byte is read, and opening
// never blocks.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace fp8lab {

// The whole content of a regular file of at most `most` bytes; "-" is stdin, of any kind. A file that grows
// during the read is not read beyond `most`. Throws input_error(path, ...): no such file, not readable, a
// loop of links; a folder, a pipe, a device or a socket; too large. Throws Interrupted (stop.h) when the
// process is asked to end while it waits for stdin.
std::string read_bounded(const std::filesystem::path& path, std::size_t most);

// At most `bytes` first bytes of such a file, of any size: enough to recognise its kind.
std::string read_head(const std::filesystem::path& path, std::size_t bytes);

}  // namespace fp8lab
