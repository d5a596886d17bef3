// `bench KIND`: timings, each with the ratio to a ceiling of this machine. Both are measured alternately in the
// same run, so that a busy machine slows both. A kind of bench is a function here and a line of the table in
// bench.cpp.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/verb.h"
#include "core/backend/backend.h"

namespace fp8lab::cli {

// The options of the verb, as given; a kind refuses those that it does not take. Empty and 0: not given.
struct BenchOptions {
    std::string backend = "auto", layers = {}, recipe = {}, shape = {}, state = "fp32";
    std::string accumulate_in = {}, devices = {}, shard = {}, gather = {}, sum = {}, weights = {}, kv = {};
    int batch = 0, repeat = 0, accumulate = 1, tokens = 0;
    double seconds = 0;
    bool sweep = false, grid = false, brief = false;
};

// Returns the JSON, null where it printed that itself; prints its own table when `json` is false.
using BenchRun = nlohmann::json (*)(const BenchOptions& options, const Globals& globals, bool json);

struct BenchKind {
    std::string_view name, summary;
    BenchRun run;
    std::string_view options = "";  // beside --backend, --repeat and --json: "--layers --batch"
};

struct Timing {
    double median_ms = 0, q1_ms = 0, q3_ms = 0;  // quartiles; the interquartile range is q3 - q1
    int repeats = 0;
};
Timing summarize(std::vector<double> ms);
nlohmann::json to_json(const Timing& timing);  // median_ms, iqr_ms, repeats

double time_ms(const std::function<void()>& work);

// Runs `work` and `ceiling` alternately, `repeats` times after one warm-up of both. `told` is called with the number
// of repeats that are done. A signal ends the series early, maybe before its first measurement.
struct Compared {
    Timing work, ceiling;
    double ratio = 0;  // of the medians: 1 is as fast as the ceiling
};
Compared time_against(int repeats, const std::function<void()>& work, const std::function<void()>& ceiling,
                      const std::function<void(int)>& told = {});

nlohmann::json bench_cast(const BenchOptions& options, const Globals& globals, bool json);
nlohmann::json bench_gemm(const BenchOptions& options, const Globals& globals, bool json);
void bench_grid(const BenchOptions& options, bool json);  // of bench gemm
nlohmann::json bench_accumulate(const BenchOptions& options, const Globals& globals, bool json);
nlohmann::json bench_gpu_casts(const BenchOptions& options, Backend& backend, bool json);
nlohmann::json bench_ui(const BenchOptions& options, const Globals& globals, bool json);
nlohmann::json bench_blocks(const BenchOptions& options, const Globals& globals, bool json);
nlohmann::json bench_infer(const BenchOptions& options, const Globals& globals, bool json);
nlohmann::json bench_infer_gpu(Backend& backend, const BenchOptions& options, bool json);
nlohmann::json bench_comm(const BenchOptions&, const Globals&, bool json);
nlohmann::json bench_step(const BenchOptions& options, const Globals& globals, bool json);

}  // namespace fp8lab::cli
