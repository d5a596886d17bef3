// fp8lab watch LOG.. [--recipe R]: what is wrong with the tensors of a run, by its logs, as the Workbench shows it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/option_values.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/figure/csv.h"
#include "core/files/console.h"
#include "core/files/progress_line.h"
#include "core/run/findings.h"
#include "core/run/read_run.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {

namespace {

struct WatchOptions {
    std::vector<std::string> logs;
    std::string recipe, arm;
    int rank = -1;
    bool csv = false, json = false;
};

RunLog read_logs(const WatchOptions& options) {
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    const std::vector<std::filesystem::path> paths(options.logs.begin(), options.logs.end());
    RunReader reader(paths, {.arm = options.arm, .rank = options.rank});
    reader.read([&](const ReadProgress& at) {
        progress.at(fmt::format("watch: {:.0f} % of {} read, {} tensors", 100 * at.fraction(),
                                format_bytes(at.bytes), reader.log().tensors.size()));
    });
    return reader.take();
}

std::string lost_percent(double value) { return value < 0.05 ? "0" : fmt::format("{:.1f}", value); }

// "mode 4: a spike ...", as the failure modes are numbered (assets/docs/watch.md).
std::string numbered(const RunFinding& finding) {
    return finding.number.empty() ? finding.cause : fmt::format("mode {}: {}", finding.number, finding.cause);
}

// The mean share; "?" where it was not counted, "-" where the finding is not about it.
std::string lost_cell(const RunFinding& finding) {
    using enum FindingKind;
    if (finding.kind == not_fp8 || finding.kind == overflow_nan || finding.kind == infinite_scale) return "-";
    return finding.lost_known ? lost_percent(finding.lost_pct) : "?";
}

// A name of a row: a long one loses its middle.
std::string name_cell(const std::string& name) {
    constexpr std::size_t kLongest = 64, kEnd = 30;
    if (name.size() <= kLongest) return printable(name);
    return printable(name.substr(0, kEnd) + "..." + name.substr(name.size() - kEnd));
}

std::string loss_text(const RunLog& log) {
    const auto odd = first_nonfinite_loss(log);
    if (!odd) return "";
    return fmt::format("the loss is {} in step {}\n", std::isnan(odd->loss) ? "NaN" : "Inf", odd->step);
}

std::string seen_text(const RunLog& log, const Recipe& recipe) {
    std::string phrases;
    for (const std::string_view phrase : cannot_be_seen())
        phrases += fmt::format("{}{}", phrases.empty() ? "" : "; ", phrase);
    std::string out = "cannot be seen in these statistics: " + phrases + "\n";
    for (const std::string& sentence : not_known(log, recipe)) out += printable(sentence) + "\n";
    return out;
}

std::string findings_table(const RunLog& log, const Recipe& under, const std::vector<RunFinding>& found) {
    const std::string recipe = recipe_text(under);
    std::string out = fmt::format(
        "{} tensor{}, steps {} to {}, under {}{}\n", log.tensors.size(), log.tensors.size() == 1 ? "" : "s",
        log.first_step(), log.last_step(), recipe,
        log.recipe.empty() || log.recipe == recipe ? "" : ", trained in " + printable(log.recipe));
    out += loss_text(log);
    if (found.empty())
        return out + "nothing: no rule finds fault with these tensors\n" + seen_text(log, under);
    std::size_t name = 6, cause = 5;
    for (const RunFinding& one : found) {
        name = std::max(name, name_cell(one.name).size());
        cause = std::max(cause, numbered(one).size());
    }
    const auto row = [&](const std::string& tensor, const std::string& step, const std::string& lost,
                         const std::string& why, std::string_view treatment) {
        out += fmt::format("{:<{}}  {:>9}  {:>6}  {:<{}}  {}\n", tensor, name, step, lost, why, cause,
                           treatment);
    };
    row("tensor", "from step", "lost %", "cause", "one change that treats it");
    std::vector<std::size_t> ill;
    for (const RunFinding& one : found) {
        row(name_cell(one.name), std::to_string(one.step), lost_cell(one), numbered(one), one.treatment);
        if (std::ranges::find(ill, one.tensor) == ill.end()) ill.push_back(one.tensor);
    }
    return out +
           fmt::format("{} finding{}; {} of {} tensors {}\n", found.size(), found.size() == 1 ? "" : "s",
                       log.tensors.size() - ill.size(), log.tensors.size(),
                       not_known(log, under).empty() ? "are well" : "have none") +
           seen_text(log, under);
}

std::string findings_csv(const std::vector<RunFinding>& found) {
    std::string out = "tensor,step,lost_pct,number,cause,treatment\n";
    for (const RunFinding& one : found)
        out += fmt::format("{},{},{},{},{},{}\n", csv_cell(printable(one.name)), one.step,
                           one.lost_known ? shortest(one.lost_pct) : "", one.number, csv_cell(one.cause),
                           csv_cell(std::string(one.treatment)));
    return out;
}

nlohmann::json findings_json(const RunLog& log, const Recipe& recipe, const std::vector<RunFinding>& found) {
    nlohmann::json out = json_header(cpu_backend()->device());
    out["recipe"] = recipe_text(recipe);
    out["trained_in"] = log.recipe;
    out["arms"] = log.arms;
    out["first_step"] = log.first_step();
    out["last_step"] = log.last_step();
    if (const auto odd = first_nonfinite_loss(log))
        out["first_nonfinite_loss"] = {{"step", odd->step}, {"loss", std::isnan(odd->loss) ? "NaN" : "Inf"}};
    out["findings"] = nlohmann::json::array();
    for (const RunFinding& one : found)
        out["findings"].push_back(
            {{"tensor", one.name},
             {"step", one.step},
             {"lost_pct", one.lost_known ? nlohmann::json(one.lost_pct) : nlohmann::json()},
             {"number", one.number},
             {"cause", one.cause},
             {"treatment", one.treatment}});
    const bool own = is_own_recipe(log, recipe);
    out["tensors"] = nlohmann::json::array();
    for (const TensorSeries& series : log.tensors) {
        const Replay replayed = replay_tensor(series, recipe, own);
        const LostBounds lost = replayed.mean_lost();
        out["tensors"].push_back({{"name", series.name()},
                                  {"format", replayed.format->name},
                                  {"steps", series.points().size()},
                                  {"lost_pct_low", lost.low},
                                  {"lost_pct_high", lost.high},
                                  {"saturated_steps", replayed.saturated()},
                                  {"scales", std::string(replayed.observed ? "logged" : "replayed")}});
    }
    out["under"] = nlohmann::json::array();
    for (const UnderRecipe& row : under_recipes(log))
        out["under"].push_back({{"recipe", row.recipe},
                                {"over", row.over},
                                {"worst_tensor", log.tensors[row.worst].name()},
                                {"worst_pct", row.worst_pct},
                                {"bound", row.from_above ? "upper" : "lower"}});
    for (const std::string_view phrase : cannot_be_seen()) out["cannot_be_seen"].push_back(phrase);
    out["not_known"] = not_known(log, recipe);
    out["notes"] = log.notes;
    return out;
}

void watch(const WatchOptions& options) {
    Recipe recipe;
    if (!options.recipe.empty()) recipe = parse_recipe(options.recipe);
    const RunLog log = read_logs(options);
    for (const std::string& note : log.notes) tell("watch: " + note);
    if (log.tensors.empty()) throw input_error(options.logs.front(), "there is no tensor in this log");
    if (options.recipe.empty()) recipe = default_recipe(log);
    if (recipe.amax_percentile > 0 && !is_own_recipe(log, recipe))
        throw usage_error("--recipe", "recipe " + recipe.name + ": a log has amaxes, and no percentiles");
    const AskBetween ask([] { end_if_interrupted(); });
    const auto found = findings(log, recipe);
    if (const std::string loss = loss_text(log); options.csv && !loss.empty())
        tell("watch: " + loss.substr(0, loss.size() - 1));
    if (options.json)
        print_json(findings_json(log, recipe, found));
    else
        write_stdout(options.csv ? findings_csv(found) : findings_table(log, recipe, found));
}

}  // namespace

void add_watch(CLI::App& app, Globals&) {
    const auto options = std::make_shared<WatchOptions>();
    CLI::App* verb = app.add_subcommand("watch", "What is wrong with the tensors of a run, by its logs");
    verb->add_option("log", options->logs,
                     "logs or folders: fp8lab_hook.py, nvidia-dlfw-inspect, train --csv")
        ->required();
    verb->add_option("--recipe", options->recipe,
                     "under which recipe; the log's own, or delayed:history=1024 where that casts nothing");
    verb->add_option("--arm", options->arm, "of a CSV with several arms; the first one with values");
    verb->add_option("--rank", options->rank,
                     "of files named globalrank-N (the lowest), or of hook logs whose names end in N")
        ->check(whole("--rank", 0, 1000000));
    CLI::Option* csv = verb->add_flag("--csv", options->csv, "findings as CSV");
    verb->add_flag("--json", options->json, "as JSON, with all tensors and other recipes")->excludes(csv);
    verb->callback([options] { watch(*options); });
}

}  // namespace fp8lab::cli
