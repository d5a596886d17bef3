// What a student hands in, from a profile: the submission that `check` grades, and the facts of the machine.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/folders.h"
#include "core/lesson/bundle.h"

namespace fp8lab {

// What the numbers were made on, as (name, fact): processor, threads, GPU and why not, system, version. Asks
// no GPU.
std::vector<std::pair<std::string, std::string>> machine_card();

// Everything of the profile's exercises/: each evidence's text as it is, each prediction. Throws input_error
// for a file that cannot be read as what it is and has no previous one, and where there is none at all.
// `notice` is told of files that were replaced by the previous one.
Bundle make_submission(ProfileFolders folders, std::string student,
                       const std::function<void(const std::string&)>& notice = {});

}  // namespace fp8lab
