#include "app/shell/machine.h"

#include "core/backend/backend.h"

namespace fp8lab {

Machine detect_machine() {
    const std::string obstacle = gpu_obstacle();
    return {Provenance::cpu_emulated, obstacle.empty() ? "There is a GPU: L8 can train on it." : obstacle};
}

}  // namespace fp8lab
