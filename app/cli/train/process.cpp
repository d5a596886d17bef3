#include "app/cli/train/process.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/base/read_number.h"

namespace fp8lab::cli {
namespace {

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

int number_of(const char* name, int low, int high) {
    const std::string text = variable(name);
    if (text.empty()) throw usage_error(name, "is not set, and WORLD_SIZE is");
    int value = 0;
    if (!read_number(text, value) || value < low || value > high)
        throw usage_error(name, fmt::format("'{}' is not in {}..{}", text, low, high));
    return value;
}

}  // namespace

std::optional<ProcessOfMany> process_of_environment() {
    if (variable("WORLD_SIZE").empty()) return std::nullopt;
    ProcessOfMany out;
    out.ranks = number_of("WORLD_SIZE", 1, kMostRanks);
    if (out.ranks == 1) return std::nullopt;
    out.own.rank = number_of("RANK", 0, out.ranks - 1);
    out.own.device = number_of("LOCAL_RANK", 0, 63);
    out.own.address = variable("MASTER_ADDR");
    if (out.own.address.empty()) throw usage_error("MASTER_ADDR", "is not set, and WORLD_SIZE is");
    out.own.port = number_of("MASTER_PORT", 1, 65534);
    // torchrun's agent listens there itself.
    if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True") ++out.own.port;
    return out;
}

}  // namespace fp8lab::cli
