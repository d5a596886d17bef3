// fp8lab check PATH...: submissions and loose evidence, judged again.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "labs/grade.h"

namespace fp8lab::cli {

namespace {

struct Options {
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

void check(const Options& options) {
    const std::vector<Graded> all = grade(submissions_in(options.paths), options.rerun, interrupted);
    const auto failed = std::ranges::count_if(all, [](const Graded& g) { return !g.recheck.stands(); });
    if (!options.csv.empty()) write_file(options.csv, grades_csv(all));
    if (options.json) {
        nlohmann::json out = json_header(cpu_backend()->device());
        out["results"] = nlohmann::json::array();
        for (const Graded& graded : all) out["results"].push_back(to_json(graded));
        fmt::print("{}\n", out.dump(2));
    } else if (options.csv != "-") {
        for (const Graded& graded : all) print(graded);
    }
    if (failed > 0)
        throw Error(ErrorKind::failed, "check", fmt::format("{} of {} did not pass", failed, all.size()));
}

}  // namespace

void add_check(CLI::App& app, Globals&) {
    const auto options = std::make_shared<Options>();
    CLI::App* verb = app.add_subcommand(
        "check", "Judges submissions and evidence of exercises again, by doing what they say was done");
    verb->add_option("path", options->paths,
                     "submissions (.f8lab), evidence, or folders with such files in them")
        ->required();
    verb->add_flag("--json", options->json, "the results as JSON");
    verb->add_option("--csv", options->csv, "the results as a table; - is stdout");
    verb->add_flag("--rerun", options->rerun, "train again instead of believing the series of a training");
    verb->callback([options] { check(*options); });
}

}  // namespace fp8lab::cli
