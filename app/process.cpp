// What the system's /proc says of this process.
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <string>

#include "app/shell/machine.h"

namespace fp8lab {

std::uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t total = 0;
    std::uint64_t resident = 0;
    statm >> total >> resident;
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Reads field 22 of /proc/self/stat, in clock ticks since boot.
double process_age_ms() {
    std::ifstream stat("/proc/self/stat");
    std::string line;
    std::getline(stat, line);
    line.erase(0, line.rfind(')') + 2);  // the name may hold spaces
    std::size_t at = 0;
    for (int field = 3; field < 22; ++field) at = line.find(' ', at) + 1;
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const double seconds = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
    return 1000 * (seconds - std::stod(line.substr(at)) / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace fp8lab
