// The place of a GPU among the ranks of a data-parallel training (core/nn/ranks/rank_options.h), and how it reaches the others.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ranks/collective.h"
#include "kernels/device/device.h"

namespace fp8lab::cuda {

// A collective whose buffers are in the memory of the GPU of one rank. A call enqueues on a stream and returns.
class GpuCollective : public Collective {
  public:
    // Of the calls that follow.
    virtual void use(cudaStream_t stream) = 0;
    // What `work` calls may travel in one launch, in any order.
    virtual void together(const std::function<void()>& work) { work(); }
    // Throws Error{failed} where a call that was enqueued has failed.
    virtual void check() {}
};

// What the hosts of the ranks tell each other. Every call is made by all ranks, in the same order, and has a timeout.
class HostLink {
  public:
    virtual ~HostLink() = default;
    // The bytes of all ranks, in their order. `what`: for the error, "the records of step 12". Throws Error{failed} with the
    // rank that is missing and the reason. patience: instead of the timeout.
    using Patience = std::optional<std::chrono::milliseconds>;
    virtual std::vector<std::string> all_gather(std::string bytes, const std::string& what,
                                                Patience patience = std::nullopt) = 0;
    // Throws Error{failed} where another rank has failed, or is gone.
    virtual void check() = 0;
    // Tells the others that this rank has failed; their calls throw then.
    virtual void fail(const std::string& reason) = 0;
};

// One rank where there is only one: no collective and no link.
struct RankPlace {
    int rank = 0, count = 1;
    std::shared_ptr<GpuCollective> collective;
    std::shared_ptr<HostLink> link;
    std::chrono::milliseconds timeout = std::chrono::minutes(1);
    bool several() const { return count > 1; }
};

// Waits until the GPU has done what was enqueued: for ever where there is one rank. Where there are several it looks after the
// others meanwhile, and throws Error{failed} after the timeout, or when one has failed. `what`: "the records of step 12".
void wait_for(const RankPlace& place, const Event& event, const std::string& what);
void wait_for(const RankPlace& place, cudaStream_t stream, const std::string& what);

}  // namespace fp8lab::cuda
