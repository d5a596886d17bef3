#include "core/files/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/base/units.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

// The number behind a word of a table of words and numbers; also the first number of a file: the empty word.
std::optional<std::uint64_t> number_in(const fs::path& file, const std::string& word) {
    std::ifstream in(file);
    std::uint64_t number = 0;
    if (word.empty()) return in >> number ? std::optional(number) : std::nullopt;
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(word))
            if (std::size_t at = line.find_first_of("0123456789", word.size()); at != line.npos)
                return std::stoull(line.substr(at));
    return std::nullopt;
}

std::uint64_t difference(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

std::uint64_t left_by_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
    const auto pages = number_in("/proc/self/statm", "");
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return difference(limit.rlim_cur, pages.value_or(0) * page);
}

std::uint64_t left_by_group(const fs::path& root) {
    std::string group;
    std::ifstream groups(root / "proc/self/cgroup");
    for (std::string line; std::getline(groups, line);)
        if (line.starts_with("0::/")) group = line.substr(4);
    std::uint64_t left = kUnknown;
    const fs::path top = root / "sys/fs/cgroup";
    for (fs::path at = group;; at = at.parent_path()) {
        const fs::path folder = at.empty() ? top : top / at;
        const auto most = number_in(folder / "memory.max", ""),  // "max": none
            used = number_in(folder / "memory.current", "");
        if (most && used) {
            const fs::path stat = folder / "memory.stat";
            const std::uint64_t cache =
                number_in(stat, "inactive_file ").value_or(0) + number_in(stat, "active_file ").value_or(0);
            left = std::min(left, difference(*most, difference(*used, cache)));
        }
        if (at.empty()) return left;
    }
}

}  // namespace

std::uint64_t free_memory(const fs::path& root) {
    constexpr std::uint64_t kKilo = 1024;
    const auto available = number_in(root / "proc/meminfo", "MemAvailable:");
    return std::min({available ? *available * kKilo : kUnknown, left_by_limit(), left_by_group(root)});
}

void require_memory(const std::string& where, double bytes, std::uint64_t free) {
    if (bytes <= static_cast<double>(free)) return;
    constexpr double kMost = 9e18;
    throw Error(ErrorKind::failed, where,
                "not enough memory: " + format_bytes(static_cast<std::uint64_t>(std::min(bytes, kMost))) +
                    " are needed, " + format_bytes(free) + " are free");
}

void require_memory(const std::string& where, double bytes) {
    constexpr double kWorthAsking = 1 << 20;
    if (bytes >= kWorthAsking) require_memory(where, bytes, free_memory());
}

}  // namespace fp8lab
