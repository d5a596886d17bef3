// The link between ranks that are threads of one process.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "kernels/ranks/place.h"

namespace fp8lab::cuda {

// One link for each rank, in their order.
std::vector<std::shared_ptr<HostLink>> make_thread_links(int ranks, std::chrono::milliseconds timeout);

}  // namespace fp8lab::cuda
