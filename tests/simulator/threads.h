// The threads of a CUDA block on one thread of the CPU, one after the other: each runs until it waits for others. Every
// order that a barrier allows is one that a GPU may take, so that what is right here in all orders is right there; what
// a missing barrier breaks is often found by running the threads backwards (Order::backwards).
#pragma once

#include <cstdint>
#include <functional>

namespace fp8lab::simulator {

struct Index {
    unsigned x = 0, y = 0, z = 0;
};
extern Index thread_index, block_index, block_size, grid_size;  // of the running thread

// shuffled: the threads in another order in every round, and warps at different paces.
enum class Order { forwards, backwards, shuffled };

// Runs `kernel` once in every thread of every block of the grid, one block after the other.
void run_grid(Index grid, Index block, const std::function<void()>& kernel, Order order = Order::forwards);

// ---- for the running thread
void wait_for_block();          // __syncthreads()
bool any_of_block(bool value);  // __syncthreads_or()
void wait_for_warp();           // the threads of the warp that have not ended
// The value that another lane passes in the same call. All threads of the warp that have not ended take part.
std::uint64_t exchange(std::uint64_t value, unsigned lane);
// What all lanes passed, combined in the order of the lanes.
std::uint64_t combine(std::uint64_t value, std::uint64_t (*with)(std::uint64_t, std::uint64_t));

}  // namespace fp8lab::simulator
