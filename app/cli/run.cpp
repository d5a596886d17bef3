// fp8lab run LAB [--set FIELD=VALUE]... [--steps N] [--export DIR]: a lab without a window.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "labs/export.h"
#include "labs/lab.h"

namespace fp8lab::cli {

namespace {

struct Options {
    std::string lab, export_dir;
    std::vector<std::string> assignments;
    int steps = 0;
};

nlohmann::json to_json(const Metric& metric) {
    if (!metric.text.empty()) return metric.text;
    nlohmann::json value = nullptr;  // NaN and Inf have no JSON spelling
    if (std::isfinite(metric.value)) value = metric.value;
    if (metric.unit.empty()) return value;
    return {{"value", value}, {"unit", metric.unit}};
}

void run_lab(const Options& options) {
    const auto lab = find_lab(options.lab, "run").make();
    for (const std::string& assignment : options.assignments) set_field(lab->fields(), assignment);
    lab->update();
    if (options.steps > 0) {
        lab->advance(options.steps);
        lab->update();
    }
    const std::string device = lab->device().empty() ? cpu_backend()->device().name : lab->device();
    nlohmann::json out = json_header({device, lab->provenance()});
    out["lab"] = lab->info().id;
    out["state"] = fields_to_json(lab->fields());
    if (out["state"].contains("seed")) out["seed"] = out["state"]["seed"];
    for (const Metric& metric : lab->metrics()) out["metrics"][metric.name] = to_json(metric);
    if (!options.export_dir.empty())
        for (const auto& path : export_figures(*lab, options.export_dir))
            out["files"].push_back(path.string());
    fmt::print("{}\n", out.dump(2));
}

}  // namespace

void add_run(CLI::App& app, Globals&) {
    const auto options = std::make_shared<Options>();
    CLI::App* verb =
        app.add_subcommand("run", "A lab without a window: metrics as JSON, figures as SVG and CSV");
    verb->add_option("lab", options->lab, "number or word: L1, bits")->required();
    verb->add_option("--set", options->assignments,
                     "FIELD=VALUE, may be repeated; an unknown FIELD lists those of the lab");
    verb->add_option("--steps", options->steps, "training steps, for labs that train")
        ->check(CLI::Range(0, 10'000'000));
    verb->add_option("--export", options->export_dir, "folder for the figures");
    verb->callback([options] { run_lab(*options); });
}

}  // namespace fp8lab::cli
