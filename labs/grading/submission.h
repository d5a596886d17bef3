// Makes the submission of a student from a profile, with facts about the machine.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/files/folders.h"
#include "core/lesson/bundle.h"

namespace fp8lab {

// The machine as (name, fact): processor, threads, GPU or why there is none, system, version. Does not load
// the GPU backend.
std::vector<std::pair<std::string, std::string>> machine_card();

// All of the profile's exercises/: the unchanged text of each evidence, and each prediction. Throws
// input_error for a damaged file without a previous version, and where there is no evidence at all. `notice`
// is called for files that were replaced by their previous version.
Bundle make_submission(ProfileFolders folders, std::string student,
                       const std::function<void(const std::string&)>& notice = {});

}  // namespace fp8lab
