// bench blocks: the blocks of a transformer on a GPU, forward, backward and update, in every recipe.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>

#include "app/cli/bench/bench.h"
#include "app/cli/bench/bench_step.h"
#include "core/base/error.h"
#include "core/base/units.h"

namespace fp8lab::cli {
namespace {

// Options of the transformer, and what --help of bench calls them.
constexpr std::array<const char*, 5> kSizes = {"d", "heads", "ffn", "context", "blocks"},
                                     kNames = {"D", "HEADS", "FFN", "CONTEXT", "BLOCKS"};

// A size that the model refuses is named as --shape has it.
TrainSpec spec_of(const TrainOptions& train) {
    try {
        return make_train_spec(train);
    } catch (const Error& error) {
        std::string why = error.why();
        for (std::size_t i = 0; i < kSizes.size(); ++i)
            if (const std::string option = std::string("--") + kSizes[i] + " "; why.find(option) != why.npos)
                why.replace(why.find(option), option.size(), std::string(kNames[i]) + " ");
        for (std::size_t i = 0; i < kSizes.size(); ++i)
            if (error.where() == std::string("--") + kSizes[i])
                throw Error(error.kind(), "--shape", fmt::format("{}: {}", kNames[i], why));
        throw;
    }
}

// whole: of a training of steps, with as many tokens as the text has, but from no text: it is never written.
TrainSpec blocks_spec(const BenchOptions& options, bool whole = false) {
    const std::vector<int> shape =
        parse_layers(options.shape.empty() ? "1024,16,2816,1024,4" : options.shape);
    if (shape.size() != kSizes.size())
        throw usage_error("--shape", "'" + options.shape + "' is not D,HEADS,FFN,CONTEXT,BLOCKS");
    TrainOptions train;
    train.model = "transformer";
    for (std::size_t i = 0; i < kSizes.size(); ++i) train.sizes[kSizes[i]] = shape[i];
    train.batch = options.batch > 0 ? options.batch : 8;
    train.recipes = !options.recipe.empty() ? options.recipe
                    : whole                 ? "bf16,delayed"
                                            : "bf16,delayed,current,rowwise";
    if (whole) train.steps = 1 << 20;
    set_devices(train, options);
    if (whole) train.task = fmt::format("zipf:{}", spec_of(train).vocabulary);
    TrainSpec spec = spec_of(train);
    spec.clip = 0;
    if (options.state != "fp32" && options.state != "bf16")
        throw usage_error("--state", "'" + options.state + "' is neither fp32 nor bf16");
    if (options.state == "bf16") spec.state = StateType::bf16;
    return spec;
}

}  // namespace

nlohmann::json bench_blocks_devices(Backend& backend, const BenchOptions& options, bool json) {
    TrainSpec spec;
    nlohmann::json out = time_devices(
        backend, options, [&](const BenchOptions& of) { return spec = blocks_spec(of, true); }, json);
    out["bench"] = "transformer";
    out["sizes"] = spec.sizes;
    out["vocabulary"] = spec.vocabulary;
    return out;
}

nlohmann::json bench_blocks(const BenchOptions& options, const Globals&, bool json) {
    if (!options.devices.empty()) return bench_blocks_devices(*first_backend(options).backend, options, json);
    constexpr int kRepeats = 21;
    const ChosenBackend chosen = choose_backend(options.backend);
    const TrainSpec spec = blocks_spec(options);
    const DeviceInfo device = chosen.backend->device();
    const auto times = chosen.backend->time_blocks(spec, options.repeat > 0 ? options.repeat : kRepeats);
    nlohmann::json out = json_header(device, spec.seed);
    out["bench"] = "blocks";
    out["date"] = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::now()));
    out["batch"] = spec.batch;
    out["sizes"] = spec.sizes;
    out["state"] = options.state;
    if (!json)
        fmt::print("{}\n{:<24}{:>10}{:>10}{:>9}  {}\n", device.name, "recipe", "ms", "IQR", "GB",
                   "attention, parts");
    for (const BlockTimes& arm : times) {
        nlohmann::json row = {
            {"recipe", arm.recipe},      {"median_ms", arm.median_ms}, {"iqr_ms", arm.q3_ms - arm.q1_ms},
            {"q1_ms", arm.q1_ms},        {"q3_ms", arm.q3_ms},         {"memory_bytes", arm.memory_bytes},
            {"attention", arm.attention}};
        std::string parts = arm.attention;
        for (const auto& [name, ms] : arm.parts) {
            row["parts_ms"][name] = ms;
            parts += fmt::format(", {} {:.3f}", name, ms);
        }
        out["arms"].push_back(std::move(row));
        if (!json)
            fmt::print("{:<24}{:>10.3f}{:>10.3f}{:>9.2f}  {}\n", arm.recipe, arm.median_ms,
                       arm.q3_ms - arm.q1_ms, arm.memory_bytes / 1e9, parts);
    }
    return out;
}

}  // namespace fp8lab::cli
