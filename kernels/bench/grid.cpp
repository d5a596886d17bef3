// The grid of `bench gemm --grid`: a list of units, the most wanted first, each of them measured until the time is
// over or the caller stops it.
#include "kernels/bench/grid.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "core/base/error.h"
#include "kernels/bench/grid_units.h"
#include "kernels/device/sensors.h"

namespace fp8lab::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// A CUDA error that no later call recovers from.
bool is_dead(cudaStream_t stream) {
    const bool dead = cudaStreamSynchronize(stream) != cudaSuccess;
    cudaGetLastError();
    return dead;
}

// What was not measured of a section, as one line: the first that is missing, and how many.
class Missing {
  public:
    void add(const GridUnit& unit, const std::string& why) {
        if (count_ > 0 && (unit.section != section_ || why != why_)) flush();
        if (count_++ == 0) {
            section_ = unit.section;
            first_ = unit.what;
            why_ = why;
        }
    }
    std::vector<GridSkipped> all() {
        flush();
        return std::move(lines_);
    }

  private:
    void flush() {
        if (count_ == 1) lines_.push_back({fmt::format("{}: {}", section_, first_), why_});
        if (count_ > 1) lines_.push_back({fmt::format("{}: {} from {} on", section_, count_, first_), why_});
        count_ = 0;
    }
    std::vector<GridSkipped> lines_;
    std::string section_, first_, why_;
    int count_ = 0;
};

// The ceiling whose median changed most, in %.
double drift_of(const std::vector<GridCeiling>& ceilings) {
    double drift = 0;
    for (const GridCeiling& start : ceilings)
        for (const GridCeiling& end : ceilings) {
            if (start.what != end.what || start.when != "start" || end.when != "end") continue;
            if (!start.ran() || !end.ran()) continue;
            const double change = 100 * (start.median_ms / end.median_ms - 1);  // of the speed
            if (std::abs(change) > std::abs(drift)) drift = change;
        }
    return drift;
}

}  // namespace

GemmGrid measure_grid(const GridOptions& options, const GridProgress& progress) {
    const auto start = Clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    const Sensors sensors(device);
    const Stream stream;
    const Lt lt;
    GemmGrid grid;
    bool stopped = false;
    double done = 0, all = 0;
    const auto go = [&](const std::string& what) {
        if (!stopped && progress && !progress(what, all > 0 ? done / all : 0)) stopped = true;
        return !stopped;
    };

    go("8192^3 and a copy of 1 GiB");
    std::string now;
    const AfterRound after = [&](double) { return go(now); };
    Ceilings ceilings(lt, stream.get(), {kGridCeilings.begin(), kGridCeilings.end()});
    constexpr double kLoadSeconds = 0.5;
    ceilings.load(kLoadSeconds);
    ceilings.measure("start", options.repeats, after, grid.ceilings);

    GridBench bench{grid, lt, stream.get(), options.repeats, after};
    const std::vector<GridUnit> units = grid_units(bench);
    for (const GridUnit& unit : units) all += unit.cost;
    Missing missing;
    std::string broken;
    for (const GridUnit& unit : units) {
        now = unit.section + ": " + unit.what;
        if (!broken.empty()) {
            missing.add(unit, broken);
        } else if (!go(now)) {
            missing.add(unit, "stopped");
        } else if (passed() > options.seconds) {
            missing.add(unit, fmt::format("the time limit of {:g} s", options.seconds));
        } else {
            try {
                unit.measure();
            } catch (const Error& error) {  // too large for this card, say: the others are worth measuring
                missing.add(unit, error.what());
                if (is_dead(stream.get())) broken = fmt::format("the GPU stopped working: {}", error.what());
            }
            if (stopped) missing.add(unit, "stopped");
        }
        done += unit.cost;
    }
    if (broken.empty() && !stopped) ceilings.measure("end", options.repeats, after, grid.ceilings);
    grid.skipped = missing.all();
    grid.drift_pct = drift_of(grid.ceilings);
    grid.clocks = sensors.seen();
    grid.roofs = roofs_of(grid);
    grid.seconds = passed();
    return grid;
}

}  // namespace fp8lab::cuda
