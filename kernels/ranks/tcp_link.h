// The link between ranks that are processes, on one host or several: each has a TCP connection to rank 0.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "core/nn/ranks/rank_options.h"
#include "kernels/ranks/place.h"

namespace fp8lab::cuda {

// Rank 0 listens at own.address:own.port; the others try to reach it until the timeout. `run` is what all ranks must have been
// started with: the version and the command line. Throws Error{backend} with the address where it cannot be listened at or
// reached, or a rank does not come in time; usage_error with the first word that differs where a rank has another `run`.
std::shared_ptr<HostLink> make_tcp_link(const ProcessRank& own, int ranks, const std::string& run,
                                        std::chrono::milliseconds timeout);

}  // namespace fp8lab::cuda
