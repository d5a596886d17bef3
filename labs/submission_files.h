// Which files a teacher means by the paths that are named. Whatever was named, or looks like something that
// was handed in, is in the result, with the reason where it cannot be graded.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace fp8lab {

struct SubmissionFile {
    std::filesystem::path path;
    std::string problem = {};  // why it cannot be graded; empty: it can be tried
};

// Files as named, each once, in the place where it was named first. Of a folder, in the order of their names:
// bundles (*.f8lab, whatever they turn out to be), JSON that is evidence or a bundle, and what cannot be
// looked at; its other files are somebody else's. Case does not matter in an extension. Links to folders are
// not followed. Throws nothing but bad_alloc.
std::vector<SubmissionFile> submissions_in(std::span<const std::string> paths);

// ".f8lab" of "A.F8LAB".
std::string lower_extension(const std::filesystem::path& path);

}  // namespace fp8lab
