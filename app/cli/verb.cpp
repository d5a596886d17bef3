#include "app/cli/verb.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/files/console.h"

namespace fp8lab::cli {

std::string check_seed(const std::string& text) {
    if (text.starts_with('-')) return "'" + text + "' is below 0";
    errno = 0;
    char* end = nullptr;
    std::strtoull(text.c_str(), &end, 0);
    if (text.empty() || *end != '\0') return "'" + text + "' is not a whole number";
    return errno == ERANGE ? "'" + text + "' is more than 64 bits hold" : "";
}

std::string json_text(const nlohmann::json& json) {
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void print_json(const nlohmann::json& json) { write_stdout(json_text(json)); }

void tell_backend(const ChosenBackend& chosen) {
    const DeviceInfo device = chosen.backend->device();
    tell(fmt::format("backend: {}, {}{}{}", to_string(device.provenance), device.name,
                     chosen.reason.empty() ? "" : ". ", chosen.reason));
}

void check_profile(const Globals& globals) {
    std::error_code none;
    if (std::filesystem::exists(globals.profile, none) &&
        !std::filesystem::is_directory(globals.profile, none))
        throw usage_error("--profile", globals.profile + " is a file, not a folder");
}

ProfileFolders profile_of(const Globals& globals) {
    ProfileFolders folders = profile_folders(globals.profile);
    if (!folders.notice.empty()) tell("fp8lab: profile: " + folders.notice);
    return folders;
}

nlohmann::json json_header(const DeviceInfo& device, std::uint64_t seed) {
    return {{"provenance", to_string(device.provenance)},
            {"device", device.name},
            {"version", FP8LAB_VERSION},
            {"seed", seed}};
}

}  // namespace fp8lab::cli
