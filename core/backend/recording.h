// Recorded benches of a GPU, for machines without one: assets/recordings/h200.json. It has the measurements
// with GPU, driver and date; only ratios are computed from them.
//
//   {"gpu": "NVIDIA H200", "driver": "580.95", "cuda": "13.0", "date": "2026-11-21",
//    "command": "fp8lab bench step --backend cuda --json",
//    "results": [<the JSON of one bench>, ...]}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/backend.h"

namespace fp8lab {

struct RecordedArm {
    std::string recipe;
    double median_ms = 0, iqr_ms = 0, tflops = 0;
    double memory_bytes = 0;  // device memory that the arm allocated; 0: not recorded
};
struct RecordedStep {  // one result with "bench": "step"
    std::vector<int> layers;
    int batch = 0;
    std::vector<RecordedArm> arms;
    const RecordedArm* find(std::string_view recipe) const;  // null where it was not measured
    // Time of bf16 divided by the time of this recipe; 0 where one of the two is missing.
    double speedup(std::string_view recipe) const;
};
struct Recording {
    std::string gpu, driver, cuda, date, command;
    std::vector<RecordedStep> steps;              // by layers, then batch
    std::vector<AccumulationError> accumulation;  // of the result with "bench": "accumulate"
};

// Throws input_error(where): not JSON (with line and column), a member missing or of the wrong type, an
// unknown kind of bench, a time that is not above 0. Only results of the kinds "step" and "accumulate" are
// read.
Recording parse_recording(std::string_view json, const std::string& where);

// The recording among the assets; none where there is no such file. Throws as parse_recording().
std::optional<Recording> load_recording();

// Why anybody wants FP8, in two sentences: its bytes, and the recorded step that it makes faster by the
// largest factor, with GPU and date. Without such a step the first alone.
std::string why_fp8(const std::optional<Recording>& recording);

}  // namespace fp8lab
