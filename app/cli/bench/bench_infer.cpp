// bench infer: the layers of a transformer that is served, on a GPU, against what reading its weights and its cache takes.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>

#include "app/cli/bench/bench.h"
#include "app/cli/bench/parse_shape.h"
#include "core/backend/infer_case.h"
#include "core/base/error.h"
#include "core/base/units.h"

namespace fp8lab::cli {
namespace {

struct ShapeSize {
    std::string_view name;
    int InferCase::*at;
    int high;
};
constexpr std::array<ShapeSize, 6> kShapeSizes = {{{"D", &InferCase::d, 65536},
                                                   {"HEADS", &InferCase::heads, 1024},
                                                   {"KV", &InferCase::kv_heads, 1024},
                                                   {"FFN", &InferCase::ffn, 1 << 20},
                                                   {"CONTEXT", &InferCase::context, 1 << 20},
                                                   {"LAYERS", &InferCase::layers, 1024}}};

InferCase infer_case_of(const BenchOptions& options) {
    InferCase out;
    std::array<int, kShapeSizes.size()> shape{};
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = out.*kShapeSizes[i].at;
    shape = parse_shape(options.shape, shape, "D,HEADS,KV,FFN,CONTEXT,LAYERS");
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] > kShapeSizes[i].high)
            throw usage_error("--shape", fmt::format("{}: {} is not in 1..{}", kShapeSizes[i].name, shape[i],
                                                     kShapeSizes[i].high));
        out.*kShapeSizes[i].at = shape[i];
    }
    if (options.batch > 0) out.batch = options.batch;
    if (options.tokens > 0) out.tokens = options.tokens;
    if (!options.weights.empty()) out.formats.weights = find_served_weights(options.weights);
    if (!options.kv.empty()) out.formats.cache = find_served_cache(options.kv);
    check_infer_case(out);
    return out;
}

const InferPart& part_of(const InferTime& time, std::string_view name) {
    for (const InferPart& part : time.parts)
        if (part.name == name) return part;
    throw Error(ErrorKind::backend, "bench infer", fmt::format("the pass has no part '{}'", name));
}

// copy: bytes per ms.
void add_parts(const InferCase& of, const InferTime& time, double copy, nlohmann::json& out) {
    out["attention"] = time.attention;
    for (const InferPart& part : time.parts) {
        nlohmann::json one = {{"name", part.name},
                              {"per_layer_us", 1e3 * part.ms / of.layers},
                              {"gb_per_s", part.bytes / part.ms / 1e6}};
        if (part.flop > 0) one["tflop_per_s"] = part.flop / part.ms / 1e9;
        out["parts"].push_back(std::move(one));
    }
    const InferPart& memory = part_of(time, "memory-bound kernels");
    out["over_gemms_and_attention"] =
        time.median_ms / (part_of(time, "GEMMs").ms + part_of(time, "attention").ms);
    out["memory_bound_of_copy"] = memory.bytes / memory.ms / copy;
}

nlohmann::json to_json(const InferCase& of, const InferTime& time) {
    const double bytes = weight_bytes(of) + cache_bytes(of), copy = time.copy_bytes / time.copy_ms,
                 floor_ms = bytes / copy, tokens = of.batch * of.tokens;
    nlohmann::json out = {{"bench", "infer"},
                          {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::now()))},
                          {"batch", of.batch},
                          {"tokens", of.tokens},
                          {"weights", info_of(of.formats.weights).name},
                          {"kv", to_string(of.formats.cache)},
                          {"median_ms", time.median_ms},
                          {"iqr_ms", time.q3_ms - time.q1_ms},
                          {"q1_ms", time.q1_ms},
                          {"q3_ms", time.q3_ms},
                          {"repeats", time.repeats},
                          {"per_layer_us", 1e3 * time.median_ms / of.layers},
                          {"weight_bytes", weight_bytes(of)},
                          {"cache_bytes", cache_bytes(of)},
                          {"bytes", bytes},
                          {"gb_per_s", bytes / time.median_ms / 1e6},
                          {"copy_gb_per_s", copy / 1e6},
                          {"floor_ms", floor_ms},
                          {"ratio_to_floor", time.median_ms / floor_ms},
                          {"tokens_per_s", 1e3 * tokens / time.median_ms},
                          {"memory_bytes", time.memory_bytes}};
    for (const ShapeSize& size : kShapeSizes) out["shape"].push_back(of.*size.at);
    if (!time.parts.empty()) add_parts(of, time, copy, out);
    return out;
}

void print_parts(const nlohmann::json& out) {
    fmt::print("parts, each alone; attention: {}\n", out.at("attention").get<std::string>());
    for (const nlohmann::json& part : out.at("parts")) {
        fmt::print("  {:<22} {:>8} us a layer, {:>6} GB/s", part.at("name").get<std::string>(),
                   format_number(part.at("per_layer_us").get<double>(), 4),
                   format_number(part.at("gb_per_s").get<double>(), 4));
        if (part.contains("tflop_per_s"))
            fmt::print(", {:>6} TFLOP/s", format_number(part.at("tflop_per_s").get<double>(), 4));
        fmt::print("\n");
    }
    fmt::print(
        "the pass is {} times its GEMMs and attention; its kernels bound by memory reach {} of the copy\n",
        format_number(out.at("over_gemms_and_attention").get<double>(), 4),
        format_number(out.at("memory_bound_of_copy").get<double>(), 3));
}

void print_infer(const InferCase& of, const nlohmann::json& out) {
    const auto number = [&](const char* name, int digits = 4) {
        return format_number(out.at(name).get<double>(), digits);
    };
    fmt::print("{}\n", out.at("device").get<std::string>());
    fmt::print(
        "{} layers of {}, heads {}/{}, ffn {}, context {}; batch {}, tokens {}; weights {}, cache {}\n",
        of.layers, of.d, of.heads, of.kv_heads, of.ffn, of.context, of.batch, of.tokens,
        info_of(of.formats.weights).name, to_string(of.formats.cache));
    fmt::print("a pass           {:>10} ms (IQR {}, {} replays), {} us a layer\n", number("median_ms"),
               number("iqr_ms", 2), out.at("repeats").get<int>(), number("per_layer_us"));
    fmt::print("must be read     {:>10} GB: weights {}, cache {}\n",
               format_number(out.at("bytes").get<double>() / 1e9, 4),
               format_number(out.at("weight_bytes").get<double>() / 1e9, 4),
               format_number(out.at("cache_bytes").get<double>() / 1e9, 4));
    fmt::print("floor            {:>10} ms at the copy's {} GB/s; {} times that\n", number("floor_ms"),
               number("copy_gb_per_s"), number("ratio_to_floor"));
    fmt::print("tokens/s         {:>10} without embedding and head\n", number("tokens_per_s"));
    if (out.contains("parts")) print_parts(out);
}

}  // namespace

nlohmann::json bench_infer_gpu(Backend& backend, const BenchOptions& options, bool json) {
    constexpr int kRepeats = 50;
    const InferCase of = infer_case_of(options);
    const InferTime time = backend.time_infer(of, options.repeat > 0 ? options.repeat : kRepeats);
    const DeviceInfo device = backend.device();
    nlohmann::json out = json_header(device);
    out.update(to_json(of, time));
    for (const auto& [name, fact] : device.facts) out["facts"][name] = fact;
    if (!json) print_infer(of, out);
    return out;
}

nlohmann::json bench_infer(const BenchOptions& options, const Globals&, bool json) {
    infer_case_of(options);  // what cannot be meant is refused without a GPU too
    return bench_infer_gpu(*choose_backend(options.backend).backend, options, json);
}

}  // namespace fp8lab::cli
