// `fp8lab check`: judges evidence again by repeating its events. The values come from a new lab and the
// verdict from the exercise's judge, not from the evidence.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/lesson/evidence.h"
#include "labs/course/exercise_run.h"

namespace fp8lab {

struct Recheck {
    // "repeated", "repeated, trained here" (LabInfo::trained: claimed values are not compared), "judged from its series"
    // (a training), "retrained"
    std::string how;
    std::vector<std::string> problems;  // sentences; empty: the pass is valid
    Verdict verdict;                    // of the repeated events
    bool stands() const { return problems.empty(); }
};

// rerun: trains again instead of using the recorded series; takes seconds per training.
Recheck recheck(const Evidence& evidence, bool rerun);

// The same for many submissions: equal lists of steps of one exercise are repeated once. Results are stored
// under the steps themselves, not under a hash from the evidence, so a forgery gets the result of its own
// steps. May be used by several threads at once.
class Rechecker {
  public:
    // `stop` is called between events. When it returns true, the result has a problem that says so, and the
    // caller should discard it. Throws std::bad_alloc.
    Recheck operator()(const Evidence& evidence, bool rerun, const std::function<bool()>& stop = {});

    struct Repeated;  // the result of the steps on a new lab

  private:
    std::shared_ptr<const Repeated> repeated(const Evidence& evidence, const std::function<bool()>& stop);
    const ExerciseEntry& entry_of(const Evidence& evidence) const;
    void judge_again(const Evidence& evidence, bool rerun, const std::function<bool()>& stop, Recheck& out);

    const std::vector<ExerciseEntry> all_ = all_exercises();
    std::mutex mutex_;
    std::unordered_map<std::string, std::shared_future<std::shared_ptr<const Repeated>>> kept_;
    std::size_t kept_bytes_ = 0;  // about
};

}  // namespace fp8lab
