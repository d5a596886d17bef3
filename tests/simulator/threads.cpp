#include "tests/simulator/threads.h"

#include <ucontext.h>

#include <bit>
#include <csetjmp>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace fp8lab::simulator {

Index thread_index, block_index, block_size, grid_size;

namespace {

constexpr unsigned kWarp = 32;
constexpr std::size_t kStack = 128 << 10;

// Opens when all that are to come have come.
struct Barrier {
    unsigned arrived = 0, expected = 0;
    std::uint64_t generation = 0;
    void open_if_complete() {
        if (arrived < expected || expected == 0) return;
        arrived = 0;
        ++generation;
    }
};

struct Warp {
    Barrier barrier;
    std::uint64_t values[kWarp] = {};
    bool present[kWarp] = {};
};

struct Fiber {
    std::unique_ptr<std::byte[]> stack;
    ucontext_t start{};
    jmp_buf state{};
    bool started = false, done = true;
    Index index;
    unsigned number = 0;
};

std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Warp> warps;
Barrier block_barrier;
bool votes = false, vote_result = false;
Fiber* running = nullptr;
const std::function<void()>* body = nullptr;
jmp_buf scheduler;
ucontext_t scheduler_start;

Warp& warp() { return warps[running->number / kWarp]; }

// A switch saves no signal mask: no call of the system.
void yield() {
    if (_setjmp(running->state) == 0) _longjmp(scheduler, 1);
}

void wait(Barrier& barrier) {
    const std::uint64_t mine = barrier.generation;
    ++barrier.arrived;
    barrier.open_if_complete();
    while (barrier.generation == mine) yield();
}

// A fiber lives on from block to block.
void fiber_main() {
    for (;;) {
        (*body)();
        running->done = true;
        for (Barrier* barrier :
             {&block_barrier, &warp().barrier}) {  // no thread waits for one that has ended
            --barrier->expected;
            barrier->open_if_complete();
        }
        yield();
    }
}

void resume(Fiber& fiber) {
    running = &fiber;
    thread_index = fiber.index;
    if (_setjmp(scheduler) != 0) return;
    if (fiber.started) _longjmp(fiber.state, 1);
    fiber.started = true;
    swapcontext(&scheduler_start, &fiber.start);
}

Fiber& fiber_at(unsigned number) {
    while (fibers.size() <= number) {
        auto fiber = std::make_unique<Fiber>();
        fiber->stack = std::make_unique_for_overwrite<std::byte[]>(kStack);
        getcontext(&fiber->start);
        fiber->start.uc_stack.ss_sp = fiber->stack.get();
        fiber->start.uc_stack.ss_size = kStack;
        makecontext(&fiber->start, fiber_main, 0);
        fibers.push_back(std::move(fiber));
    }
    return *fibers[number];
}

void run_block(unsigned threads, Order order) {
    warps.assign((threads + kWarp - 1) / kWarp, {});
    block_barrier = {.expected = threads};
    for (unsigned i = 0; i < threads; ++i) {
        Fiber& fiber = fiber_at(i);
        fiber.done = false;
        fiber.number = i;
        fiber.index = {i % block_size.x, i / block_size.x % block_size.y, i / block_size.x / block_size.y};
        ++warps[i / kWarp].barrier.expected;
    }
    // A permutation of the threads: an odd factor and an offset, modulo the power of two that holds them.
    const unsigned span = std::bit_ceil(threads);
    std::uint32_t dice = 2463534242u + block_index.x * 7 + block_index.y * 31;
    std::uint32_t resting = 0, round = 0;
    for (bool left = true; left;) {
        left = false;
        dice = dice * 1664525u + 1013904223u;
        const unsigned factor = (dice >> 8) | 1, offset = dice >> 16;
        // Some warps are left behind for so long that others come to their next barrier.
        if (round++ % 32 == 0) resting = dice >> 8;
        for (unsigned turn = 0; turn < (order == Order::shuffled ? span : threads); ++turn) {
            const unsigned i = order == Order::forwards    ? turn
                               : order == Order::backwards ? threads - 1 - turn
                                                           : (turn * factor + offset) % span;
            if (i >= threads) continue;
            Fiber& fiber = *fibers[i];
            const bool rests = order == Order::shuffled && (resting >> (i / kWarp % 16) & 1) != 0;
            if (!fiber.done && !rests) resume(fiber);
            left = left || !fiber.done;
        }
    }
}

}  // namespace

void run_grid(Index grid, Index block, const std::function<void()>& kernel, Order order) {
    if (block.x * block.y * block.z > 1024) std::abort();  // as no GPU takes it
    body = &kernel;
    block_size = block;
    grid_size = grid;
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                block_index = {x, y, z};
                run_block(block.x * block.y * block.z, order);
            }
}

void wait_for_block() { wait(block_barrier); }

bool any_of_block(bool value) {
    votes = votes || value;
    wait(block_barrier);
    vote_result = votes;
    wait(block_barrier);
    votes = false;
    return vote_result;
}

void wait_for_warp() { wait(warp().barrier); }

std::uint64_t exchange(std::uint64_t value, unsigned lane) {
    Warp& mine = warp();
    mine.values[running->number % kWarp] = value;
    wait(mine.barrier);
    const std::uint64_t found = mine.values[lane % kWarp];
    wait(mine.barrier);
    return found;
}

std::uint64_t combine(std::uint64_t value, std::uint64_t (*with)(std::uint64_t, std::uint64_t)) {
    Warp& mine = warp();
    const unsigned lane = running->number % kWarp;
    mine.values[lane] = value;
    mine.present[lane] = true;
    wait(mine.barrier);
    std::uint64_t total = 0;
    bool first = true;
    for (unsigned i = 0; i < kWarp; ++i) {
        if (!mine.present[i]) continue;
        total = first ? mine.values[i] : with(total, mine.values[i]);
        first = false;
    }
    wait(mine.barrier);
    mine.present[lane] = false;
    return total;
}

}  // namespace fp8lab::simulator
