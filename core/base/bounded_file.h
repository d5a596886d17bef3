// Files from strangers: what kind they are and how large is looked at before anything is read, and opening
// one never waits.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace fp8lab {

// A regular file of at most `most` bytes, whole; "-" is stdin, whatever that is. A file that grows meanwhile
// is not read beyond `most`. Throws input_error(path, ...): not there, not readable, links in a circle; a
// folder, a pipe, a device or a socket; too large. Throws Interrupted (stop.h) when the process is asked to
// end while stdin gives nothing.
std::string read_bounded(const std::filesystem::path& path, std::size_t most);

// The first bytes of such a file, whatever its size: enough to see what it is.
std::string read_head(const std::filesystem::path& path, std::size_t bytes);

}  // namespace fp8lab
