// Which files a run's logs are: a part of read_run.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/run/read_run.h"

namespace fp8lab {

struct LogFiles {
    std::vector<std::filesystem::path> paths;
    std::vector<std::string> notes;  // what was left out
};

// Files as they are; of folders the logs in them. Throws as RunReader().
LogFiles log_files(const std::vector<std::filesystem::path>& paths, int rank);

}  // namespace fp8lab
