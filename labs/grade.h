// A class's submissions, judged again: bundles (.f8lab) beside loose evidence, over all cores. A broken file
// is one line of the result and not the end of it.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "labs/recheck.h"

namespace fp8lab {

// One exercise of one student.
struct Graded {
    std::string path, student;
    Evidence evidence;  // without deeds and values; empty where it could not be read
    Recheck recheck;
    std::string print = {};    // of the whole evidence
    std::string same_as = {};  // the first file with the very same evidence, time and all; no failure
};

// The files that paths stand for: a folder for the bundles and the evidence in it, its other files are
// somebody else's. Throws input_error: a path that is not there, a folder with neither.
std::vector<std::filesystem::path> submissions_in(std::span<const std::string> paths);

// Files in their order, a bundle's exercises in its. `stop` is asked between files; those not yet
// judged are then left out. Throws input_error for a file that cannot be read if it is the only one.
std::vector<Graded> grade(std::span<const std::filesystem::path> files, bool rerun,
                          const std::function<bool()>& stop);

// RFC 4180; text that a spreadsheet would take for a formula has an apostrophe before it.
std::string grades_csv(std::span<const Graded> all);

}  // namespace fp8lab
