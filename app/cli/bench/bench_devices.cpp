// Benches of several GPUs: bench comm, and bench step --devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/cli/bench/bench_step.h"
#include "app/cli/preparing.h"
#include "app/cli/train/train_options.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"

namespace fp8lab::cli {
namespace {

using Json = nlohmann::json;

constexpr int kCommRepeats = 25;

// Throws usage_error where there are no two.
std::vector<int> several_devices(const BenchOptions& options, const Backend& backend) {
    std::vector<int> devices =
        parse_devices(options.devices.empty() ? "all" : options.devices, backend.devices());
    if (devices.size() < 2)
        throw Error(ErrorKind::backend, "--devices",
                    fmt::format("{} GPU{}; two or more exchange something", devices.size(),
                                devices.size() == 1 ? "" : "s"));
    return devices;
}

// 4 KiB to 512 MiB.
std::vector<double> usual_sizes() {
    std::vector<double> sizes;
    for (double bytes = 4096; bytes <= 536870912; bytes *= 8) sizes.push_back(bytes);
    for (const double bytes : {134217728.0, 268435456.0, 536870912.0})
        if (std::ranges::find(sizes, bytes) == sizes.end()) sizes.push_back(bytes);
    std::ranges::sort(sizes);
    return sizes;
}

// What each link carries, as NCCL's tests define bus bandwidth: a ring moves (n - 1) / n of the tensor in each direction.
double bus_gbs(const CollectiveTime& time, std::size_t gpus) {
    const double n = static_cast<double>(gpus), ways = time.op == "all_reduce_max" ? 2 : 1;
    return ways * time.bytes * (n - 1) / n / time.median_ms / 1e6;
}

// One launch after another, as bench step does; arms of one trainer alternate.
std::vector<ArmCost> costs_of(Backend& backend, const TrainSpec& spec, int launches) {
    const auto trainer = backend.make_trainer(spec, told_on_stderr());
    constexpr int kWarmUp = 50;  // the breakdown of a step comes in it
    for (int i = 0; i < kWarmUp && !interrupted(); ++i) trainer->step();
    trainer->snapshot();
    for (int i = 0; i < launches && !interrupted(); ++i) trainer->step();
    std::vector<ArmCost> costs;
    for (const ArmSnapshot& arm : trainer->snapshot().arms) {
        if (!arm.cost) end_if_interrupted("before the first measurement");
        if (arm.stopped) throw Error(ErrorKind::failed, "bench step", to_string(*arm.stopped));
        costs.push_back(arm.cost.value());
    }
    return costs;
}

Json device_parts(const ArmCost& cost) {
    Json parts = Json::object();
    for (const auto& [name, ms] : cost.parts) parts[name] = ms;
    parts["network, all of it"] = cost.network_ms;
    parts["network shown"] = cost.network_shown_ms;
    return parts;
}

}  // namespace

ChosenBackend first_backend(const BenchOptions& options) {
    const bool named = !options.devices.empty() && options.devices != "all";
    return choose_for(options.backend == "auto" ? "cuda" : options.backend,
                      named ? parse_devices(options.devices, 0) : std::vector<int>{});
}

Json bench_comm(const BenchOptions& options, const Globals&, bool json) {
    const ChosenBackend chosen = first_backend(options);
    const std::vector<int> devices = several_devices(options, *chosen.backend);
    const DeviceInfo device = chosen.backend->device();
    const auto times = chosen.backend->time_collectives(devices, usual_sizes(),
                                                        options.repeat > 0 ? options.repeat : kCommRepeats);
    Json out = json_header(device);
    out["bench"] = "comm";
    out["gpus"] = devices.size();
    out["ops"] = Json::array();
    if (!json)
        fmt::print("{} GPUs: {}\n{:<18}{:<8}{:>14}{:>12}{:>10}{:>12}\n", devices.size(), device.name,
                   "operation", "type", "bytes", "ms", "IQR", "bus GB/s");
    for (const CollectiveTime& time : times) {
        out["ops"].push_back({{"op", time.op},
                              {"dtype", time.type},
                              {"bytes", time.bytes},
                              {"median_ms", time.median_ms},
                              {"iqr_ms", time.q3_ms - time.q1_ms},
                              {"bus_gbs", bus_gbs(time, devices.size())}});
        if (!json)
            fmt::print("{:<18}{:<8}{:>14.0f}{:>12}{:>10}{:>12}\n", time.op, time.type, time.bytes,
                       format_number(time.median_ms), format_number(time.q3_ms - time.q1_ms, 2),
                       format_number(bus_gbs(time, devices.size())));
    }
    return out;
}

void set_devices(TrainOptions& train, const BenchOptions& options) {
    if (options.devices.empty()) {
        if (!(options.shard.empty() && options.gather.empty() && options.sum.empty()))
            throw usage_error("bench", "--shard, --gather and --sum belong to --devices");
        return;
    }
    train.devices = parse_devices(options.devices, 0);
    train.shard = options.shard.empty() ? "zero1" : options.shard;
    train.gather = options.gather;
    train.sum = options.sum;
}

Json time_devices(Backend& backend, const BenchOptions& options, const SpecOf& spec_of, bool json) {
    const std::vector<int> devices = several_devices(options, backend);
    const int launches = options.repeat > 0 ? options.repeat : 60;
    BenchOptions single = options, all = options;
    single.devices = single.shard = single.gather = single.sum = "";
    all.devices = fmt::format("{}", fmt::join(devices, ","));
    const TrainSpec one = spec_of(single), many = spec_of(all);
    const Interruptible keeps;
    const auto alone = costs_of(backend, one, launches), together = costs_of(backend, many, launches);
    const DeviceInfo device = backend.device();
    const int rows = one.model == "mlp" ? one.batch : one.batch * one.sizes.at("context");
    Json out = json_header(device, many.seed);
    out["gpus"] = devices.size();
    out["rows"] = rows;
    out["state"] = options.state;
    out["shard"] = to_string(many.ranks.shard);
    out["sum"] = many.ranks.sum;
    out["arms"] = Json::array();
    if (!json)
        fmt::print(
            "{} GPUs: {}; {} rows each, shard {}, sum {}\n{:<20}{:>8}{:>10}{:>10}{:>10}{:>10}{:>12}{:>10}\n",
            devices.size(), device.name, rows, to_string(many.ranks.shard), many.ranks.sum, "recipe",
            "gather", "1 GPU ms", "ms/step", "IQR", "weak", "net shown", "memory");
    for (std::size_t arm = 0; arm < together.size(); ++arm) {
        const ArmCost &now = together[arm], &before = alone[arm];
        const std::string name = many.arms[arm].name;
        const bool sharded = many.ranks.sharded();
        const std::string gather = !sharded ? "-" : std::string(sent_format(many.ranks, many.arms[arm]).name);
        Json row = {{"recipe", name},
                    {"gather", gather},
                    {"median_ms", now.step_ms},
                    {"iqr_ms", now.step_q3_ms - now.step_q1_ms},
                    {"one_gpu_ms", before.step_ms},
                    {"weak_scaling", before.step_ms / now.step_ms},
                    {"memory_bytes", now.memory_bytes},
                    {"parts_ms", device_parts(now)}};
        if (!json)
            fmt::print("{:<20}{:>8}{:>10}{:>10}{:>10}{:>10}{:>12}{:>10}\n", name, gather,
                       format_number(before.step_ms), format_number(now.step_ms),
                       format_number(now.step_q3_ms - now.step_q1_ms, 2),
                       format_number(before.step_ms / now.step_ms, 3), format_number(now.network_shown_ms, 3),
                       format_bytes(static_cast<std::uint64_t>(now.memory_bytes)));
        out["arms"].push_back(std::move(row));
    }
    return out;
}

}  // namespace fp8lab::cli
