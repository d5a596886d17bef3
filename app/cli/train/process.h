// The environment variables with which torchrun starts a process for each rank: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
// MASTER_PORT.
#pragma once

#include <optional>

#include "core/nn/ranks/rank_options.h"

namespace fp8lab::cli {

struct ProcessOfMany {
    ProcessRank own;
    int ranks = 1;
};
// None where WORLD_SIZE is not set, or is 1. Throws usage_error with the variable that is missing or out of range.
std::optional<ProcessOfMany> process_of_environment();

}  // namespace fp8lab::cli
