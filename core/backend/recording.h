// Recorded benches of GPUs, for machines without one: assets/recordings/*.json, one file per GPU, made by
// scripts/record.sh. They have the measurements with GPU, driver and date; only ratios are computed from them.
//
//   {"gpu": "NVIDIA H200", "driver": "580.95", "cuda": "13.0", "date": "2026-11-21",
//    "command": "fp8lab bench step --backend cuda --json",
//    "results": [<the JSON of one bench>, ...]}
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/gemm_grid.h"
#include "core/backend/infer_case.h"

namespace fp8lab {

struct RecordedArm {
    std::string recipe;
    double median_ms = 0, iqr_ms = 0, tflops = 0;
    double q1_ms = 0, q3_ms = 0, memory_bytes = 0;           // 0: an older recording has none
    std::vector<std::pair<std::string, double>> parts_ms{};  // "GEMM", "casts", ...: ArmCost::parts
    // The time of a part; 0 where there is no such part.
    double part_ms(std::string_view part) const;
};
struct RecordedStep {  // one result with "bench": "step"
    std::vector<int> layers;
    int batch = 0;
    std::vector<RecordedArm> arms{};
    std::string state = "fp32";  // of weights and moments of recipe bf16, or "bf16"
    const RecordedArm* find(std::string_view recipe) const;  // null where it was not measured
    // The speed-up: the time of bf16 divided by the time of this recipe; 0 where one of the two is missing.
    double speedup(std::string_view recipe) const;
};
// One result with "bench": "blocks", the blocks of a transformer alone, or with "bench": "train", a whole training: the
// JSON of `fp8lab train`, with sizes, batch and date.
struct RecordedBlocks {
    std::map<std::string, int> sizes;  // "d", "blocks", "context"; of blocks "ffn" and "heads" too
    RecordedStep step;                 // without layers; batch: sequences
    std::string attention;             // of its first arm: "cuDNN"; of a training empty
    std::string date;
    int steps = 0, vocabulary = 0;  // of a training
    std::vector<double> held_out;   // of a training: the loss at its end, by arm
    std::string name() const;       // "12 blocks, d 768"
};
// One result with "bench": "infer".
struct RecordedInfer {
    InferCase of;
    double median_ms = 0, iqr_ms = 0;
    double copy_bytes_per_ms = 0;  // of a copy in the same call, read and written
    std::string date;
    double tokens_per_s() const { return 1e3 * of.batch * of.tokens / median_ms; }
    // What reading weights and cache takes at the rate of the copy.
    double floor_ms() const { return (weight_bytes(of) + cache_bytes(of)) / copy_bytes_per_ms; }
};
struct Recording {
    std::string id;  // the file's name without .json: "h200"
    std::string gpu, driver, cuda, date, command;
    std::vector<RecordedStep> steps;              // by layers, then batch
    std::vector<AccumulationError> accumulation;  // of the result with "bench": "accumulate"
    std::optional<GemmGrid> grid;                 // of the result with "bench": "gemm-grid"
    std::vector<RecordedBlocks> blocks;           // by d, then trainings
    std::vector<RecordedInfer> infer;             // by batch
    const RecordedStep* step(std::span<const int> layers, int batch) const;  // null where it was not measured
};

// Throws input_error(where): not JSON (with line and column), a member missing or of the wrong type, an
// unknown kind of bench, a time that is not above 0. Only results of the kinds "step", "accumulate", "blocks",
// "train", "infer" and "gemm-grid" are read.
Recording parse_recording(std::string_view json, const std::string& where);

// All recordings among the assets: h200 first, then by id. Empty where there is none. Throws as
// parse_recording() at the first that is not whole.
std::vector<Recording> load_recordings();
// The first recording among the assets; the others are not read.
std::optional<Recording> load_recording();

// All recordings among the assets, or why one cannot be read.
struct Shipped {
    std::vector<Recording> recordings;
    std::string problem;
    const Recording* find(std::string_view id) const;  // null where there is none
};
std::shared_ptr<const Shipped> shipped();  // read once for each folder of assets

// "H200" of "NVIDIA H200", "H100" of "NVIDIA H100 80GB HBM3".
std::string short_gpu_name(std::string_view gpu);

// Why FP8 is wanted, in two sentences: its bytes, and the recorded step with the largest speed-up, with GPU and date.
// Without such a step there is only the first sentence.
std::string why_fp8(const std::optional<Recording>& recording);

}  // namespace fp8lab
