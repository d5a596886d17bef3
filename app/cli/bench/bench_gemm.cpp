// bench gemm, bench accumulate, and bench cast on a GPU: what the backend measured, as a table and as JSON.
#include <fmt/format.h>

#include <array>

#include "app/cli/bench/bench.h"
#include "app/cli/bench/parse_shape.h"
#include "core/backend/backend.h"
#include "core/base/units.h"

namespace fp8lab::cli {
namespace {

constexpr int kGemmRepeats = 30;

nlohmann::json to_json(const Timed& line) {
    nlohmann::json row = {{"name", line.name}};
    if (!line.refusal.empty()) {
        row["refusal"] = line.refusal;
        return row;
    }
    row["median_ms"] = line.median_ms;
    row["iqr_ms"] = line.q3_ms - line.q1_ms;
    row["repeats"] = line.repeats;
    if (line.flop > 0) row["flop"] = line.flop, row["tflops"] = line.flop / line.median_ms / 1e9;
    if (line.bytes > 0) row["bytes"] = line.bytes, row["gb_per_s"] = line.bytes / line.median_ms / 1e6;
    if (!line.kernel.empty()) row["kernel"] = line.kernel;
    return row;
}

double speed(const Timed& line) { return (line.flop > 0 ? line.flop : line.bytes) / line.median_ms; }

// The first line is the ceiling.
nlohmann::json report(const char* bench, const DeviceInfo& device, const std::vector<Timed>& lines,
                      bool json) {
    nlohmann::json out = json_header(device);
    out["bench"] = bench;
    for (const auto& [name, fact] : device.facts) out["facts"][name] = fact;
    if (!json) {
        const bool products = lines.front().flop > 0;
        fmt::print("{}\n{:<44}{:>10}{:>10}{:>10}{:>12}  {}\n", device.name, "", "ms", "IQR",
                   products ? "TFLOP/s" : "GB/s", "of ceiling", products ? "kernel" : "");
    }
    for (const Timed& line : lines) {
        nlohmann::json row = to_json(line);
        const double ratio = speed(line) / speed(lines.front());
        if (line.refusal.empty()) row["ratio_to_ceiling"] = ratio;
        out["lines"].push_back(std::move(row));
        if (json) continue;
        if (!line.refusal.empty())
            fmt::print("{:<44}{}\n", line.name, line.refusal);
        else
            fmt::print("{:<44}{:>10}{:>10}{:>10}{:>11.1f}%  {}\n", line.name, format_number(line.median_ms),
                       format_number(line.q3_ms - line.q1_ms),
                       format_number(speed(line) / (line.flop > 0 ? 1e9 : 1e6)), 100 * ratio, line.kernel);
    }
    return out;
}

}  // namespace

nlohmann::json bench_gemm(const BenchOptions& options, const Globals&, bool json) {
    if (options.grid) {
        bench_grid(options, json);
        return nullptr;
    }
    constexpr int kSize = 8192;
    const auto shape = parse_shape<3>(options.shape, {kSize, kSize, kSize}, "M,N,K");
    const ChosenBackend chosen = choose_backend(options.backend);
    const auto lines =
        chosen.backend->time_products(shape, options.repeat > 0 ? options.repeat : kGemmRepeats);
    nlohmann::json out = report("gemm", chosen.backend->device(), lines, json);
    out["shape"] = shape;
    return out;
}

nlohmann::json bench_gpu_casts(const BenchOptions& options, Backend& backend, bool json) {
    const auto shape = parse_shape<2>(options.shape, {8192, 16384}, "ROWS,COLS");
    const auto lines = backend.time_casts(shape, options.repeat > 0 ? options.repeat : kGemmRepeats);
    nlohmann::json out = report("cast", backend.device(), lines, json);
    out["shape"] = shape;
    return out;
}

nlohmann::json bench_accumulate(const BenchOptions& options, const Globals&, bool json) {
    const ChosenBackend chosen = choose_backend(options.backend);
    const auto errors = chosen.backend->accumulation_errors();
    nlohmann::json out = json_header(chosen.backend->device());
    out["bench"] = "accumulate";
    if (!json)
        fmt::print(
            "{}\nE4M3 x E4M3 to FP32, 256 x 256 outputs, against float64 over the same FP8 "
            "values\n{:<10}{:>8}  {:<6}{:>14}{:>14}\n",
            chosen.backend->device().name, "data", "K", "fast", "relative rms", "relative bias");
    for (const AccumulationError& e : errors) {
        out["lines"].push_back({{"data", e.data},
                                {"k", e.k},
                                {"fast", e.fast},
                                {"rel_rms", e.rel_rms},
                                {"rel_bias", e.rel_bias}});
        if (!json)
            fmt::print("{:<10}{:>8}  {:<6}{:>14.2e}{:>14.2e}\n", e.data, e.k, e.fast ? "yes" : "no",
                       e.rel_rms, e.rel_bias);
    }
    return out;
}

}  // namespace fp8lab::cli
