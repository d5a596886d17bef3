#include "app/cli/verb.h"

#include <csignal>
#include <nlohmann/json.hpp>

namespace fp8lab::cli {

namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

}  // namespace

bool interrupted() {
    // Installed by the first question, so that verbs that never ask keep the default: Ctrl-C ends them at
    // once.
    static const bool installed = [] {
        std::signal(SIGINT, [](int) { interrupt_seen = 1; });
        return true;
    }();
    return installed && interrupt_seen != 0;
}

std::string check_seed(const std::string& text) {
    return text.starts_with('-') ? "'" + text + "' is below 0" : "";
}

nlohmann::json json_header(const DeviceInfo& device, std::uint64_t seed) {
    return {{"provenance", to_string(device.provenance)},
            {"device", device.name},
            {"version", FP8LAB_VERSION},
            {"seed", seed}};
}

}  // namespace fp8lab::cli
