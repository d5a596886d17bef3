// fp8lab validate [--backend B] [--full] [--json]: the self-test on this machine. Exit 1 if a check fails.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"
#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/console.h"
#include "core/files/progress_line.h"
#include "core/formats/self_test.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

struct ValidateArguments {
    std::string backend = "auto";
    bool full = false, json = false;
};

void validate(const ValidateArguments& options) {
    const ChosenBackend chosen = choose_backend(options.backend);
    const std::vector<SelfCheck> checks = chosen.backend->self_checks(options.full);
    const DeviceInfo device = chosen.backend->device();
    tell_backend(chosen);
    nlohmann::json out = json_header(device);
    out["checks"] = nlohmann::json::array();
    int done = 0, failed = 0;
    const Interruptible keeps;
    ProgressLine progress;
    for (const SelfCheck& check : checks) {
        SelfCheckOutcome outcome;
        try {
            const AskBetween ask(progress.asker());
            progress.at(fmt::format("validate: {} of {} checks; {}", done, checks.size(), check.name));
            if (interrupted()) break;
            outcome = check.run();
        } catch (const Interrupted&) {
            break;  // in the middle of a long one, which says nothing then
        }
        progress.erase();
        ++done;
        if (!outcome.passed) ++failed;
        out["checks"].push_back({{"name", check.name},
                                 {"passed", outcome.passed},
                                 {"expected", outcome.expected},
                                 {"found", outcome.found}});
        if (options.json) continue;
        fmt::print("{}  {:<46} {}", outcome.passed ? "ok  " : "FAIL", check.name, outcome.found);
        fmt::print("{}\n", outcome.passed ? "" : ", expected " + outcome.expected);
        flush_stdout();
    }
    out["passed"] = failed == 0 && done == static_cast<int>(checks.size());
    if (options.json) print_json(out);
    if (done < static_cast<int>(checks.size()))
        throw Interrupted(
            fmt::format("after {} of {} checks, {} of which failed", done, checks.size(), failed));
    if (failed > 0)
        throw Error(ErrorKind::failed, "validate", fmt::format("{} of {} checks failed", failed, done));
}

}  // namespace

void add_validate(CLI::App& app, Globals&) {
    const auto options = std::make_shared<ValidateArguments>();
    CLI::App* verb = app.add_subcommand("validate", "Self-test of the casts on this machine");
    verb->add_option("--backend", options->backend, "auto, cpu or cuda");
    verb->add_flag("--full", options->full, "also the checksums over all 2^32 inputs; takes minutes");
    verb->add_flag("--json", options->json, "as JSON");
    verb->callback([options] { validate(*options); });
}

}  // namespace fp8lab::cli
