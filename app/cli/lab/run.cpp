// fp8lab run LAB|SCENE.f8scene [--set FIELD=VALUE]... [--steps N] [--export DIR | --words]: a lab without a
// window.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/lab/lab_json.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/figure/words.h"
#include "core/files/console.h"
#include "core/files/outputs.h"
#include "core/files/progress_line.h"
#include "core/threads/ask.h"
#include "labs/course/export.h"
#include "labs/course/scene_run.h"
#include "labs/lab.h"
#include "labs/set_fields.h"

namespace fp8lab::cli {

namespace {

struct RunArguments {
    std::string lab, export_dir;
    std::vector<std::string> assignments;
    int steps = 0;
    bool words = false;
};

// A lab as it starts, or as a scene has it; its training steps, unless some were asked for.
std::unique_ptr<Lab> open_lab(const std::string& name, int& steps) {
    const bool lab_name =
        std::ranges::all_of(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)); });
    if (lab_name) return find_lab(name, "run").make();
    const Scene scene = read_scene(find_scene(name));
    auto lab = lab_of(scene).make();
    for (const std::string& notice : apply_scene(*lab, scene, std::filesystem::temp_directory_path()))
        tell(fmt::format("fp8lab: {}: {}", name, notice));
    if (steps == 0) steps = scene.steps;
    return lab;
}

void print_lab(Lab& lab, const RunArguments& options) {
    if (options.words) {
        for (const Figure& figure : lab.figures())
            for (const std::string& sentence : to_words(figure)) write_stdout(sentence + "\n");
        return;
    }
    nlohmann::json out = lab_json(lab);
    if (!options.export_dir.empty())
        for (const auto& path : export_figures(lab, options.export_dir))
            out["files"].push_back(path.string());
    print_json(out);
}

double step_of(const Lab& lab) {
    const auto metrics = lab.metrics();
    const auto step = std::ranges::find(metrics, "step", &Metric::name);
    return step == metrics.end() ? 0 : step->value;
}

// Returns what to say of the numbers when a signal came; empty: none did. The signal may have come after the
// last step.
std::string advance(Lab& lab, int steps) {
    const Interruptible keeps;
    {
        ProgressLine progress;
        const double end = step_of(lab) + steps;
        const AskBetween ask([&] {
            if (progress.due()) progress.at(fmt::format("run: step {:.0f} of {:.0f}", step_of(lab), end));
        });
        lab.advance(steps);
    }
    lab.update();
    return interrupted() ? "; the numbers are those of the steps that were done" : "";
}

void run_lab(const RunArguments& options) {
    int steps = options.steps;
    if (!options.export_dir.empty()) Outputs().writes_into("--export", options.export_dir);
    const auto lab = open_lab(options.lab, steps);
    if (options.steps > 0) require_steps(*lab);
    set_fields(*lab, options.assignments);
    const std::string how_far = steps > 0 ? advance(*lab, steps) : "";
    print_lab(*lab, options);
    if (!how_far.empty()) throw Interrupted(how_far);
}

}  // namespace

void add_run(CLI::App& app, Globals&) {
    const auto options = std::make_shared<RunArguments>();
    CLI::App* verb =
        app.add_subcommand("run", "Runs a lab without a window: metrics as JSON, figures as SVG and CSV");
    verb->add_option("lab", options->lab,
                     "number or word: L1, bits; or a scene: FILE.f8scene, L05-b-ramp-real")
        ->required();
    verb->add_option("--set", options->assignments,
                     "FIELD=VALUE, may be repeated; an unknown FIELD lists those of the lab");
    verb->add_option("--steps", options->steps, "training steps, for labs that train")
        ->check(CLI::Range(0, 10'000'000));
    verb->add_option("--export", options->export_dir, "folder for the figures");
    verb->add_flag("--words", options->words, "the figures as sentences instead of metrics")
        ->excludes("--export");
    verb->callback([options] { run_lab(*options); });
}

}  // namespace fp8lab::cli
