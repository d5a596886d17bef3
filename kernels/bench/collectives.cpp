#include "kernels/bench/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/ranks/sums.h"
#include "kernels/bench/measure.h"
#include "kernels/device/random_fill.h"
#include "kernels/ranks/devices.h"
#include "kernels/ranks/nccl.h"
#include "kernels/ranks/thread_link.h"
#include "kernels/ranks/workers.h"

namespace fp8lab::cuda {
namespace {

constexpr int kWarmUp = 4;

struct Case {
    std::string op, type;
    std::size_t bytes;  // of the whole tensor
};

std::vector<Case> cases_of(const std::vector<double>& bytes, std::size_t ranks) {
    std::vector<Case> out;
    for (const double wanted : bytes) {
        // Whole values of FP32 for each rank.
        const std::size_t unit = ranks * sizeof(float),
                          size = std::max(unit, static_cast<std::size_t>(wanted) / unit * unit);
        out.push_back({"reduce_scatter", "bf16", size});
        out.push_back({"reduce_scatter", "fp32", size});
        out.push_back({"all_gather", "uint8", size});
        if (size <= 1 << 20) out.push_back({"all_reduce_max", "fp32", size});  // amaxes are few
    }
    return out;
}

// One rank: the times of the operation, each from where all ranks have begun it.
std::vector<double> times_of(const Case& one, const RankPlace& place, cudaStream_t stream, const Memory& in,
                             const Memory& out, int repeats) {
    const std::size_t each = one.bytes / static_cast<std::size_t>(place.count);
    const auto run = [&] {
        const RankBuffers buffers{place.rank, in.get(), out.get()};
        if (one.op == "reduce_scatter")
            place.collective->reduce_scatter(find_rank_sum(one.type), {&buffers, 1},
                                             each / (one.type == "bf16" ? 2 : 4));
        else if (one.op == "all_gather")
            place.collective->all_gather({&buffers, 1}, each);
        else {
            const RankValues values{place.rank, static_cast<float*>(out.get())};
            place.collective->all_reduce_max({&values, 1}, one.bytes / sizeof(float));
        }
    };
    std::vector<double> ms;
    for (int i = -kWarmUp; i < repeats; ++i) {
        place.link->all_gather({}, one.op);
        Event before, after;
        before.record(stream);
        run();
        after.record(stream);
        wait_for(place, after, one.op);
        if (i >= 0) ms.push_back(static_cast<double>(elapsed_ms(before, after)));
    }
    return ms;
}

}  // namespace

std::vector<CollectiveTime> time_collectives(const std::vector<int>& devices,
                                             const std::vector<double>& bytes, int repeats) {
    check_devices(devices);
    constexpr std::chrono::seconds kTimeout(60);
    const int count = static_cast<int>(devices.size());
    const std::vector<Case> cases = cases_of(bytes, devices.size());
    std::size_t largest = 0;
    for (const Case& one : cases) largest = std::max(largest, one.bytes);
    const NcclId id = make_nccl_id();
    const auto links = make_thread_links(count, kTimeout);
    std::vector<std::vector<std::vector<double>>> ms(devices.size());  // by rank and case
    Workers(count).run(
        [&](int rank) {
            const auto at = static_cast<std::size_t>(rank);
            check(cudaSetDevice(devices[at]), "cudaSetDevice");
            const Stream stream;
            const Memory in(largest), out(largest);
            fill_random(in.get(), Element::bf16, largest, 1, stream.get());
            fill_random(out.get(), Element::bf16, largest, 2, stream.get());
            RankPlace place{rank, count, nullptr, links[at], kTimeout};
            place.collective = make_nccl_collective(id, place);
            place.collective->use(stream.get());
            for (const Case& one : cases)
                ms[at].push_back(times_of(one, place, stream.get(), in, out, repeats));
        },
        [&](int, const std::exception& error) { links.front()->fail(error.what()); });
    std::vector<CollectiveTime> times;
    for (std::size_t c = 0; c < cases.size(); ++c) {
        std::vector<double> slowest = ms.front()[c];
        for (const auto& rank : ms)
            for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], rank[c][i]);
        Timed timed;
        summarise(timed, std::move(slowest));
        times.push_back({cases[c].op, cases[c].type, static_cast<double>(cases[c].bytes), timed.median_ms,
                         timed.q1_ms, timed.q3_ms, timed.repeats});
    }
    return times;
}

}  // namespace fp8lab::cuda
