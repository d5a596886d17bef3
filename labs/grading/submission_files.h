// The files to grade for a list of paths. The result has every named file and every file that looks like a
// submission, with the reason where it cannot be graded.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace fp8lab {

struct SubmissionFile {
    std::filesystem::path path;
    std::string problem = {};  // why it cannot be graded; empty: no reason is known
};

// Named files, each once, in the order in which they are first named. Of a folder, in the order of the names:
// all *.f8lab, JSON files that are evidence or a bundle, and files that cannot be opened; other files are
// ignored. Case is ignored in extensions. Links to folders are not followed. Throws only bad_alloc.
std::vector<SubmissionFile> submissions_in(std::span<const std::string> paths);

// ".f8lab" of "A.F8LAB".
std::string lower_extension(const std::filesystem::path& path);

}  // namespace fp8lab
