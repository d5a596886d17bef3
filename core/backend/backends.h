// The CPU and the GPU of this process for whoever lets the user choose. Each backend is made when it is first
// asked for and then shared: the GPU's context costs half a second and hundreds of MB. A handle: copies refer
// to the same backends. Every member may be called from any thread; get() only from one that may wait.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/backend/backend.h"

namespace fp8lab {

class Backends {
  public:
    using MakeGpu = std::function<Result<std::unique_ptr<Backend>>()>;

    Backends();  // this machine's
    // The CPU, and a GPU that `gpu` makes. `obstacle`: why there is none, known beforehand.
    Backends(std::unique_ptr<Backend> cpu, MakeGpu gpu, std::string obstacle = "");
    Backends(std::unique_ptr<Backend> cpu);  // and no GPU

    // "cpu" or "cuda". Throws Error{backend} with the reason where there is no such backend.
    Backend& get(std::string_view name) const;
    // Why the GPU is of no use, as far as is known: before the first get("cuda") only whether one can be
    // tried. Empty: nothing against it.
    std::string gpu_reason() const;
    std::optional<DeviceInfo> gpu_device() const;  // once it has been made

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace fp8lab
