// A file that must never be lost: whole or not at all (files.h), with a checksum inside (seal.h), and beside
// it, as <name>.bak, the one before.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/folders.h"

namespace fp8lab {

// Hands the text to `take`, which throws when it is not what it should be; then the previous one. Damaged
// files are set aside as <name>.damaged and the previous one takes their place; with Access::read_only all
// stays where it is. Returns what became of it, as a sentence; empty: read, or there is none.
std::string load_kept(const std::filesystem::path& file, const std::function<void(const std::string&)>& take,
                      Access access);

// `text` from sealed(). Throws Error{failed}: file and .bak then still hold what was kept last.
void save_kept(const std::filesystem::path& file, std::string_view text);

}  // namespace fp8lab
