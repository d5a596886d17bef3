// The folder of the user's documents.
#pragma once

#include <filesystem>

namespace fp8lab {

// Returns $XDG_DOCUMENTS_DIR, from the environment or from user-dirs.dirs (xdg-user-dirs), else ~/Documents.
std::filesystem::path documents_folder();

}  // namespace fp8lab
