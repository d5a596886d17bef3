// A class's submissions, judged again: bundles (.f8lab) beside loose evidence, over all cores. A broken file
// is one line of the result and not the end of it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "labs/copies.h"
#include "labs/recheck.h"
#include "labs/submission_files.h"

namespace fp8lab {

// One exercise of one student, or a file that could not be read.
struct Graded {
    std::string path, student;
    Evidence evidence;  // without deeds and values; empty where it could not be read
    Recheck recheck;
    std::string print = {};        // of the whole evidence
    Fingerprint fingerprint = {};  // of what does not change with a name or a time
    std::string same_as = {};      // the first file with the very same evidence, time and all; no failure
    Likeness like = {};            // the first file with evidence that is much like it; no failure
    bool scene = false;            // a teacher's scene, run to its headline: nobody's attempt

    bool readable() const { return !evidence.exercise.empty(); }
    // Has a prediction and a number of hints; a scene, and what could not be read, has none.
    bool is_attempt() const { return readable() && !scene; }
};

// Of one exercise: more is refused before anything of it is built. A training of 2,000 steps has some
// 100,000, and each later event of its attempt has them once more.
inline constexpr std::size_t kMostEvidenceValues = 4'000'000;

struct Grading {
    bool rerun = false;  // train again instead of believing the series of a training
    bool alone = false;  // nothing else was named: a file that cannot be read throws its input_error
    std::function<bool()> stop = {};                  // asked between files and between events
    std::function<void(const Graded&)> each = {};     // a row, as soon as it and all before it are known
    std::function<void(std::size_t done)> told = {};  // files done, of files.size()
};

// Calls grading.each for one row after the other, in the order of the files, a bundle's exercises in its;
// from several threads, never from two at once. When `stop` says so, files that are not judged whole are left
// out. An exception ends the grading; rows that are known have then been sent, unless it is one of `each`.
void grade(std::span<const SubmissionFile> files, const Grading& grading);

}  // namespace fp8lab
