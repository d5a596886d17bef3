// fp8lab check PATH...: evidence of exercises, judged again.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "labs/recheck.h"

namespace fp8lab::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
    std::vector<std::string> paths;
    std::string csv;
    bool json = false, rerun = false;
};

struct Checked {
    std::string path;
    Evidence evidence;  // empty where it could not be read
    Recheck recheck;
};

// A folder stands for the evidence in it; its other files, also broken ones, are somebody else's.
std::vector<fs::path> files_of(const Options& options) {
    std::vector<fs::path> out;
    for (const std::string& path : options.paths) {
        if (!fs::is_directory(path)) {
            out.emplace_back(path);
            continue;
        }
        const std::size_t before = out.size();
        for (const auto& entry : fs::recursive_directory_iterator(path))
            if (entry.is_regular_file() && entry.path().extension() == ".json" &&
                read_text(entry.path()).find("\"fp8lab_evidence\"") != std::string::npos)
                out.push_back(entry.path());
        if (out.size() == before) throw input_error(path, "holds no evidence of an exercise");
        std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
    }
    return out;
}

Checked check_file(const fs::path& path, const std::string& text, bool rerun) {
    Checked out{.path = path.string(), .evidence = {}, .recheck = {}};
    try {
        out.evidence = parse_evidence(text, path.string());
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::failed) throw;
        out.recheck.problems.push_back(error.why());
        return out;
    }
    out.recheck = recheck(out.evidence, rerun);
    return out;
}

void print(const Checked& checked) {
    const auto& [path, evidence, recheck] = checked;
    if (recheck.stands()) {
        fmt::print("passed  {:<6} {}, {}\n", evidence.exercise, path, recheck.how);
        return;
    }
    fmt::print("failed  {:<6} {}\n", evidence.exercise, path);
    for (const std::string& problem : recheck.problems) fmt::print("          {}\n", problem);
}

nlohmann::json to_json(const Checked& checked) {
    const auto& [path, evidence, recheck] = checked;
    nlohmann::json out = {{"path", path},
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

std::string quoted(std::string text) {
    for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
    return '"' + text + '"';
}

std::string to_csv(std::span<const Checked> all) {
    std::string out = "path,exercise,passed,how,predicted,hints,seed,at,problems\n";
    for (const auto& [path, evidence, recheck] : all)
        out += fmt::format("{},{},{},{},{},{},{},{},{}\n", quoted(path), evidence.exercise,
                           recheck.stands() ? 1 : 0, recheck.how, evidence.prediction.skipped ? 0 : 1,
                           evidence.hints, evidence.seed, evidence.at,
                           quoted(fmt::format("{}", fmt::join(recheck.problems, "; "))));
    return out;
}

void check(const Options& options) {
    std::vector<std::pair<fs::path, std::string>> inputs;  // all are read before anything is said
    for (const fs::path& path : files_of(options)) inputs.emplace_back(path, read_text(path));
    std::vector<Checked> all;
    for (const auto& [path, text] : inputs) {
        if (interrupted()) break;
        all.push_back(check_file(path, text, options.rerun));
    }
    const auto failed = std::ranges::count_if(all, [](const Checked& c) { return !c.recheck.stands(); });
    if (!options.csv.empty()) write_file(options.csv, to_csv(all));
    if (options.json) {
        nlohmann::json out = json_header(cpu_backend()->device());
        out["results"] = nlohmann::json::array();
        for (const Checked& checked : all) out["results"].push_back(to_json(checked));
        fmt::print("{}\n", out.dump(2));
    } else if (options.csv != "-") {
        for (const Checked& checked : all) print(checked);
    }
    if (failed > 0)
        throw Error(ErrorKind::failed, "check", fmt::format("{} of {} did not pass", failed, all.size()));
}

}  // namespace

void add_check(CLI::App& app, Globals&) {
    const auto options = std::make_shared<Options>();
    CLI::App* verb =
        app.add_subcommand("check", "Judges the evidence of exercises again, by doing what it says was done");
    verb->add_option("path", options->paths, "files, or folders with evidence in them")->required();
    verb->add_flag("--json", options->json, "the results as JSON");
    verb->add_option("--csv", options->csv, "the results as a table; - is stdout");
    verb->add_flag("--rerun", options->rerun, "train again instead of believing the series of a training");
    verb->callback([options] { check(*options); });
}

}  // namespace fp8lab::cli
