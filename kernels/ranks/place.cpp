#include "kernels/ranks/place.h"

#include <fmt/format.h>

#include <thread>

#include "core/base/error.h"

namespace fp8lab::cuda {

void wait_for(const RankPlace& place, const Event& event, const std::string& what) {
    if (!place.several()) return event.wait();
    // Short steps are waited for without sleep; the others and the network are asked now and then.
    constexpr int kSpins = 2000;
    constexpr auto kNap = std::chrono::microseconds(20);
    constexpr auto kPatience = std::chrono::seconds(2);
    const auto start = std::chrono::steady_clock::now();
    for (int spins = 0;; ++spins) {
        const cudaError_t status = cudaEventQuery(event.get());
        if (status == cudaSuccess) return;
        if (status != cudaErrorNotReady) check(status, what.c_str());
        cudaGetLastError();  // "not ready" is not an error
        if (spins < kSpins) continue;
        std::this_thread::sleep_for(kNap);
        if (spins % 50 != 0) continue;
        place.collective->check();
        place.link->check();
        if (std::chrono::steady_clock::now() - start < place.timeout) continue;
        // Ranks whose hosts answer wait as this one does; this names the others.
        place.link->all_gather({}, what + ", for which GPUs wait,", kPatience);
        throw Error(ErrorKind::failed, fmt::format("rank {}", place.rank),
                    fmt::format("its GPU did not finish {} within {} s", what,
                                std::chrono::duration<double>(place.timeout).count()));
    }
}

void wait_for(const RankPlace& place, cudaStream_t stream, const std::string& what) {
    Event done;
    done.record(stream);
    wait_for(place, done, what);
}

}  // namespace fp8lab::cuda
