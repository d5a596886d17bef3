// The record of a pass. The pass can be repeated from it. `check` does not trust the values in it: it repeats
// the events on a new lab and compares (labs/grading/recheck.h), so a forgery with a correct checksum is
// found too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/lesson/exercise.h"

namespace fp8lab {

struct Evidence {
    std::string lab, exercise;  // "error", "L3.1"
    std::string version, provenance, device, seed, at;
    Prediction prediction;
    int hints = 0;                                           // opened
    std::string explanation;                                 // the learner's own words; may be empty
    std::vector<std::pair<std::string, std::string>> start;  // fields, before the first event
    struct EventGroup {  // the events before the next look at the lab; files call it a "deed"
        std::vector<Event> events;
        std::string record = {};  // as Step::record
        bool operator==(const EventGroup&) const = default;
    };
    std::vector<EventGroup> groups;
    std::vector<Metric> values;  // of the lab, when it passed
    std::vector<Condition> conditions;
    std::vector<double> measured;  // as Verdict::measured
};

// Parts of evidence as JSON, for the journal of an unfinished attempt. The readers throw nlohmann's
// exceptions, or Error with an empty `where`.
nlohmann::json to_json(const Evidence::EventGroup& group);
Evidence::EventGroup event_group_from(const nlohmann::json& json);
nlohmann::json to_json(const Prediction& prediction);
Prediction prediction_from(const nlohmann::json& json);

// The hash of lab, start and event groups, 16 hexadecimal digits: equal for equal contents.
std::string scene_hash(const Evidence& evidence);

// The size of evidence, counted without building values; text that is not JSON is counted up to the error.
struct EvidenceSize {
    std::string exercise;  // empty: not found in the text
    std::size_t events = 0, values = 0;
};
EvidenceSize evidence_size(std::string_view text);

// The file's text, with scene hash and checksum. NaN and Inf are written as words.
std::string evidence_text(const Evidence& evidence);

// Throws input_error(where, ...): not JSON (with line and column), a member missing or of a wrong type;
// Error{failed}: its checksum or scene hash does not fit.
Evidence parse_evidence(std::string_view text, const std::string& where);

}  // namespace fp8lab
