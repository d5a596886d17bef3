// Claim cards: statements of tutorials on FP8 that a lab tests. Data in assets/claims.json; a test runs
// each experiment and compares every number of the verdict with the lab's.
//
//   {"id": "bits-e4m3-max-240", "lab": "bits", "source": "Lab 3.2.3: FP8 Training and Inference", "line": 119,
//    "ruling": "wrong", "claim": "Max value  240.0", "experiment": ["format=e4m3"],
//    "findings": [{"metric": "max", "value": 448}], "verdict": "E4M3 ends at {}."}
//
// An id names a card for good: lower case letters, digits, dots and hyphens, each once. "line" is left out where
// the source has no lines. An experiment starts from the lab's defaults; its events are written as parse_event()
// reads them: "field=value", "!action". A verdict may also name numbers of ten trainings: {runs L8 delayed gap_pct interval}
// (core/lesson/runs.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/lesson/trail.h"

namespace fp8lab {

struct Finding {
    std::string metric;    // of the lab, after the experiment
    double value = 0;      // shown in the verdict's next {}
    double tolerance = 0;  // relative; 0: exact
};

enum class Ruling { wrong, half_right, right, open };  // open: the lab cannot decide it, and says what would

struct Claim {
    std::string id, lab, source;
    int line = 0;       // of the source; 0: it has none
    std::string claim;  // quoted from the source
    Ruling ruling = Ruling::wrong;
    std::vector<Event> experiment;
    std::vector<Finding> findings;
    std::string verdict;  // with a {} for each finding, in order; numbers of trainings are filled in

    std::string place() const;         // the source with its line
    std::string verdict_text() const;  // with the card's numbers
};

std::string_view words_of(Ruling ruling);  // "half right"

// All cards of assets/claims.json, in its order. Throws input_error with what is wrong in which entry: a member that
// is missing, an id that is not one or is there twice.
std::vector<Claim> load_claims();
std::vector<Claim> parse_claims(std::string_view json, const std::string& where);

}  // namespace fp8lab
