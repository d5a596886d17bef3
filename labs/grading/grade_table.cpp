#include "labs/grading/grade_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/units.h"
#include "core/figure/csv.h"

namespace fp8lab {
namespace {

// Words that a student can choose: one line, and no formula of a spreadsheet.
std::string cell(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    if (text.find_first_of("=+-@") == 0) text.insert(0, 1, '\'');
    return csv_cell(std::move(text));
}

std::string numbers(const std::vector<double>& values) {
    std::vector<std::string> words;
    for (const double value : values) words.push_back(shortest(value));
    return fmt::format("{}", fmt::join(words, " "));
}

std::string key_of(const Graded& graded) {
    if (!graded.student.empty()) return "student " + graded.student;
    const std::filesystem::path path = graded.path;
    return lower_extension(path) == ".json" ? path.parent_path().string() + "/" : path.string();
}

}  // namespace

std::string grades_head() {
    return "path,exercise,passed,how,predicted,hints,seed,at,problems,student,lab,prediction,measured,"
           "explanation,device,version,same_as,similar_to,similar_in\n";
}

std::string grades_row(const Graded& graded) {
    const Evidence& evidence = graded.evidence;
    const Recheck& recheck = graded.recheck;
    const bool known = graded.is_attempt();
    const std::string cells[] = {cell(graded.path),
                                 cell(graded.exercise()),
                                 recheck.stands() ? "1" : "0",
                                 recheck.how,
                                 !known                        ? ""
                                 : evidence.prediction.skipped ? "0"
                                                               : "1",
                                 known ? std::to_string(evidence.hints) : "",
                                 cell(evidence.seed),
                                 cell(evidence.at),
                                 cell(fmt::format("{}", fmt::join(recheck.problems, "; "))),
                                 cell(graded.student),
                                 cell(evidence.lab),
                                 numbers(evidence.prediction.values),
                                 numbers(recheck.verdict.measured),
                                 cell(evidence.explanation),
                                 cell(evidence.device),
                                 cell(evidence.version),
                                 cell(graded.same_as),
                                 cell(graded.like.path),
                                 cell(graded.like.in)};
    return fmt::format("{}\n", fmt::join(cells, ","));
}

void GradeTotals::add(const Graded& graded) {
    if (graded.scene) return;  // no student's
    const auto [at, is_new] = by_key_.try_emplace(key_of(graded), students_.size());
    if (is_new) {
        Student& one = students_.emplace_back();
        one.name = graded.student;
        one.path = graded.path;
    }
    Student& student = students_[at->second];
    student.files.insert(graded.path);
    student.alike += graded.same_as.empty() && graded.like.path.empty() ? 0 : 1;
    if (!graded.readable()) {
        ++student.unreadable;
        return;
    }
    student.exercises.insert(graded.evidence.exercise);
    if (graded.recheck.stands()) student.passed.insert(graded.evidence.exercise);
    student.predicted += graded.evidence.prediction.skipped ? 0 : 1;
    student.hints += graded.evidence.hints;
}

std::string GradeTotals::csv() const {
    std::string out = "student,path,files,exercises,passed,failed,unreadable,predicted,hints,alike\n";
    for (const Student& one : students_)
        out +=
            fmt::format("{},{},{},{},{},{},{},{},{},{}\n", cell(one.name), cell(one.path), one.files.size(),
                        one.exercises.size(), one.passed.size(), one.exercises.size() - one.passed.size(),
                        one.unreadable, one.predicted, one.hints, one.alike);
    return out;
}

}  // namespace fp8lab
