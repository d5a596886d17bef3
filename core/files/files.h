// Files that are written whole or not at all: to a temporary name beside the target, then fsync, rename, and
// fsync of the folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/bounded_file.h"  // how files are read

namespace fp8lab {

// Where a write to `path` goes: links are followed, also a link to a file that does not exist yet. A name of
// an open descriptor of this process (/dev/stdout, /dev/fd/3) is that descriptor. Throws Error{failed}: a
// loop of links.
struct WriteTarget {
    std::filesystem::path path;
    int descriptor = -1;  // -1: none
};
WriteTarget write_target(const std::filesystem::path& path);

// Whether a file can be made in the folder: only making one tells, since root may write to folders of /proc that take
// none. The file is gone afterwards, also where a signal ends the process. Sets errno where it is false.
bool takes_files(const std::filesystem::path& folder);

// "-" writes stdout. A link stays a link, and its target is replaced. A file that is replaced passes on its mode, and
// its owner and group where this user may set them; a new one takes those of `like` where such a file exists, else
// what umask leaves. Throws Error{failed} with path and reason; an existing file is then unchanged. Throws ClosedPipe
// when the reader of stdout is gone, and Interrupted when the process is asked to end while it waits for that reader.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                const std::filesystem::path& like = {});
void write_file(const std::filesystem::path& path, std::string_view text,
                const std::filesystem::path& like = {});

// Assets: FP8LAB_ASSETS, else "assets" beside the executable, else ../share/fp8lab. Never the working
// directory. Throws input_error with the places where it looked.
std::filesystem::path asset(std::string_view name);
std::filesystem::path executable_folder();

}  // namespace fp8lab
