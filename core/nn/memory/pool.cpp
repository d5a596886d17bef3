#include <algorithm>
#include <numeric>
#include <set>

#include "core/nn/memory/lists.h"

namespace fp8lab::cuda {
namespace {

constexpr std::uint64_t kAligned = 512;
std::uint64_t up(std::uint64_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

}  // namespace

std::uint64_t place_in_pool(std::span<Allocation> list) {
    std::vector<Allocation*> largest_first;
    for (Allocation& one : list)
        if (!one.life.always()) largest_first.push_back(&one);
    std::ranges::stable_sort(largest_first, std::ranges::greater(), &Allocation::bytes);
    std::vector<Allocation*> placed;  // by offset
    std::uint64_t pool = 0;
    for (Allocation* const one : largest_first) {
        std::uint64_t at = 0;
        for (const Allocation* other : placed) {
            if (!one->life.overlaps(other->life)) continue;
            if (at + up(one->bytes) <= other->offset) break;
            at = std::max(at, other->offset + up(other->bytes));
        }
        one->offset = at;
        pool = std::max(pool, at + up(one->bytes));
        placed.insert(std::ranges::upper_bound(placed, at, {}, &Allocation::offset), one);
    }
    return pool;
}

std::uint64_t most_at_once(std::span<const Allocation> list) {
    std::uint64_t most = 0;
    for (const Allocation& begins : list) {
        std::uint64_t now = 0;
        for (const Allocation& one : list)
            if (!one.life.always() && one.life.first <= begins.life.first &&
                begins.life.first <= one.life.last)
                now += one.bytes;
        most = std::max(most, now);
    }
    return most;
}

}  // namespace fp8lab::cuda
