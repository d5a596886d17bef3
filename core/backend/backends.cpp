#include "core/backend/backends.h"

#include <mutex>
#include <utility>

#include "core/base/error.h"

namespace fp8lab {

// Two locks: the window may ask for the reason while a worker makes the backend.
struct Backends::State {
    std::mutex making;
    std::unique_ptr<Backend> cpu, cuda;
    MakeGpu make_cuda;

    std::mutex known;
    std::optional<std::string> reason;  // none: not looked yet
    std::optional<DeviceInfo> device;
};

Backends::Backends() : Backends(cpu_backend(), [] { return cuda_backend(); }) { state_->reason.reset(); }

Backends::Backends(std::unique_ptr<Backend> cpu, MakeGpu gpu, std::string obstacle)
    : state_(std::make_shared<State>()) {
    state_->cpu = std::move(cpu);
    state_->make_cuda = std::move(gpu);
    state_->reason = std::move(obstacle);
}

Backends::Backends(std::unique_ptr<Backend> cpu)
    : Backends(std::move(cpu), {}, "This laboratory was opened without a GPU.") {}

Backend& Backends::get(std::string_view name) const {
    if (name == "cpu") return *state_->cpu;
    const auto refuse = [](const std::string& reason) { return Error(ErrorKind::backend, "GPU", reason); };
    if (const std::string reason = gpu_reason(); !reason.empty()) throw refuse(reason);
    const std::lock_guard making{state_->making};
    if (state_->cuda) return *state_->cuda;
    auto made = state_->make_cuda();
    const std::lock_guard known{state_->known};
    if (!made) {
        state_->reason = made.reason();
        throw refuse(made.reason());
    }
    state_->cuda = std::move(made.value());
    state_->device = state_->cuda->device();
    return *state_->cuda;
}

std::string Backends::gpu_reason() const {
    const std::lock_guard known{state_->known};
    if (!state_->reason) state_->reason = gpu_obstacle();
    return *state_->reason;
}

std::optional<DeviceInfo> Backends::gpu_device() const {
    const std::lock_guard known{state_->known};
    return state_->device;
}

}  // namespace fp8lab
