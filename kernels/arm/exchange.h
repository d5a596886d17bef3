// What the hosts of the ranks tell each other about an arm (HostLink).
#pragma once

#include <string>
#include <vector>

#include "kernels/arm/arm.h"
#include "kernels/ranks/place.h"

namespace fp8lab::cuda {

// The record of a step of each rank, in their order, and the time in ms that the slowest took.
struct RankRecords {
    std::vector<ArmRecord> of;
    double ms = 0;
};
RankRecords records_of_all(const RankPlace& place, const ArmRecord& own, double ms);

// The delayed scales of all ranks, each with its rank; those of one rank alone have none.
std::vector<ScaleCheckpoint> scales_of_all(const RankPlace& place, std::vector<ScaleCheckpoint> own);
// Those that are of this rank, or of every rank.
std::vector<ScaleCheckpoint> scales_of_rank(const RankPlace& place, const std::vector<ScaleCheckpoint>& all);

}  // namespace fp8lab::cuda
