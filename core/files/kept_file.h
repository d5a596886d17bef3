// A file that must not be lost: written whole or not at all (files.h), with a checksum inside (checksum.h), and
// with the previous version beside it as <name>.bak.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/files/folders.h"

namespace fp8lab {

// Calls `take` with the text of the file; `take` throws when the text is not valid, and is then called with
// the previous version. A damaged file is renamed to <name>.damaged and the previous version replaces it;
// with Access::read_only no file is changed. Returns what happened as a sentence; empty: the file was read,
// or there is none.
std::string load_kept(const std::filesystem::path& file, const std::function<void(const std::string&)>& take,
                      Access access);

// Writes `text`, which with_checksum() made. Throws Error{failed}: file and .bak then still hold what was kept last.
void save_kept(const std::filesystem::path& file, std::string_view text);

}  // namespace fp8lab
