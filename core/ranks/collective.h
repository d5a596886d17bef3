// What the ranks of a data-parallel training exchange: the three operations that ZeRO-1 needs. An all-reduce is a
// reduce_scatter() and an all_gather().
//
// A call names the buffers of all ranks that the caller drives: of all of them where one thread computes them in turn, as on
// the CPU; of one where each has a thread, as with a GPU for each. Together the callers name each rank once. All make the
// same calls in the same order. Buffers are where the implementation adds: main memory, or that of the rank's GPU.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "core/ranks/sums.h"

namespace fp8lab {

struct RankBuffers {
    int rank = 0;
    const void* in = nullptr;
    void* out = nullptr;
};
struct RankValues {
    int rank = 0;
    float* values = nullptr;
};

class Collective {
  public:
    virtual ~Collective() = default;
    virtual int ranks() const = 0;

    // in: ranks() blocks of n codes of sum.sent(), block c that of rank c. out: n codes of sum.kept(), the sum of the blocks of this
    // rank as add_ranks() adds them with a chunk for each block. Codes have 4, 2 or 1 byte. Throws usage_error for a sum
    // that the implementation does not have.
    virtual void reduce_scatter(const RankSum& sum, std::span<const RankBuffers> buffers, std::size_t n) = 0;
    // in: `bytes` of each rank. out: those of all ranks, one after the other, in every rank.
    virtual void all_gather(std::span<const RankBuffers> buffers, std::size_t bytes) = 0;
    // Replaces each of n values by the largest of all ranks. NaN is above all.
    virtual void all_reduce_max(std::span<const RankValues> buffers, std::size_t n) = 0;
    // Returns when all ranks have called it. Throws Error{failed}, with the ranks that did not, after `timeout`.
    virtual void barrier(std::span<const int> driven, std::chrono::milliseconds timeout) = 0;
    // Ends every call that waits, in all threads, and each later one: they throw Error{failed}.
    virtual void abort() = 0;
};

}  // namespace fp8lab
