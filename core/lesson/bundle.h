// A submission: the file that a student hands in and `fp8lab check` grades. One JSON file with the evidence
// of each pass, unchanged from the profile.
//
//   {"fp8lab_bundle": 1, "student": "Ada", "version": "0.1.0", "at": "2026-11-20T23:12:07",
//    "machine": {"processor": "...", ...},
//    "evidence": ["{ the text of L1.1.json }", ...],
//    "predictions": {"L1.1": {"skipped": false, "values": [2], "at": "..."}, ...}, "checksum": "..."}
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/lesson/exercise.h"

namespace fp8lab {

inline constexpr int kBundleSchema = 1;
inline constexpr std::size_t kLargestBundle =
    std::size_t{64} << 20;  // all exercises, the series of 4 trainings included: 7 MB

struct Bundle {
    std::string student;                                         // as typed; may be empty
    std::string version, at;                                     // of the program; local time, ISO 8601
    std::vector<std::pair<std::string, std::string>> machine;    // what the report's machine card says
    std::vector<std::string> evidence;                           // for parse_evidence()
    std::map<std::string, Prediction, std::less<>> predictions;  // by exercise, also of those not passed
    // Members that this version does not know, as JSON; written back as they were.
    std::string others = {};
    bool intact = true;  // parse_bundle(): its checksum fits
};

// The file's text, with its checksum. Throws input_error: a text that is not UTF-8.
std::string bundle_text(const Bundle& bundle);

// A wrong checksum is not an error here: Bundle::intact is then false, and the graders refuse the bundle.
// Throws input_error(where, ...) with line and column: not JSON, too large, a member missing or of a wrong
// type; written by a newer version.
Bundle parse_bundle(std::string_view text, const std::string& where);

}  // namespace fp8lab
