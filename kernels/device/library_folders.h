// Where the libraries are that NVIDIA's packages for Python bring, for dlopen().
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace fp8lab::cuda {

// In the order in which they are tried: only the folder that the environment variable `told` names, and its lib, where it is
// set; else those of nvidia/PACKAGE in the packages of Python (VIRTUAL_ENV, the user's, the system's), and last the empty path,
// with which the loader looks in its own places.
std::vector<std::filesystem::path> library_folders(const char* told, std::string_view package);

}  // namespace fp8lab::cuda
