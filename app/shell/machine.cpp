#include "app/shell/machine.h"

#include <unistd.h>

#include <fstream>

#include "core/backend/backend.h"

namespace fp8lab {

Machine detect_machine() {
    const ChosenBackend chosen = choose_backend("auto");
    const DeviceInfo device = chosen.backend->device();
    return {device.provenance, chosen.reason.empty() ? device.name : chosen.reason};
}

std::uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t total = 0;
    std::uint64_t resident = 0;
    statm >> total >> resident;
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace fp8lab
