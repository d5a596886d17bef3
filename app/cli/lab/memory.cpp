// fp8lab memory [--model ID|config.json] --plan ID [--set FIELD=VALUE]... [--json]: L10's calculator. The JSON
// is that of `run L10` with the same fields.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/cli/lab/lab_json.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/plan/model_size.h"
#include "labs/set_fields.h"

namespace fp8lab::cli {
namespace {

struct MemoryArguments {
    std::string model, plan;
    std::vector<std::string> assignments;
    bool json = false;
};

// A model's name, or the sizes in a file. A word that is neither is a wrong name.
std::vector<std::string> model_fields(const std::string& model, Lab& lab) {
    const std::vector<Field> fields = lab.fields();
    const std::vector<Choice>& known = find_field(fields, "model")->choices;
    if (std::ranges::find(known, model, &Choice::id) != known.end()) return {"model=" + model};
    if (model.find_first_of("/.") == std::string::npos && model != "-")
        throw unknown_name("--model", "model", model, known, [](const Choice& choice) { return choice.id; });
    const std::string config = read_bounded(model, kLargestDocument, Pipes::read);
    return {"model=own", "config=" + plan::compact_config(config, model)};
}

void print_table(const Lab& lab) {
    const std::vector<Metric> metrics = lab.metrics();
    const auto find = [&](const std::string& name) {
        const auto found = std::ranges::find(metrics, name, &Metric::name);
        return found == metrics.end()
                   ? Metric{.name = name, .value = std::numeric_limits<double>::quiet_NaN()}
                   : *found;
    };
    constexpr auto kRow = "{:<12} {:>8} {:>5} {:>11}\n";
    std::string out = fmt::format(kRow, "kept", "format", "place", "GB");
    for (const char* row : {"weights", "copy", "copy_t", "gradients", "accumulator", "master", "m", "v",
                            "activations", "kv", "workspace"}) {
        const std::string name(row);
        const double gigabytes = find(name + "_gb").value;
        if (gigabytes == 0) continue;
        out += fmt::format(kRow, name, find(name + "_format").text, find(name + "_at").text,
                           fmt::format("{:.3f}", gigabytes));
    }
    const auto line = [&](const char* words, const std::string& metric, const char* unit, double per = 1) {
        if (const double value = find(metric).value / per; !std::isnan(value))
            out += fmt::format("{:<27} {:>11.3f} {}\n", words, value, unit);
    };
    if (!std::isnan(find("active_parameters").value)) {  // of a config.json
        line("parameters", "parameters", "G", 1e9);
        line("of them for one token", "active_parameters", "G", 1e9);
        line("of these the embedding", "embedding_parameters", "G", 1e9);
    }
    line("on the GPU", "gpu_gb", "GB");
    line("on the CPU", "cpu_gb", "GB");
    line("compared plan, on the GPU", "compare_gpu_gb", "GB");
    if (find("own.fp8_saved_gb").value > 0) {
        line("saved by sharing, FP8", "own.fp8_saved_gb", "GB");
        line("saved by sharing, BF16", "own.bf16_saved_gb", "GB");
    }
    line("bytes per parameter", "bytes_per_parameter", "B");
    line("tokens to break even", "break_even_tokens", "");
    line("transfers of a step", "offload_s", "s");
    line("the GPU has", "gpu_size_gb", "GB");
    out += fmt::format("{:<27} {:>11}\n", "fits into the GPU", find("fits").value == 1 ? "yes" : "no");
    out += fmt::format("{:<27} {:>11}\n", "update", find("update_path").text);
    write_stdout(out);
}

// A size that the config.json decides, set by hand, would have no effect.
void refuse_decided(const std::vector<std::string>& assignments) {
    for (const std::string& assignment : assignments)
        for (const char* size : {"kind", "layers", "hidden", "ffn", "heads", "kv_heads", "vocab", "tied"})
            if (assignment.starts_with(std::string(size) + "="))
                throw usage_error(std::string("--set ") + size, "the config.json decides it");
}

void run_memory(const MemoryArguments& arguments) {
    const auto lab = find_lab("memory").make();
    std::vector<std::string> assignments = {"plan=" + arguments.plan};
    if (!arguments.model.empty()) {
        const auto model = model_fields(arguments.model, *lab);
        assignments.insert(assignments.end(), model.begin(), model.end());
    }
    assignments.insert(assignments.end(), arguments.assignments.begin(), arguments.assignments.end());
    set_fields(*lab, assignments);
    const std::vector<Field> fields = lab->fields();
    if (const std::string config = field_text(*find_field(fields, "config")); !config.empty()) {
        refuse_decided(arguments.assignments);
        if (const std::string note = plan::read_model_size(config, "config").note; !note.empty())
            tell("fp8lab: " + arguments.model + ": " + note);
    }
    if (arguments.json)
        print_json(lab_json(*lab));
    else
        print_table(*lab);
}

}  // namespace

void add_memory(CLI::App& app, Globals&) {
    const auto arguments = std::make_shared<MemoryArguments>();
    CLI::App* verb = app.add_subcommand("memory", "Bytes of a training or an inference, as L10 counts them");
    verb->add_option("--model", arguments->model,
                     "seed7b, llama3-8b, ... or the config.json of a published model");
    verb->add_option("--plan", arguments->plan, "te, bf16, fp8-lm, ...; an unknown one lists them")
        ->required();
    verb->add_option("--set", arguments->assignments,
                     "FIELD=VALUE of L10, may be repeated; an unknown FIELD lists them");
    verb->add_flag("--json", arguments->json, "as JSON, that of run L10");
    verb->callback([arguments] { run_memory(*arguments); });
}

}  // namespace fp8lab::cli
