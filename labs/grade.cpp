#include "labs/grade.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/base/seal.h"
#include "core/base/units.h"
#include "core/lesson/bundle.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;

bool is_bundle(const fs::path& path, std::string_view text) {
    return path.extension() == ".f8lab" || text.find("\"fp8lab_bundle\"") != std::string_view::npos;
}

// What the text says. Evidence that was changed keeps its place in the result, as a problem.
Graded read_evidence(const std::string& path, const std::string& text) {
    Graded out{.path = path, .student = {}, .evidence = {}, .recheck = {}};
    try {
        out.evidence = parse_evidence(text, path);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::failed) throw;
        out.recheck.problems.push_back(error.why());
    }
    return out;
}

Graded broken(const std::string& path, std::string problem) {
    Graded out{.path = path, .student = {}, .evidence = {}, .recheck = {}};
    out.recheck.problems.push_back(std::move(problem));
    return out;
}

std::vector<Graded> read_bundle(const std::string& path, const std::string& text) {
    const Bundle bundle = parse_bundle(text, path);
    std::vector<Graded> out;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < bundle.evidence.size(); ++i) {
        Graded one;
        try {
            one = read_evidence(path, bundle.evidence[i]);
        } catch (const Error& error) {
            one = broken(path, fmt::format("its evidence {}: {}", i + 1, error.why()));
        }
        if (!one.evidence.exercise.empty() && !seen.insert(one.evidence.exercise).second)
            one.recheck.problems.emplace_back("the submission holds this exercise twice");
        out.push_back(std::move(one));
    }
    if (out.empty()) out.push_back(broken(path, "the submission holds no evidence"));
    for (Graded& one : out) {
        one.student = bundle.student;
        if (!bundle.intact)
            one.recheck.problems.emplace_back("the submission was changed: its checksum does not fit");
    }
    return out;
}

std::vector<Graded> read_submission(const fs::path& file, bool alone) {
    try {
        const std::string text = read_text(file);
        if (is_bundle(file, text)) return read_bundle(file.string(), text);
        return {read_evidence(file.string(), text)};
    } catch (const Error& error) {
        if (alone) throw;
        return {broken(file.string(), error.why())};
    }
}

// Judged again; what is large in evidence, series and values, is let go: a class has gigabytes of it.
void judge(Graded& one, Rechecker& again, bool rerun) {
    Evidence& evidence = one.evidence;
    if (evidence.exercise.empty()) return;
    Recheck found = again(evidence, rerun);
    std::ranges::move(found.problems, std::back_inserter(one.recheck.problems));
    one.recheck.how = std::move(found.how);
    one.recheck.verdict = std::move(found.verdict);
    one.print = fnv_hash(evidence_text(evidence));
    evidence.deeds = {};
    evidence.values = {};
}

// Evidence that was seen before, word for word: who is in two minds about it asks the students.
void note_copies(std::vector<Graded>& all) {
    std::map<std::string, std::string> first;
    for (Graded& one : all) {
        if (one.print.empty()) continue;
        const auto [at, is_new] = first.try_emplace(one.print, one.path);
        if (!is_new) one.same_as = at->second;
    }
}

std::string quoted(std::string text) {
    for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
    return '"' + text + '"';
}

// Words that a student can choose: one line, and no formula of a spreadsheet.
std::string cell(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    if (text.find_first_of("=+-@") == 0) text.insert(0, 1, '\'');
    return text.find_first_of(",\"") == std::string::npos ? text : quoted(text);
}

std::string numbers(const std::vector<double>& values) {
    std::vector<std::string> words;
    for (const double value : values) words.push_back(shortest(value));
    return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

std::vector<fs::path> submissions_in(std::span<const std::string> paths) {
    std::vector<fs::path> out;
    for (const std::string& path : paths) {
        if (!fs::is_directory(path)) {
            if (path != "-" && !fs::exists(path)) static_cast<void>(read_text(path));  // throws the reason
            out.emplace_back(path);
            continue;
        }
        const std::size_t before = out.size();
        for (const auto& entry : fs::recursive_directory_iterator(path)) {
            if (!entry.is_regular_file() || entry.path().filename().string().starts_with('.')) continue;
            const fs::path extension = entry.path().extension();
            if (extension == ".f8lab" ||
                (extension == ".json" &&
                 read_text(entry.path()).find("\"fp8lab_evidence\"") != std::string::npos))
                out.push_back(entry.path());
        }
        if (out.size() == before) throw input_error(path, "holds no evidence of an exercise");
        std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
    }
    return out;
}

std::vector<Graded> grade(std::span<const fs::path> files, bool rerun, const std::function<bool()>& stop) {
    Rechecker again;
    std::vector<std::vector<Graded>> graded(files.size());
    parallel_for(files.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end && !stop(); ++i) {
            graded[i] = read_submission(files[i], files.size() == 1);
            for (Graded& one : graded[i]) judge(one, again, rerun);
        }
    });
    std::vector<Graded> out;
    for (std::vector<Graded>& submission : graded) std::ranges::move(submission, std::back_inserter(out));
    note_copies(out);
    return out;
}

std::string grades_csv(std::span<const Graded> all) {
    std::string out =
        "path,exercise,passed,how,predicted,hints,seed,at,problems,student,lab,prediction,measured,"
        "explanation,device,version,same_as\n";
    for (const auto& [path, student, evidence, recheck, print, same_as] : all)
        out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", cell(path),
                           cell(evidence.exercise), recheck.stands() ? 1 : 0, recheck.how,
                           evidence.prediction.skipped ? 0 : 1, evidence.hints, cell(evidence.seed),
                           cell(evidence.at), cell(fmt::format("{}", fmt::join(recheck.problems, "; "))),
                           cell(student), cell(evidence.lab), numbers(evidence.prediction.values),
                           numbers(recheck.verdict.measured), cell(evidence.explanation),
                           cell(evidence.device), cell(evidence.version), cell(same_as));
    return out;
}

}  // namespace fp8lab
