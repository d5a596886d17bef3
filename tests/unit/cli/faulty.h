// The files of tests/unit/verify/faulty_files.h for tests that drive the binary, whose function fp8lab() has the name of
// the namespace.
#pragma once

#include <filesystem>
#include <string>

// FOLDER/model.safetensors and FOLDER/original.safetensors of the case of that name, 256 x 256. Returns what verify has to
// say. Throws std::out_of_range for another name.
std::string write_faulty_file(const std::string& name, const std::filesystem::path& folder);
