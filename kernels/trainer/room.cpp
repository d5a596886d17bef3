#include "kernels/trainer/room.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/nn/memory_plan.h"
#include "core/nn/model.h"
#include "kernels/transformer/arm.h"

namespace fp8lab::cuda {

void check_room(const TrainSpec& spec, const std::vector<Engine>& engines) {
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    const bool attends =
        find_model(spec.model).tokens && std::ranges::count(engines, Engine::emulated) < std::ssize(engines);
    const auto needed = [&](int batch) {
        const AttentionBytes attention = attends ? attention_bytes(spec, batch) : AttentionBytes{};
        std::size_t bytes = ring_bytes(spec, batch);
        for (std::size_t i = 0; i < engines.size(); ++i)
            bytes += ArmMemory(spec, spec.arms[i], engines[i], batch, attention).device_bytes();
        return static_cast<double>(bytes);
    };
    const auto room = static_cast<double>(available);
    const double all = needed(spec.batch);
    if (all <= room) return;
    const bool one = spec.arms.size() == 1;
    int fits = spec.batch;
    while (fits > 0 && needed(fits) > room) fits /= 2;
    throw Error(ErrorKind::backend, "GPU memory",
                fmt::format("a batch of {} for {} arm{} needs {:.1f} GB, {:.1f} of {:.1f} GB are free; {}",
                            spec.batch, spec.arms.size(), one ? "" : "s", all / 1e9, room / 1e9,
                            static_cast<double>(total) / 1e9,
                            fits > 0 ? fmt::format("a batch of {} would fit", fits)
                            : one    ? std::string("no batch fits: choose a smaller model")
                                     : std::string("no batch fits: choose fewer arms or a smaller model")));
}

}  // namespace fp8lab::cuda
