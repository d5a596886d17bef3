// bench gemm --grid: products of linear layers over M, N and K on a GPU (core/backend/gemm_grid.h).
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>

#include "app/cli/bench/bench.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/progress_line.h"

namespace fp8lab::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kMostDrift_pct = 5;

// What is measured, how much is done, and about how long it will take.
GridProgress told_progress(double most_seconds) {
    return [start = SteadyClock::now(), progress = std::make_shared<ProgressLine>(), most_seconds](
               const std::string& what, double done) {
        constexpr double kTells = 0.05;  // of the work, before which it says little about the rest
        if (progress->due()) {
            const double passed = std::chrono::duration<double>(SteadyClock::now() - start).count();
            const double left =
                std::max(0.0, std::min(passed * (1 - done) / std::max(done, 1e-6), most_seconds - passed));
            progress->at(fmt::format("{:3.0f} %  {}{}", 100 * done, what,
                                     done > kTells ? fmt::format(", about {:.0f} s left", left) : ""));
        }
        return !interrupted();
    };
}

std::string command_of(const BenchOptions& options) {
    std::string out = "fp8lab bench gemm --grid";
    if (options.seconds > 0) out += fmt::format(" --seconds {:g}", options.seconds);
    if (options.repeat > 0) out += fmt::format(" --repeat {}", options.repeat);
    return out + " --json";
}

std::string milliseconds(const GridPoint* point) {
    if (!point) return "-";
    return point->ran() ? format_number(point->median_ms) : fmt::format("refused ({})", point->status);
}

void print_roofs(const GemmGrid& grid) {
    fmt::print("copy of 1 GiB: {} TB/s; BF16 at best {} TFLOP/s", format_number(grid.roofs.memory_tb_s, 3),
               format_number(grid.roofs.bf16.tflops));
    if (grid.roofs.fp8.tflops > 0) fmt::print(", FP8 {} TFLOP/s", format_number(grid.roofs.fp8.tflops));
    if (grid.clocks.sm_mhz_median > 0)
        fmt::print("; SM clock {:.0f} MHz ({:.0f} to {:.0f})", grid.clocks.sm_mhz_median,
                   grid.clocks.sm_mhz_low, grid.clocks.sm_mhz_high);
    fmt::print("\n");
}

// fprop of every layer; everything else is in the JSON.
void print_grid(const GemmGrid& grid) {
    fmt::print("{}\n", grid.device);
    print_roofs(grid);
    fmt::print("fprop, ms\n{:>8}{:>8}{:>8}{:>12}{:>14}{:>14}{:>14}{:>14}{:>10}\n", "N", "K", "M", "bf16",
               "tensor-fast", "tensor", "row", "block128", "times");
    for (const auto& [n, k] : grid.recorded_layers())
        for (const int m : grid.recorded_m(n, k)) {
            const auto at = [&, n = n, k = k](std::string_view kind) {
                return grid.point("fprop", m, n, k, kind);
            };
            const GridPoint *bf16 = at("bf16"), *fp8 = at("tensor-fast");
            const bool both = bf16 && fp8 && bf16->ran() && fp8->ran();
            fmt::print("{:>8}{:>8}{:>8}{:>12}{:>14}{:>14}{:>14}{:>14}{:>10}\n", n, k, m, milliseconds(bf16),
                       milliseconds(fp8), milliseconds(at("tensor")), milliseconds(at("row")),
                       milliseconds(at("block128")),
                       both ? fmt::format("{:.2f}", bf16->median_ms / fp8->median_ms) : "-");
        }
    fmt::print("{} products, {} casts in {:.0f} s\n", grid.points.size(), grid.casts.size(), grid.seconds);
    for (const GridSkipped& skipped : grid.skipped)
        fmt::print("not measured: {} ({})\n", skipped.what, skipped.why);
}

}  // namespace

void bench_grid(const BenchOptions& options, bool json) {
    if (!options.shape.empty()) throw usage_error("bench gemm", "--grid takes no --shape: it has its own");
    const ChosenBackend chosen = choose_backend(options.backend);
    if (chosen.backend->device().provenance == Provenance::cpu_emulated)
        throw Error(ErrorKind::backend, "bench gemm --grid",
                    chosen.reason.empty() ? "measures a GPU; the backend here is the CPU"
                                          : "measures a GPU. " + chosen.reason);
    GridOptions grid_options;
    if (options.seconds > 0) grid_options.seconds = options.seconds;
    if (options.repeat > 0) grid_options.repeats = options.repeat;
    const Interruptible keeps;
    GemmGrid grid = chosen.backend->measure_grid(grid_options, told_progress(grid_options.seconds));
    grid.command = command_of(options);
    grid.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::now()));
    if (std::abs(grid.drift_pct) > kMostDrift_pct)
        tell(fmt::format(
            "the speed of this GPU changed by {:+.1f} % from start to end: measure again when it is "
            "not busy and not hot",
            grid.drift_pct));
    const DeviceInfo device = chosen.backend->device();
    if (!json) return print_grid(grid);
    write_stdout(gemm_grid_json(grid, fmt::format("\"provenance\":\"{}\",\"version\":\"{}\",\"seed\":0",
                                                  to_string(device.provenance), FP8LAB_VERSION)) +
                 "\n");
}

}  // namespace fp8lab::cli
