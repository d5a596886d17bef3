// Files: whole or not at all. Writers go to a temporary name beside the target, fsync, rename, fsync the
// folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab {

// Whole file; "-" reads stdin. Throws input_error with the system's reason, and Interrupted (stop.h) when the
// process is asked to end while a pipe or terminal gives nothing.
std::vector<std::byte> read_file(const std::filesystem::path& path);
std::string read_text(const std::filesystem::path& path);

// Where a write to `path` goes: links are followed, also one to a file that is not there yet. A name of an
// open descriptor of this process (/dev/stdout, /dev/fd/3) is that descriptor. Throws Error{failed}: links in
// a circle.
struct WriteTarget {
    std::filesystem::path path;
    int descriptor = -1;  // -1: none
};
WriteTarget write_target(const std::filesystem::path& path);

// "-" writes stdout. A link stays a link, and what it leads to is replaced. Throws Error{failed} with path
// and reason; an existing file is then untouched. Throws ClosedPipe: nobody reads stdout any more. Throws
// Interrupted when the process is asked to end while stdout takes nothing.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& path, std::string_view text);

// Assets: FP8LAB_ASSETS, else "assets" beside the executable, else ../share/fp8lab. Never the working
// directory. Throws input_error naming where it looked.
std::filesystem::path asset(std::string_view name);
std::filesystem::path executable_folder();

}  // namespace fp8lab
