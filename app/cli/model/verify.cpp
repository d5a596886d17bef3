// fp8lab verify FILE [--against ORIGINAL] [--json]: whether a quantised model is what its original says, and which fault
// each tensor has.
#include "core/verify/verify.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/names.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/files/outputs.h"
#include "core/files/progress_line.h"
#include "core/json/read_json.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

struct VerifyOptions {
    std::string file, against;
    bool json = false;
};

std::string verify_table(const Verification& found) {
    std::string out;
    for (const Verified& each : found.tensors)
        out += fmt::format("{}: {}\n", printable(each.tensor->name), printable(each.sentence()));
    return out + found.foot() + "\n";
}

// A fault is what was looked for; without one, what was not verified does not end as if it had been.
void fail_where(const Verification& found) {
    const auto of_all = [&](std::size_t count, std::string_view verb_one, std::string_view verb_more) {
        return fmt::format("{} of {} tensor{} {}", with_commas(count), with_commas(found.tensors.size()),
                           found.tensors.size() == 1 ? "" : "s", count == 1 ? verb_one : verb_more);
    };
    if (const std::size_t faults = found.faults(); faults > 0)
        throw Error(ErrorKind::failed, "verify", of_all(faults, "has a fault", "have a fault"));
    for (const VerifiedAs verdict : {VerifiedAs::not_read, VerifiedAs::not_compared}) {
        const std::size_t count = found.count(verdict);
        if (count == 0) continue;
        const auto first = std::ranges::find(found.tensors, verdict, &Verified::verdict);
        const bool read = verdict == VerifiedAs::not_compared;
        throw input_error(
            found.model->files()[first->tensor->file].where(),
            fmt::format("{}: {}: {}",
                        of_all(count, read ? "is not compared" : "is not read",
                               read ? "are not compared" : "are not read"),
                        quote_from(first->tensor->name), read ? first->apart : first->tensor->why));
    }
}

void verify_file(const VerifyOptions& options) {
    Outputs outputs;
    outputs.reads(options.file);
    if (!options.against.empty()) outputs.reads(options.against);
    outputs.prints(options.json ? "--json" : "stdout");
    const auto open = [](const std::string& path) {
        return std::make_shared<const TensorStore>(open_tensors(path, Pipes::read));
    };
    const auto model = open(options.file);
    const auto original = options.against.empty() ? nullptr : open(options.against);
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    const Verification found = verify(model, original, [&](const VerifyProgress& at) {
        if (progress.due()) progress.at(fmt::format("verify: {} of {} tensors", at.done, at.all));
    });
    progress.erase();
    if (found.tensors.empty())
        throw input_error(model->files().front().where(), "has no tensor that can be verified");
    if (options.json) {
        nlohmann::json out = json_header(cpu_backend()->device());
        out.update(found.json());
        print_json(out);
    } else {
        write_stdout(verify_table(found));
    }
    fail_where(found);
}

}  // namespace

void add_verify(CLI::App& app, Globals&) {
    const auto options = std::make_shared<VerifyOptions>();
    CLI::App* verb = app.add_subcommand(
        "verify", "Whether a quantised model is what its original says, and which fault each tensor has");
    verb->add_option("file", options->file, ".safetensors, .safetensors.index.json, .npy or .npz")
        ->required();
    verb->add_option("--against", options->against, "the original that the model was quantised from");
    verb->add_flag("--json", options->json, "as JSON");
    verb->callback([options] { verify_file(*options); });
}

}  // namespace fp8lab::cli
