// `fp8lab check`: evidence judged again, by doing what it says was done. Nothing that the evidence claims is
// believed: the values come from a fresh lab, the verdict from the exercise's own judge.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/lesson/evidence.h"
#include "labs/exercise_run.h"

namespace fp8lab {

struct Recheck {
    std::string how;                    // "repeated", "judged from its series" (a training), "retrained"
    std::vector<std::string> problems;  // sentences; none: the pass stands
    Verdict verdict;                    // of what was recomputed
    bool stands() const { return problems.empty(); }
};

// rerun: trainings are done again instead of believing their series; seconds each.
Recheck recheck(const Evidence& evidence, bool rerun);

// The same for a class in which many did the same: equal deeds of one exercise are repeated once. What is
// kept was computed here, under the deeds themselves and not under a hash that evidence brings along; so a
// forgery gets what its deeds give. For several threads at once.
class Rechecker {
  public:
    // `stop` is asked between events; what it ends is a problem of this evidence, and to be left out by who
    // asked. Throws std::bad_alloc.
    Recheck operator()(const Evidence& evidence, bool rerun, const std::function<bool()>& stop = {});

    struct Repeated;  // what the deeds give on a fresh lab

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
