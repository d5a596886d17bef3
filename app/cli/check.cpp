// fp8lab check PATH...: submissions and loose evidence, judged again; scenes, run to their headlines.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/bounded_file.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/files/growing_file.h"
#include "core/files/outputs.h"
#include "core/files/progress_line.h"
#include "core/lesson/scene.h"
#include "core/threads/ask.h"
#include "labs/course/scene_run.h"
#include "labs/grading/grade.h"
#include "labs/grading/grade_table.h"

namespace fp8lab::cli {

namespace {

struct CheckOptions {
    std::vector<std::string> paths;
    std::string csv, totals;
    bool json = false, rerun = false;
};

nlohmann::json graded_json(const Graded& graded) {
    const Evidence& evidence = graded.evidence;
    const Recheck& recheck = graded.recheck;
    nlohmann::json out = {{"path", graded.path},
                          {"student", graded.student},
                          {"same_as", graded.same_as},
                          {"similar_to", graded.like.path},
                          {"similar_in", graded.like.in},
                          {"explanation", evidence.explanation},
                          {"exercise", evidence.exercise},
                          {"passed", recheck.stands()},
                          {"how", recheck.how},
                          {"problems", recheck.problems},
                          {"predicted", nullptr},
                          {"hints", nullptr},
                          {"at", evidence.at},
                          {"seed", evidence.seed},
                          {"provenance", evidence.provenance},
                          {"version", evidence.version},
                          {"conditions", nlohmann::json::array()}};
    if (graded.is_attempt()) {
        out["predicted"] = !evidence.prediction.skipped;
        out["hints"] = evidence.hints;
    }
    for (const Condition& condition : recheck.verdict.conditions)
        out["conditions"].push_back(
            {{"text", condition.text}, {"values", condition.values}, {"met", condition.met}});
    return out;
}

// Rows go out as they come, so that what is known is not lost with what is not.
class CheckRows {
  public:
    explicit CheckRows(const CheckOptions& options) : options_(options) {
        if (options.json) json_ = nlohmann::json::array();
    }

    void add(const Graded& graded) {
        ++rows_;
        if (!graded.recheck.stands()) ++failed_;
        if (!options_.csv.empty()) {
            csv_whole_ = false;
            if (!csv_) {
                csv_.emplace(options_.csv);
                csv_->append(grades_head());
            }
            csv_->append(grades_row(graded));
            csv_whole_ = true;
        }
        if (!options_.totals.empty()) totals_.add(graded);
        if (options_.json)
            json_.push_back(graded_json(graded));
        else if (options_.csv != "-" && options_.totals != "-")
            show(graded);
        note_likeness(graded);
    }

    // Whatever ended the grading: tables are whole, of the rows that there are.
    void finish_tables() {
        if (csv_ && csv_whole_) csv_->keep();
        if (!options_.totals.empty() && rows_ > 0) write_file(options_.totals, totals_.csv());
    }

    void finish() {
        finish_tables();
        if (lost_) std::rethrow_exception(lost_);
        if (options_.json) {
            nlohmann::json out = json_header(cpu_backend()->device());
            out["results"] = std::move(json_);
            print_json(out);
        } else if (options_.csv != "-" && options_.totals != "-") {
            for (const std::string& line : alike_) fmt::print("{}\n", line);
            return;
        }
        if (!alike_.empty())
            tell(fmt::format(
                "fp8lab: check: {} of {} rows are much like an earlier one: see same_as and similar_to",
                alike_.size(), rows_));
    }

    std::size_t rows() const { return rows_; }
    std::size_t failed() const { return failed_; }

  private:
    // A reader that went away does not keep the table from its end.
    void show(const Graded& graded) {
        if (lost_) return;
        try {
            print_row(graded);
            flush_stdout();
        } catch (...) {
            lost_ = std::current_exception();
            if (!csv_ && options_.totals.empty()) throw;
        }
    }

    static std::string name_of(const Graded& graded) {
        return graded.student.empty() ? "" : printable(graded.student) + ", ";
    }

    static void print_row(const Graded& graded) {
        const bool stands = graded.recheck.stands();
        fmt::print("{}  {:<6} {}{}{}\n", stands ? "passed" : "failed", printable(graded.exercise()),
                   name_of(graded), printable(graded.path), stands ? ", " + graded.recheck.how : "");
        for (const std::string& problem : graded.recheck.problems)
            fmt::print("          {}\n", printable(problem));
    }

    void note_likeness(const Graded& graded) {
        const bool same = !graded.same_as.empty();
        if (!same && graded.like.path.empty()) return;
        const std::string other = same ? graded.same_as : graded.like.path;
        const std::string whose = graded.like.path == other && !graded.like.student.empty()
                                      ? printable(graded.like.student) + ", "
                                      : "";
        alike_.push_back(fmt::format("alike   {:<6} {}{} and {}{}: {}", printable(graded.exercise()),
                                     name_of(graded), printable(graded.path), whose, printable(other),
                                     same ? "the very same evidence" : graded.like.in));
    }

    const CheckOptions& options_;
    std::optional<GrowingFile> csv_;
    bool csv_whole_ = true;  // no row of it was cut short
    GradeTotals totals_;
    nlohmann::json json_;
    std::vector<std::string> alike_;  // for the teacher, who decides
    std::size_t rows_ = 0, failed_ = 0;
    std::exception_ptr lost_;  // why stdout takes no more
};

// A scene alone that cannot be read ends the run; among others it is a failed line.
Graded run_to_headline(const std::string& path, bool alone) {
    Graded out;
    out.path = path;
    out.scene = true;
    out.evidence.exercise = "scene";
    out.recheck.how = "run to its headline";
    try {
        Scene scene = parse_scene(read_bounded(path, kLargestScene), path);
        scene.folder = std::filesystem::path(path).parent_path();
        const auto lab = run_scene(scene, std::filesystem::temp_directory_path());
        if (const std::string problem = headline_problem(scene, *lab); !problem.empty())
            out.recheck.problems.push_back(problem);
        for (const std::string& notice : scene.notices) tell(fmt::format("fp8lab: {}: {}", path, notice));
    } catch (const Error& error) {
        if (alone) throw;
        out.recheck.problems.push_back(error.why());
    } catch (const std::filesystem::filesystem_error& error) {  // of the folder for its tensors
        if (alone) throw;
        out.recheck.problems.push_back(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    } catch (const std::bad_alloc&) {
        if (alone) throw;
        out.recheck.problems.emplace_back("not enough memory to run it");
    }
    return out;
}

void judge_all(const CheckOptions& options, const std::vector<std::string>& scenes,
               const std::vector<SubmissionFile>& files, CheckRows& rows) {
    const bool alone = options.paths.size() == 1;
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    const auto tell_of = [&, all = scenes.size() + files.size()](std::size_t done) {
        if (done < all) progress.at(fmt::format("check: {} of {} files", done, all));
    };
    const auto add = [&](const Graded& graded) {
        progress.erase();
        rows.add(graded);
    };
    tell_of(0);
    for (std::size_t i = 0; i < scenes.size() && !interrupted(); ++i) {
        const auto row = run_to_headline(scenes[i], alone);
        if (!interrupted()) add(row);  // a training that a signal ends is not judged
        tell_of(i + 1);
    }
    grade(files, {.rerun = options.rerun,
                  .alone = alone && files.size() == 1 && files[0].path == options.paths[0],
                  .stop = interrupted,
                  .each = add,
                  .told = [&](std::size_t done) { tell_of(scenes.size() + done); }});
}

void check(const CheckOptions& options) {
    std::vector<std::string> paths = options.paths, scenes;
    std::erase_if(paths, [&](const std::string& path) {
        if (path.ends_with(".f8scene")) scenes.push_back(path);
        return path.ends_with(".f8scene");
    });
    const std::vector<SubmissionFile> files = submissions_in(paths);
    Outputs outputs;
    for (const std::string& path : options.paths) outputs.reads(path);
    for (const SubmissionFile& file : files) outputs.reads(file.path);
    if (options.json) outputs.prints("--json");
    if (!options.json && options.csv != "-" && options.totals != "-") outputs.prints("stdout");
    if (!options.csv.empty()) outputs.writes("--csv", options.csv, Holds::table);
    if (!options.totals.empty()) outputs.writes("--totals", options.totals, Holds::table);

    const Interruptible keeps;
    CheckRows rows(options);
    try {
        judge_all(options, scenes, files, rows);
    } catch (
        const Interrupted&) {  // in the midst of one, or waiting for stdin; said below, with how far it came
    } catch (...) {
        rows.finish_tables();
        throw;
    }
    rows.finish();
    end_if_interrupted(fmt::format("after {} rows of {} files", rows.rows(), scenes.size() + files.size()));
    if (rows.failed() > 0)
        throw Error(ErrorKind::failed, "check",
                    fmt::format("{} of {} did not pass", rows.failed(), rows.rows()));
}

}  // namespace

void add_check(CLI::App& app, Globals&) {
    const auto options = std::make_shared<CheckOptions>();
    CLI::App* verb = app.add_subcommand(
        "check", "Grades submissions and evidence of exercises by repeating the actions in them");
    verb->add_option(
            "path", options->paths,
            "submissions (.f8lab), evidence, scenes (.f8scene), or folders with submissions or evidence")
        ->required();
    verb->add_flag("--json", options->json, "the results as JSON");
    verb->add_option("--csv", options->csv,
                     "CSV with one row per exercise, written as soon as it is graded; - is stdout");
    verb->add_option("--totals", options->totals, "CSV with one row per student; - is stdout");
    verb->add_flag("--rerun", options->rerun,
                   "train again instead of trusting the recorded series of a training");
    verb->callback([options] { check(*options); });
}

}  // namespace fp8lab::cli
