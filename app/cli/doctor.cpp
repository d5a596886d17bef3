// fp8lab doctor: what this machine can do, and where the laboratory keeps its things.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/cli/validate/machine.h"
#include "app/cli/verb.h"
#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/files/console.h"
#include "core/files/folders.h"
#ifdef FP8LAB_GUI
#include "app/window/gl_window.h"
#include "labs/ui/fonts.h"
#endif

namespace fp8lab::cli {
namespace {

using Json = nlohmann::json;

// Facts of the GPU, and what cuBLASLt said to each mode when it was tried.
void print_gpu(const Json& gpu) {
    if (!gpu.contains("modes")) return;
    for (const auto& [name, fact] : gpu["facts"].items())
        fmt::print("{:<10}{}: {}\n", "", name, fact.get<std::string>());
    for (const Json& mode : gpu["modes"])
        fmt::print("{:<10}{:<46}{}\n", "", mode["name"].get<std::string>(),
                   mode["available"].get<bool>() ? "yes" : "no: " + mode["refusal"].get<std::string>());
    if (gpu.contains("modes_failed"))
        fmt::print("{:<10}its modes could not be tried: {}\n", "", gpu["modes_failed"].get<std::string>());
}

#ifdef FP8LAB_GUI
Json display() {
    Json found = {{"usable", false}};
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"}) {
        if (const char* value = std::getenv(name)) found[name] = value;
    }
    try {
        const GlWindow window{{64, 64}, false};
        found["usable"] = true;
        found["renderer"] = window.renderer();
    } catch (const Error& error) {
        found["reason"] = error.why();
    }
    return found;
}

Json fonts() {
    try {
        return {{"usable", true}, {"files", ui::font_files()}};
    } catch (const Error& error) {
        return {{"usable", false}, {"reason", error.why()}};
    }
}
#else
Json display() { return {{"usable", false}, {"reason", "this build has no window (FP8LAB_GUI=OFF)"}}; }
Json fonts() { return display(); }
#endif

std::string line_of(const Json& part) {
    if (part.contains("reason")) return "no: " + part["reason"].get<std::string>();
    for (const char* key : {"renderer", "name"}) {
        if (part.contains(key)) return part[key].get<std::string>();
    }
    std::string files;
    for (const auto& file : part["files"])
        files += (files.empty() ? "" : "\n          ") + file.get<std::string>();
    return files;
}

void examine(bool as_json, const Globals& globals) {
    const ChosenBackend chosen = choose_backend("auto");
    const DeviceInfo device = chosen.backend->device();
    Json report = json_header(device);
    report["cpu"] = cpu_facts();
    report["gpu"] = gpu_facts();
    report["display"] = display();
    report["fonts"] = fonts();
    const ProfileFolders folders = profile_of(globals);
    report["profile"] = {{"config", folders.config.string()},
                         {"state", folders.state.string()},
                         {"data", folders.data.string()}};
    report["assets"] = asset("text").parent_path().string();
    if (as_json) {
        print_json(report);
        return;
    }
    for (const char* part : {"cpu", "gpu", "display", "fonts"}) {
        fmt::print("{:<10}{}\n", part, line_of(report[part]));
        if (std::string_view(part) == "gpu") print_gpu(report[part]);
    }
    for (const auto& [part, folder] : report["profile"].items())
        fmt::print("{:<10}{}\n", part, printable(folder.get<std::string>()));
    fmt::print("{:<10}{}\n", "assets", printable(report["assets"].get<std::string>()));
}

}  // namespace

void add_doctor(CLI::App& app, Globals& globals) {
    const auto as_json = std::make_shared<bool>(false);
    CLI::App* verb = app.add_subcommand("doctor", "What this machine has: CPU, GPU, display, fonts, profile");
    verb->add_flag("--json", *as_json, "as JSON");
    verb->callback([as_json, &globals] { examine(*as_json, globals); });
}

}  // namespace fp8lab::cli
