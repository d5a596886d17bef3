// What was recorded on several GPUs: files among assets/recordings and its folders, each with the head of a recording
// (core/backend/recording.h). A file that is added there is read.
//
//   {"bench": "comm", "gpus": 4, "ops": [{"op": "reduce_scatter", "dtype": "bf16", "bytes": 268435456, "median_ms": 0.69}]}
//   {"bench": "ddp", "gpus": 4, "layers": [4096, 16384, 4096], "rows": 8192, "shard": "zero1", "sum": "bf16",
//    "arms": [{"recipe": "delayed", "gather": "e4m3", "median_ms": 5.6, "one_gpu_ms": 5.9, "parts_ms": {...}}],
//    "peer_ms": {"ddp": 10.2}}
//
// `bytes` is the size of the whole tensor. A "ddp" has arms of `fp8lab bench step --devices`, times of PyTorch under "peer_ms", or
// both.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab::gpus {

struct RecordedOp {
    std::string op, dtype;  // "all_gather", "reduce_scatter", "all_reduce"; "bf16", "fp32", "uint8"
    double bytes = 0, median_ms = 0;
};
struct RecordedComm {
    std::string gpu, date;
    int gpus = 0;
    std::vector<RecordedOp> ops;
};
struct RecordedDdp {  // one arm, or the peers
    std::string gpu, date;
    int gpus = 0, rows = 0;
    std::string layers;                                          // "4096-16384-4096"
    std::string recipe = {}, gather = {}, sum = {}, shard = {};  // of an arm
    std::optional<double> median_ms = {};                        // of an arm
    double one_gpu_ms = 0;                                       // the same on one GPU
    std::map<std::string, double> parts_ms = {}, peer_ms = {};
};
struct Recorded {
    std::vector<RecordedComm> comm;  // by GPUs
    std::vector<RecordedDdp> ddp;    // by GPUs
    std::string problem;             // why one file cannot be read; empty: all were
};

// Adds the results of the kinds above; others are not looked at. Throws input_error(where): not JSON, a member that is
// missing or of a wrong type, a time or a size that is not above 0.
void add_recorded(std::string_view json, const std::string& where, Recorded& out);

// Of all files, read once for each folder of assets.
std::shared_ptr<const Recorded> recorded();

}  // namespace fp8lab::gpus
