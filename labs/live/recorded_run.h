// A finished run of a lab that trains, with the lab's default settings, as scripts/record_runs.sh recorded it. The lab shows
// it until there is a run of one's own, under its name: recorded, with machine and date.
//
//   {"command": "fp8lab train ...", "machine": "AMD EPYC, 2 cores", "date": "2026-11-25", "seconds": 95.2, "seed": 1,
//    "arms": [{"recipe": "bf16", "loss": [4.01, ...]}, ...]}
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "labs/live/history.h"

namespace fp8lab::live {

struct RecordedRun {
    std::string command, machine, date;
    double seconds = 0;  // of all steps
    int seed = 0;
    std::vector<Recipe> arms;
    History history;  // losses alone
    int steps() const { return history.steps(); }
};

// Throws input_error(where): not JSON, a member missing or of the wrong type, arms of different length.
RecordedRun parse_recorded_run(std::string_view json, const std::string& where);

// assets/runs/<lab>.json, read once for each folder of assets: the run, or why it cannot be read.
struct ShippedRun {
    std::shared_ptr<const RecordedRun> run = {};
    std::string problem = {};
    std::string words() const;  // "recorded, seed 1, on AMD EPYC, 2 cores, 2026-11-25"; or the problem
};
ShippedRun shipped_run(const std::string& lab);

}  // namespace fp8lab::live
