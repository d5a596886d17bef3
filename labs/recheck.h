// `fp8lab check`: evidence judged again, by doing what it says was done. Nothing that the evidence claims is
// believed: the values come from a fresh lab, the verdict from the exercise's own judge.
#pragma once

#include <string>
#include <vector>

#include "core/lesson/evidence.h"

namespace fp8lab {

struct Recheck {
    std::string how;                    // "repeated", "judged from its series" (a training), "retrained"
    std::vector<std::string> problems;  // sentences; none: the pass stands
    Verdict verdict;                    // of what was recomputed
    bool stands() const { return problems.empty(); }
};

// rerun: trainings are done again instead of believing their series; seconds each.
Recheck recheck(const Evidence& evidence, bool rerun);

}  // namespace fp8lab
