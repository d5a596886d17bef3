// fp8lab run LAB|SCENE.f8scene [--set FIELD=VALUE]... [--steps N] [--export DIR | --words]: a lab without a
// window; --notebook FILE: as a notebook with the code of its recipes. fp8lab run --claim ID [--json]: a claim card's experiment, repeated.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/lab/lab_json.h"
#include "app/cli/lab/notebook.h"
#include "app/cli/option_values.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/figure/words.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/files/outputs.h"
#include "core/files/progress_line.h"
#include "core/threads/ask.h"
#include "labs/course/claim_run.h"
#include "labs/course/export.h"
#include "labs/course/scene_run.h"
#include "labs/lab.h"
#include "labs/set_fields.h"

namespace fp8lab::cli {

namespace {

constexpr std::string_view kPlainLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.:,/";

struct RunArguments {
    std::string lab, export_dir, claim, notebook;
    std::vector<std::string> assignments;
    int steps = 0;
    bool words = false, json = false;
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
            for (const std::string& sentence : to_words(figure)) write_stdout(printable(sentence) + "\n");
        return;
    }
    nlohmann::json out = lab_json(lab);
    if (!options.export_dir.empty())
        for (const auto& path : export_figures(lab, options.export_dir))
            out["files"].push_back(path.string());
    print_json(out);
}

// Returns what to say of the numbers when a signal came; empty: none did. The signal may have come after the
// last step.
std::string advance(Lab& lab, int steps) {
    const Interruptible keeps;
    advance_told(lab, steps, "run");
    lab.update();
    return interrupted() ? "; the numbers are those of the steps that were done" : "";
}

nlohmann::json found_or_null(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

void print_claim(const Claim& claim, const std::vector<FoundNumber>& numbers, bool json) {
    if (!json) {
        write_stdout(fmt::format("\"{}\"\n{}\nRuling: {}\n{}\n", claim.claim, claim.place(),
                                 words_of(claim.ruling), claim.verdict_text()));
        for (const FoundNumber& number : numbers)
            write_stdout(fmt::format("{}: card {}, now {}{}\n", number.card.metric,
                                     format_number(number.card.value), format_number(number.now),
                                     number.agrees() ? "" : "  DIFFERS"));
        return;
    }
    nlohmann::json out = json_header(cpu_backend()->device());
    out["id"] = claim.id, out["lab"] = claim.lab, out["claim"] = claim.claim;
    out["source"] = claim.source, out["ruling"] = words_of(claim.ruling),
    out["verdict"] = claim.verdict_text();
    if (claim.line > 0) out["line"] = claim.line;
    out["findings"] = nlohmann::json::array();
    for (const FoundNumber& number : numbers)
        out["findings"].push_back({{"metric", number.card.metric},
                                   {"card", number.card.value},
                                   {"now", found_or_null(number.now)},
                                   {"tolerance", number.card.tolerance},
                                   {"agrees", number.agrees()}});
    print_json(out);
}

void run_claim(const RunArguments& options) {
    const std::vector<Claim> claims = load_claims();
    const Claim& claim = find_claim(claims, options.claim, "--claim");
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    progress.at(fmt::format("run: the experiment of {}", claim.id));
    const std::vector<FoundNumber> numbers = repeat_claim(claim);
    progress.erase();
    print_claim(claim, numbers, options.json);
    const auto differ =
        std::ranges::count_if(numbers, [](const FoundNumber& number) { return !number.agrees(); });
    if (differ > 0)
        throw Error(ErrorKind::failed, claim.id,
                    fmt::format("{} of {} numbers of the card are not found again", differ, numbers.size()));
}

// The call, as somebody would type it again.
std::string command_of(const RunArguments& options) {
    std::string out = "fp8lab run " + options.lab;
    for (const std::string& assignment : options.assignments) {
        const bool plain = assignment.find_first_not_of(kPlainLetters) == assignment.npos;
        out += " --set " + (plain ? assignment : "'" + assignment + "'");
    }
    if (options.steps > 0) out += fmt::format(" --steps {}", options.steps);
    return out + " --notebook " + (options.notebook == "-" ? "-" : options.notebook);
}

void run_lab(const RunArguments& options) {
    int steps = options.steps;
    if (!options.notebook.empty()) Outputs().writes("--notebook", options.notebook, Holds::json);
    if (!options.export_dir.empty()) Outputs().writes_into("--export", options.export_dir);
    const auto lab = open_lab(options.lab, steps);
    if (options.steps > 0) require_steps(*lab);
    set_fields(*lab, options.assignments);
    const std::string how_far = steps > 0 ? advance(*lab, steps) : "";
    if (options.notebook.empty())
        print_lab(*lab, options);
    else
        write_file(options.notebook, lab_notebook(*lab, command_of(options)));
    if (!how_far.empty()) throw Interrupted(how_far);
}

}  // namespace

void add_run(CLI::App& app, Globals&) {
    const auto options = std::make_shared<RunArguments>();
    CLI::App* verb =
        app.add_subcommand("run", "Runs a lab without a window: metrics as JSON, figures as SVG and CSV");
    CLI::Option* lab = verb->add_option(
        "lab", options->lab, "number or word: L1, bits; or a scene: FILE.f8scene, L05-b-ramp-real");
    CLI::Option* claim =
        verb->add_option(
                "--claim", options->claim,
                "a claim card, by its id (list claims): repeats its experiment, and ends with 1 where a "
                "number of the card is not found again")
            ->excludes(lab);
    verb->add_flag("--json", options->json, "a claim card as JSON")->needs(claim);
    verb->add_option("--set", options->assignments,
                     "FIELD=VALUE, may be repeated; an unknown FIELD lists those of the lab")
        ->excludes(claim);
    verb->add_option("--steps", options->steps, "training steps, for labs that train")
        ->check(whole("--steps", 0, 10'000'000))
        ->excludes(claim);
    verb->add_option("--export", options->export_dir, "folder for the figures")->excludes(claim);
    verb->add_option(
            "--notebook", options->notebook,
            "a Jupyter notebook instead of metrics: the question, the state, what was measured, and its "
            "recipes in plain PyTorch; - is stdout")
        ->excludes("--export")
        ->excludes(claim);
    verb->add_flag("--words", options->words, "the figures as sentences instead of metrics")
        ->excludes("--export")
        ->excludes("--notebook")
        ->excludes(claim);
    verb->callback([options] {
        if (options->lab.empty() && options->claim.empty())
            throw usage_error("run", "a lab, a scene or --claim ID is required");
        options->claim.empty() ? run_lab(*options) : run_claim(*options);
    });
}

}  // namespace fp8lab::cli
