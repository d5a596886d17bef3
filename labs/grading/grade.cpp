#include "labs/grading/grade.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/json/checksum.h"
#include "core/lesson/bundle.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;

// Submissions above this size are read one at a time: beside others each would take ten times its size.
constexpr std::size_t kLargeFile = std::size_t{8} << 20;

bool is_bundle(const fs::path& path, std::string_view text) {
    return lower_extension(path) == ".f8lab" || text.find("\"fp8lab_bundle\"") != std::string_view::npos;
}

// Why evidence of that size is not built; empty: it is.
std::string too_large(const EvidenceSize& size) {
    const std::string of = size.exercise.empty() ? "" : " of " + size.exercise;
    if (size.events > kMostEvents)
        return fmt::format(
            "holds {} events{}, and at most {} are judged. Each repeat of a held key is an "
            "event. Begin the exercise again.",
            size.events, of, kMostEvents);
    if (size.values > kMostEvidenceValues)
        return fmt::format("holds {} values{}; evidence has at most {}", size.values, of,
                           kMostEvidenceValues);
    return {};
}

// What the text says. Evidence that was changed keeps its place in the result, as a problem.
Graded read_evidence(const std::string& path, const std::string& text) {
    Graded out{.path = path, .student = {}, .evidence = {}, .recheck = {}};
    try {
        out.evidence = parse_evidence(text, path);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::failed) throw;
        out.claimed = evidence_size(text).exercise;
        out.recheck.problems.push_back(error.why());
    }
    return out;
}

Graded broken(const std::string& path, std::string problem) {
    Graded out{.path = path, .student = {}, .evidence = {}, .recheck = {}};
    out.recheck.problems.push_back(std::move(problem));
    return out;
}

// Series and values: a class has gigabytes of them.
void drop_large(Evidence& evidence) {
    evidence.groups = {};
    evidence.values = {};
}

void judge(Graded& one, Rechecker& again, const Grading& grading) {
    Evidence& evidence = one.evidence;
    if (!one.readable()) return;
    Recheck found = again(evidence, grading.rerun, grading.stop);
    std::ranges::move(found.problems, std::back_inserter(one.recheck.problems));
    one.recheck.how = std::move(found.how);
    one.recheck.verdict = std::move(found.verdict);
    one.print = fnv_hash(evidence_text(evidence));
    one.fingerprint = fingerprint_of(evidence);
}

// One exercise after the other, so that only one is in memory with all its events.
class BundleGrader {
  public:
    BundleGrader(const std::string& path, Rechecker& again, const Grading& grading)
        : path_(path), again_(again), grading_(grading) {}

    std::vector<Graded> operator()(std::string text) {
        Bundle bundle = parse_bundle(text, path_);
        text = {};
        for (std::size_t i = 0; i < bundle.evidence.size(); ++i)
            add(std::exchange(bundle.evidence[i], {}), i + 1);
        if (out_.empty()) out_.push_back(broken(path_, "the submission holds no evidence"));
        for (Graded& one : out_) {
            one.student = bundle.student;
            if (!bundle.intact)
                one.recheck.problems.emplace_back("the submission was changed: its checksum does not fit");
        }
        return std::move(out_);
    }

  private:
    void add(const std::string& text, std::size_t number) {
        try {
            const EvidenceSize size = evidence_size(text);
            if (const std::string why = too_large(size); !why.empty()) {
                out_.push_back(broken(path_, fmt::format("evidence {} {}", number, why)));
                out_.back().claimed = size.exercise;
                return;
            }
            Graded one = read_evidence(path_, text);
            // Each exercise is repeated once, so that no submission takes more time than all exercises do.
            if (one.readable() && !seen_.insert(one.evidence.exercise).second)
                one.recheck.problems.emplace_back("the submission holds this exercise twice");
            else
                judge(one, again_, grading_);
            drop_large(one.evidence);
            out_.push_back(std::move(one));
        } catch (const Error& error) {
            Graded& one =
                out_.emplace_back(broken(path_, fmt::format("evidence {}: {}", number, error.why())));
            one.claimed = evidence_size(text).exercise;
        }
    }

    const std::string& path_;
    Rechecker& again_;
    const Grading& grading_;
    std::set<std::string> seen_;
    std::vector<Graded> out_;
};

// Rows leave it in order, whatever the order is in which the files are done.
class InOrder {
  public:
    InOrder(std::size_t files, const Grading& grading) : waiting_(files), grading_(grading) {}

    void done(std::size_t file, std::vector<Graded> rows) {
        const std::lock_guard lock{mutex_};
        if (refused_) return;
        waiting_[file] = std::move(rows);
        while (next_ < waiting_.size() && waiting_[next_]) send(*std::exchange(waiting_[next_++], {}));
        if (grading_.told) grading_.told(++files_done_);
    }
    // After a stop: what is known, behind files that are not.
    void finish() {
        if (refused_) return;
        for (; next_ < waiting_.size(); ++next_)
            if (waiting_[next_]) send(std::move(*waiting_[next_]));
    }

  private:
    void send(std::vector<Graded> rows) {
        for (Graded& row : rows) {
            if (!row.print.empty()) {
                const auto [at, is_new] = first_.try_emplace(row.print, row.path);
                if (!is_new) row.same_as = at->second;
                row.like = copies_.compare(row.fingerprint, row.path, row.student);
            }
            if (!grading_.each) continue;
            refused_ = true;  // until it was taken
            grading_.each(row);
            refused_ = false;
        }
    }

    std::mutex mutex_;
    std::vector<std::optional<std::vector<Graded>>> waiting_;
    const Grading& grading_;
    std::size_t next_ = 0, files_done_ = 0;
    bool refused_ = false;  // grading_.each has thrown: it gets no more
    std::map<std::string, std::string> first_;
    Copies copies_;
};

class Grader {
  public:
    Grader(std::span<const SubmissionFile> files, const Grading& grading)
        : files_(files), grading_(grading), rows_(files.size(), grading) {}

    void run() {
        // One range a thread, and each takes the next file: the rows then come about in order.
        try {
            parallel_for(static_cast<std::size_t>(threads()), 1,
                         [this](std::size_t, std::size_t) { work(); });
        } catch (...) {
            rows_.finish();
            throw;
        }
        rows_.finish();
    }

  private:
    bool stopped() const { return failed_ || (grading_.stop && grading_.stop()); }

    void work() {
        for (std::size_t i = next_++; i < files_.size() && !stopped(); i = next_++) {
            try {
                std::vector<Graded> rows = grade_file(files_[i]);
                if (!stopped()) rows_.done(i, std::move(rows));
            } catch (...) {
                failed_ = true;
                throw;
            }
        }
    }

    std::vector<Graded> grade_file(const SubmissionFile& file) {
        const std::string path = file.path.string();
        try {
            if (!file.problem.empty()) throw input_error(path, file.problem);
            std::error_code none;
            std::unique_lock one_large{large_, std::defer_lock};
            if (const auto size = fs::file_size(file.path, none); !none && size > kLargeFile)
                one_large.lock();
            std::string text = read_bounded(file.path, kLargestBundle);
            if (is_bundle(file.path, text)) return BundleGrader(path, again_, grading_)(std::move(text));
            if (std::string why = too_large(evidence_size(text)); !why.empty())
                throw input_error(path, std::move(why));
            std::vector<Graded> rows = {read_evidence(path, text)};
            judge(rows.front(), again_, grading_);
            drop_large(rows.front().evidence);
            return rows;
        } catch (const Error& error) {
            if (grading_.alone) throw;
            return {broken(path, error.why())};
        } catch (const std::bad_alloc&) {  // what the other files need may be there
            if (grading_.alone) throw;
            return {broken(path, "not enough memory to judge it")};
        }
    }

    std::span<const SubmissionFile> files_;
    const Grading& grading_;
    Rechecker again_;
    InOrder rows_;
    std::mutex large_;
    std::atomic<std::size_t> next_ = 0;
    std::atomic<bool> failed_ = false;
};

}  // namespace

void grade(std::span<const SubmissionFile> files, const Grading& grading) { Grader(files, grading).run(); }

}  // namespace fp8lab
