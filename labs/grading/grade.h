// Judges the submissions of a class again, on all cores: bundles (.f8lab) and single evidence files. A
// damaged file is one row of the result and does not stop the grading.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "labs/grading/copies.h"
#include "labs/grading/recheck.h"
#include "labs/grading/submission_files.h"

namespace fp8lab {

// One exercise of one student, or a file that could not be read.
struct Graded {
    std::string path, student;
    Evidence evidence;  // without event groups and values; empty where it could not be read
    Recheck recheck;
    std::string print = {};        // of the whole evidence
    Fingerprint fingerprint = {};  // of what does not change with a name or a time
    std::string same_as = {};      // the first file with the very same evidence, time and all; no failure
    Likeness like = {};            // the first file with similar evidence; no failure
    bool scene = false;            // a scene that was run and compared with its headline; no attempt

    std::string claimed =
        {};  // the exercise that evidence which was changed says it is of; not to be relied on

    bool readable() const { return !evidence.exercise.empty(); }
    const std::string& exercise() const { return readable() ? evidence.exercise : claimed; }
    // An attempt has a prediction and a number of hints; a scene or an unreadable file has none.
    bool is_attempt() const { return readable() && !scene; }
};

// The largest number of values in the evidence of one exercise; more is refused before it is parsed. A
// training of 2,000 steps has some 100,000, and each later event of its attempt repeats them.
inline constexpr std::size_t kMostEvidenceValues = 4'000'000;

struct Grading {
    bool rerun = false;               // train again instead of using the recorded series
    bool alone = false;               // it is the only file: an unreadable one throws its input_error
    std::function<bool()> stop = {};  // called between files and between events
    std::function<void(const Graded&)> each = {};     // called with each row, in order
    std::function<void(std::size_t done)> told = {};  // called with the number of files that are done
};

// Calls grading.each for one row after the other in the order of the files, and of the exercises in a bundle;
// from several threads, but never from two at once. When `stop` returns true, files that are not completely
// judged are left out. An exception ends the grading; rows that were known have then been passed on, unless
// `each` threw it.
void grade(std::span<const SubmissionFile> files, const Grading& grading);

}  // namespace fp8lab
