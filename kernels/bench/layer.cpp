// Measures one layer while a user waits for it (core/backend/layer_probe.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>

#include "core/base/error.h"
#include "kernels/bench/grid.h"
#include "kernels/bench/layer_operands.h"
#include "kernels/device/sensors.h"
#include "kernels/gemm/gemm_cache.h"

namespace fp8lab::cuda {
namespace {

using Clock = std::chrono::steady_clock;

void check_probe(const LayerProbe& p) {
    constexpr int kMost = 1 << 17, kMostGroups = 1024, kMostRepeats = 1000;
    const auto refuse = [](const std::string& why) { throw usage_error("measure", why); };
    for (const int size : {p.m, p.n, p.k})
        if (size < 1 || size > kMost) refuse(fmt::format("M, N and K are from 1 to {}", kMost));
    if (p.groups < 1 || p.groups > kMostGroups) refuse(fmt::format("groups are from 1 to {}", kMostGroups));
    if (p.repeats < 3 || p.repeats > kMostRepeats)
        refuse(fmt::format("repeats are from 3 to {}", kMostRepeats));
    if (const auto& known = grid_recipes(); std::ranges::find(known, p.recipe) == known.end())
        refuse(fmt::format("'{}' is none of the recipes {}", p.recipe, fmt::join(known, " ")));
}

// Operands and outputs of the largest product in BF16 and FP8, and the casts.
double bytes_needed(const LayerProbe& p, int m) {
    const double x = 1.0 * m * p.k, w = 1.0 * p.n * p.k, dy = 1.0 * m * p.n;
    constexpr double kOperand = 3, kCast = 4;  // BF16 and FP8; in, rows and columns
    const double products = kOperand * (std::max(x, dy) + std::max(w, x)),
                 outputs = std::max({2 * dy, 2 * x, 4 * w});
    return p.groups * (products + outputs) + kCast * std::max({x, w, dy});
}

void check_room(const LayerProbe& p) {
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    const auto room = static_cast<double>(available);
    if (bytes_needed(p, p.m) <= room) return;
    int fits = p.m;
    while (fits > 0 && bytes_needed(p, fits) > room) fits /= 2;
    throw Error(ErrorKind::backend, "GPU memory",
                fmt::format("M={}, N={}, K={} needs {:.1f} GB, {:.1f} of {:.1f} GB are free; {}", p.m, p.n,
                            p.k, bytes_needed(p, p.m) / 1e9, room / 1e9, static_cast<double>(total) / 1e9,
                            fits > 0 ? fmt::format("M={} fits", fits) : "no M fits"));
}

// When this process kept a GPU busy last: its own work is no sign of others.
std::mutex last_mutex;
Clock::time_point last_end{};

std::string busy_notice(const Sensors& sensors) {
    constexpr int kBusyPct = 15;
    constexpr auto kRemembered = std::chrono::seconds(2);
    {
        const std::lock_guard lock(last_mutex);
        if (Clock::now() - last_end < kRemembered) return "";
    }
    const int busy = sensors.utilisation();
    return busy >= kBusyPct
               ? fmt::format("The GPU was {} % busy before this measurement: others use it too.", busy)
               : "";
}

std::string slowed_notice(const GridClocks& clocks) {
    constexpr double kFell = 0.75;
    const std::string& by = clocks.slowed_by;
    if (by.find("heat") != by.npos || by.find("brake") != by.npos || by.find("slowdown") != by.npos)
        return fmt::format("The GPU slows itself down: {}.", by);
    if (clocks.sm_mhz_low > 0 && clocks.sm_mhz_low < kFell * clocks.sm_mhz_high)
        return fmt::format("The clock fell from {:.0f} to {:.0f} MHz.", clocks.sm_mhz_high,
                           clocks.sm_mhz_low);
    return "";
}

struct Measuring {
    const LayerProbe& probe;
    const LayerProgress& progress;
    Lt lt{};
    Stream stream{};
    LayerTimes times{};
    std::array<GridPoint, 2> now{};  // BF16 and FP8 of the product that is being measured
    std::vector<GridCast> cast_now{};
    double done = 0, share = 0;  // before the part that is being measured; of that part

    LayerTimes so_far() const {
        LayerTimes out = times;
        for (const GridPoint& point : now)
            if (point.ran() || point.status != 0) out.points.push_back(point);
        for (const GridCast& cast : cast_now)
            if (cast.ran()) out.casts.push_back(cast);
        return out;
    }
    AfterRound after() {
        return [this](double part) { return !progress || progress(so_far(), done + share * part); };
    }
    bool load();
    bool product(std::string_view name, OperandPool& pool);
    bool cast(const GridTensor& tensor, OperandPool& pool);
};

bool Measuring::load() {
    constexpr double kLoadSeconds = 0.5;
    constexpr int kRepeats = 10;
    share = 0.3;
    const auto start = Clock::now();
    Ceilings ceilings(lt, stream.get(), {"bf16", "tensor-fast"});
    const std::chrono::duration<double> spent = Clock::now() - start;
    constexpr double kMeasureSeconds = 0.05;
    ceilings.load(std::max(0.0, kLoadSeconds - spent.count() - kMeasureSeconds));
    GemmGrid grid;
    const bool whole = ceilings.measure("start", kRepeats, after(), grid.ceilings);
    times.roofs = roofs_of(grid);
    done += share;
    return whole;
}

bool Measuring::product(std::string_view name, OperandPool& pool) {
    share = 0.2;
    const GridLayer layer = {probe.m, probe.n, probe.k};
    const std::array<GemmSpec, 2> specs = {layer_product(name, layer, "bf16", probe.fast_accum),
                                           layer_product(name, layer, probe.recipe, probe.fast_accum)};
    for (const GemmSpec& spec : specs) pool.of(spec, probe.groups);
    std::vector<Entry> entries;
    now = {};
    for (std::size_t i = 0; i < specs.size(); ++i) {
        GridPoint& point = now[i];
        point.product = name;
        point.kind = i == 0 ? "bf16" : kind_of(probe, name);
        point.out = specs[i].d == Element::f32 ? "f32" : "bf16";
        point.m = probe.m;
        point.n = probe.n;
        point.k = probe.k;
        Entry entry;
        entry.time = &point;
        entry.spec = lt_spec(specs[i], probe.groups);
        entry.on = pool.of(specs[i], probe.groups);
        if (probe.groups == 1) entry.known = gemm_cache().find(specs[i]);
        entry.wants_graph = true;
        entries.push_back(entry);
    }
    const bool whole = time_entries(entries, lt, probe.repeats, stream.get(), after());
    times = so_far();
    now = {};
    done += share;
    return whole;
}

bool Measuring::cast(const GridTensor& tensor, OperandPool& pool) {
    share = 0.1 / 3;
    cast_now.clear();
    const bool whole =
        time_casts_of(tensor, {probe.recipe}, pool, probe.repeats, stream.get(), after(), cast_now);
    times = so_far();
    cast_now.clear();
    done += share;
    return whole;
}

}  // namespace

LayerTimes measure_layer(const LayerProbe& probe, const LayerProgress& progress) {
    check_probe(probe);
    check_room(probe);
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    const Sensors sensors(device);
    Measuring measuring{probe, progress};
    if (std::string notice = busy_notice(sensors); !notice.empty())
        measuring.times.notices = {std::move(notice)};
    bool whole = measuring.load();
    OperandPool pool(measuring.stream.get(), probe.zeros);
    for (const std::string_view product : kGridProducts) whole = whole && measuring.product(product, pool);
    const std::array<GridTensor, 3> tensors = {{{"x", probe.m * probe.groups, probe.k},
                                                {"w", probe.n * probe.groups, probe.k},
                                                {"dy", probe.m * probe.groups, probe.n}}};
    for (const GridTensor& tensor : tensors) whole = whole && measuring.cast(tensor, pool);
    measuring.stream.wait();
    LayerTimes times = std::move(measuring.times);
    times.whole = whole;
    times.clocks = sensors.seen();
    if (std::string notice = slowed_notice(times.clocks); !notice.empty())
        times.notices.push_back(std::move(notice));
    const std::lock_guard lock(last_mutex);
    last_end = Clock::now();
    return times;
}

}  // namespace fp8lab::cuda
