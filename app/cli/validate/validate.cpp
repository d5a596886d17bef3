// fp8lab validate [--backend B] [--full] [--json] [--report OUT]: the self-test on this machine. Exit 1 if a check fails.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/validate/machine.h"
#include "app/cli/validate/report_page.h"
#include "app/cli/validate/report_parts.h"
#include "app/cli/verb.h"
#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/files/outputs.h"
#include "core/files/progress_line.h"
#include "core/formats/self_test.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

using Json = nlohmann::json;

struct ValidateArguments {
    std::string backend = "auto", report;
    bool full = false, json = false;
};

struct Checked {
    Json checks = Json::array();
    int done = 0, failed = 0, of = 0;
    bool passed() const { return failed == 0 && done == of; }
};

// What the report is, by the end of its name.
Holds kind_of_report(const std::string& name) {
    const std::string extension = std::filesystem::path(name).extension().string();
    if (extension == ".html") return Holds::page;
    if (extension == ".json") return Holds::json;
    throw usage_error("--report", "'" + printable(name) + "' ends neither in .html nor in .json");
}

void print_check(const SelfCheck& check, const SelfCheckOutcome& outcome) {
    fmt::print("{}  {:<46} {}", outcome.passed ? "ok  " : "FAIL", check.name, outcome.found);
    fmt::print("{}\n", outcome.passed ? "" : ", expected " + outcome.expected);
    flush_stdout();
}

// Up to a signal.
Checked run_checks(const std::vector<SelfCheck>& checks, bool prints) {
    Checked out{.of = static_cast<int>(checks.size())};
    ProgressLine progress;
    for (const SelfCheck& check : checks) {
        SelfCheckOutcome outcome;
        try {
            const AskBetween ask(progress.asker());
            progress.at(fmt::format("validate: {} of {} checks; {}", out.done, out.of, check.name));
            if (interrupted()) break;
            outcome = check.run();
        } catch (const Interrupted&) {
            break;  // in the middle of a long one, which says nothing then
        }
        progress.erase();
        ++out.done;
        if (!outcome.passed) ++out.failed;
        out.checks.push_back({{"name", check.name},
                              {"passed", outcome.passed},
                              {"expected", outcome.expected},
                              {"found", outcome.found}});
        if (prints) print_check(check, outcome);
    }
    return out;
}

// Why there is nothing of a GPU. It is asked for with --backend as for the checks.
std::string no_gpu(const ValidateArguments& options, const ChosenBackend& chosen) {
    if (options.backend == "cpu") return "--backend cpu: no GPU was asked for";
    return chosen.reason.empty() ? "there is no GPU" : chosen.reason;
}

// Adds the parts behind the checks, up to a signal.
void add_parts(Json& report, const ValidateArguments& options, const ChosenBackend& chosen) {
    const DeviceInfo device = chosen.backend->device();
    const bool gpu = device.provenance != Provenance::cpu_emulated;
    report["complete"] = false;
    try {
        end_if_interrupted();
        report["recipes"] = train_recipes();
        if (gpu) {
            report["gpu_against_cpu"] = compare_with_cpu(*chosen.backend, report["recipes"]);
            report["speed"] = compare_speed(*chosen.backend);
        } else {
            const std::string reason = no_gpu(options, chosen);
            report["gpu_against_cpu"] = {{"compared", false}, {"reason", reason}};
            report["speed"] = {{"measured", false}, {"reason", reason}};
        }
        report["memory"] = memory_used(device, report["recipes"]);
        report["complete"] = true;
    } catch (const Interrupted&) {
    }
}

void write_report(const Json& checked, const ValidateArguments& options, const ChosenBackend& chosen) {
    Json report = checked;
    report["date"] = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::now()));
    report["machine"] = {{"cpu", cpu_facts()}, {"gpu", gpu_facts()}};
    add_parts(report, options, chosen);
    const bool page = kind_of_report(options.report) == Holds::page;
    write_file(options.report, page ? validation_page(report) : json_text(report));
}

void declare_validate_files(const ValidateArguments& options) {
    if (options.report.empty()) return;
    Outputs files;
    files.prints(options.json ? "--json" : "stdout");
    files.writes("--report", options.report, kind_of_report(options.report));
}

void validate(const ValidateArguments& options) {
    declare_validate_files(options);
    const ChosenBackend chosen = choose_backend(options.backend);
    const std::vector<SelfCheck> checks = chosen.backend->self_checks(options.full);
    tell_backend(chosen);
    const Interruptible keeps;
    const Checked checked = run_checks(checks, !options.json);
    Json out = json_header(chosen.backend->device());
    out["checks"] = checked.checks;
    out["passed"] = checked.passed();
    if (!options.report.empty()) write_report(out, options, chosen);
    if (options.json) print_json(out);
    if (checked.done < checked.of)
        throw Interrupted(fmt::format("after {} of {} checks, {} of which failed", checked.done, checked.of,
                                      checked.failed));
    end_if_interrupted("after the checks; the report has what was measured until then");
    if (checked.failed > 0)
        throw Error(ErrorKind::failed, "validate",
                    fmt::format("{} of {} checks failed", checked.failed, checked.done));
}

}  // namespace

void add_validate(CLI::App& app, Globals&) {
    const auto options = std::make_shared<ValidateArguments>();
    CLI::App* verb = app.add_subcommand("validate", "Self-test of the casts on this machine");
    verb->add_option("--backend", options->backend, "auto, cpu or cuda");
    verb->add_flag("--full", options->full, "also the checksums over all 2^32 inputs; takes minutes");
    verb->add_flag("--json", options->json, "as JSON");
    verb->add_option("--report", options->report,
                     "checks, a training of every recipe, GPU against CPU, speed and memory; .html or .json");
    verb->callback([options] { validate(*options); });
}

}  // namespace fp8lab::cli
