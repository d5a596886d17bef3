// The CPU and GPU backends of this process. Each is made at its first use and then shared, because the
// context of a GPU costs half a second and hundreds of MB. Copies of this object refer to the same backends.
// Every member may be called from any thread; get() may take long.
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
    // The CPU, and the GPU that `gpu` makes. `obstacle`: why there is no GPU, where that is known in advance.
    Backends(std::unique_ptr<Backend> cpu, MakeGpu gpu, std::string obstacle = "");
    Backends(std::unique_ptr<Backend> cpu);  // without a GPU

    // "cpu" or "cuda". Throws Error{backend} with the reason where there is no such backend.
    Backend& get(std::string_view name) const;
    // Why the GPU cannot be used, as far as is known; before the first get("cuda") only gpu_obstacle().
    // Empty: no reason is known.
    std::string gpu_reason() const;
    std::optional<DeviceInfo> gpu_device() const;  // once it has been made

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace fp8lab
