// fp8lab check PATH...: submissions and loose evidence, judged again; scenes, run to their headlines.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"
#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/outputs.h"
#include "core/base/stop.h"
#include "core/lesson/scene.h"
#include "labs/grade.h"
#include "labs/scene_run.h"

namespace fp8lab::cli {

namespace {

struct CheckOptions {
    std::vector<std::string> paths;
    std::string csv;
    bool json = false, rerun = false;
};

// A forged name must not drive the teacher's terminal.
std::string printable(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
    return text;
}

void print(const Graded& graded) {
    const std::string who = graded.student.empty() ? "" : " " + graded.student + ",";
    const std::string exercise = printable(graded.evidence.exercise);
    if (graded.recheck.stands()) {
        fmt::print("passed  {:<6}{} {}, {}\n", exercise, printable(who), graded.path, graded.recheck.how);
        return;
    }
    fmt::print("failed  {:<6}{} {}\n", exercise, printable(who), graded.path);
    for (const std::string& problem : graded.recheck.problems)
        fmt::print("          {}\n", printable(problem));
}

nlohmann::json to_json(const Graded& graded) {
    const auto& [path, student, evidence, recheck, print, same_as] = graded;
    nlohmann::json out = {{"path", path},
                          {"student", student},
                          {"same_as", same_as},
                          {"explanation", evidence.explanation},
                          {"exercise", evidence.exercise},
                          {"passed", recheck.stands()},
                          {"how", recheck.how},
                          {"problems", recheck.problems},
                          {"predicted", !evidence.prediction.skipped},
                          {"hints", evidence.hints},
                          {"at", evidence.at},
                          {"seed", evidence.seed},
                          {"provenance", evidence.provenance},
                          {"version", evidence.version},
                          {"conditions", nlohmann::json::array()}};
    for (const Condition& condition : recheck.verdict.conditions)
        out["conditions"].push_back(
            {{"text", condition.text}, {"values", condition.values}, {"met", condition.met}});
    return out;
}

// A scene alone that cannot be read ends the run; among others it is a failed line.
Graded run_to_headline(const std::string& path, bool alone) {
    Graded out;
    out.path = path;
    out.evidence.exercise = "scene";
    out.recheck.how = "run to its headline";
    try {
        const Scene scene = read_scene(path);
        const auto lab = run_scene(scene, std::filesystem::temp_directory_path());
        if (const std::string problem = headline_problem(scene, *lab); !problem.empty())
            out.recheck.problems.push_back(problem);
        for (const std::string& notice : scene.notices) tell(fmt::format("fp8lab: {}: {}", path, notice));
    } catch (const Error& error) {
        if (alone) throw;
        out.recheck.problems.push_back(error.why());
    }
    return out;
}

void declare_check_files(const CheckOptions& options) {
    Outputs files;
    for (const std::string& path : options.paths) files.reads(path);
    if (options.json) files.prints("--json");
    if (!options.csv.empty()) files.writes("--csv", options.csv, Holds::table);
}

// Those that were done until a signal came.
std::vector<Graded> grade_all(const CheckOptions& options) {
    std::vector<std::string> paths = options.paths;
    const auto scenes = std::ranges::stable_partition(
        paths, [](const std::string& path) { return !path.ends_with(".f8scene"); });
    const Interruptible keeps;
    std::vector<Graded> all;
    for (const std::string& path : scenes)
        if (!interrupted()) all.push_back(run_to_headline(path, options.paths.size() == 1));
    paths.erase(scenes.begin(), scenes.end());
    if (!paths.empty())
        std::ranges::move(grade(submissions_in(paths), options.rerun, interrupted), std::back_inserter(all));
    return all;
}

void check(const CheckOptions& options) {
    declare_check_files(options);
    const std::vector<Graded> all = grade_all(options);
    const auto failed = std::ranges::count_if(all, [](const Graded& g) { return !g.recheck.stands(); });
    if (!options.csv.empty()) write_file(options.csv, grades_csv(all));
    if (options.json) {
        nlohmann::json out = json_header(cpu_backend()->device());
        out["results"] = nlohmann::json::array();
        for (const Graded& graded : all) out["results"].push_back(to_json(graded));
        print_json(out);
    } else if (options.csv != "-") {
        for (const Graded& graded : all) print(graded);
    }
    end_if_interrupted(fmt::format("after {} rows, which are written", all.size()));
    if (failed > 0)
        throw Error(ErrorKind::failed, "check", fmt::format("{} of {} did not pass", failed, all.size()));
}

}  // namespace

void add_check(CLI::App& app, Globals&) {
    const auto options = std::make_shared<CheckOptions>();
    CLI::App* verb = app.add_subcommand(
        "check", "Judges submissions and evidence of exercises again, by doing what they say was done");
    verb->add_option(
            "path", options->paths,
            "submissions (.f8lab), evidence, scenes (.f8scene), or folders with submissions or evidence")
        ->required();
    verb->add_flag("--json", options->json, "the results as JSON");
    verb->add_option("--csv", options->csv, "the results as a table; - is stdout");
    verb->add_flag("--rerun", options->rerun, "train again instead of believing the series of a training");
    verb->callback([options] { check(*options); });
}

}  // namespace fp8lab::cli
