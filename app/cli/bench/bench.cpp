#include "app/cli/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "app/cli/option_values.h"
#include "core/backend/infer_case.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/nn/streams.h"

namespace fp8lab::cli {
namespace {

constexpr std::array kKinds = {
    BenchKind{"cast",
              "float32 to E4M3 on one thread against memcpy; every cast of a step on a GPU against a copy",
              bench_cast, "--shape"},
    BenchKind{"gemm", "products in BF16 and every FP8 mode, on a GPU", bench_gemm,
              "--shape --grid --seconds"},
    BenchKind{"accumulate", "what fast FP8 accumulation loses, on a GPU", bench_accumulate},
    BenchKind{"ui", "the window: first frame, frames, slider to pixel, idle, training beside it", bench_ui},
    BenchKind{"blocks", "the blocks of a transformer, forward, backward and update, on a GPU", bench_blocks,
              "--shape --batch --recipe --state --devices --shard --gather --sum"},
    BenchKind{"step", "a training step in every recipe, against the FP32 step", bench_step,
              "--layers --batch --recipe --state --sweep --brief --accumulate --accumulate-in --devices "
              "--shard --gather --sum"},
    BenchKind{"infer", "the layers of a transformer that is served, token by token, on a GPU", bench_infer,
              "--shape --batch --tokens --weights --kv"},
    BenchKind{"comm", "what several GPUs exchange, through NCCL", bench_comm, "--devices"},
};

const BenchKind& find_kind(std::string_view name) {
    const auto kind =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const BenchKind& k) { return k.name == name; });
    if (kind == kKinds.end())
        throw unknown_name("bench", "kind", name, kKinds, [](const BenchKind& k) { return k.name; });
    return *kind;
}

void add_options(CLI::App& verb, BenchOptions& options) {
    verb.add_option("--backend", options.backend, "auto, cpu or cuda");
    verb.add_option("--shape", options.shape,
                    "gemm: M,N,K; cast on a GPU: ROWS,COLS; blocks: D,HEADS,FFN,CONTEXT,BLOCKS; infer: "
                    "D,HEADS,KV,FFN,CONTEXT,LAYERS");
    verb.add_option("--layers", options.layers, "step: d0,...,dn");
    verb.add_option("--batch", options.batch, "step: rows of a batch; blocks, infer: sequences")
        ->check(whole("--batch", 1, 1 << 20));
    verb.add_option("--tokens", options.tokens, "infer: of each sequence, read at once; 1")
        ->check(whole("--tokens", 1, 1 << 20));
    verb.add_option("--weights", options.weights, "infer: " + served_weights_names() + "; bf16");
    verb.add_option("--kv", options.kv, "infer: keys and values in " + served_cache_names() + "; bf16");
    verb.add_option("--accumulate", options.accumulate,
                    "step on a GPU: micro-batches of the batch, against as many steps of one with one update")
        ->check(whole("--accumulate", 1, kMostMicroBatches));
    verb.add_option("--accumulate-in", options.accumulate_in, "step --accumulate: fp32 or bf16; fp32");
    verb.add_option(
        "--devices", options.devices,
        "step, blocks, comm: GPUs, e.g. 0,1 or all; --batch is that of each, beside one GPU alone");
    verb.add_option("--shard", options.shard, "--devices: none or zero1; zero1");
    verb.add_option("--gather", options.gather, "--devices: bf16 or e4m3; bf16");
    verb.add_option("--sum", options.sum, "--devices: bf16 or fp32; bf16");
    verb.add_option("--recipe", options.recipe, "step, blocks: R[,R...]");
    verb.add_option("--state", options.state,
                    "step: fp32, or bf16: weights and moments of recipe bf16 without FP32 master, on a GPU");
    verb.add_flag("--sweep", options.sweep, "step: from which size on FP8 is faster, on a GPU");
    verb.add_flag(
        "--brief", options.brief,
        "step on a GPU: the steps alone, without this card's ceilings and without a hand on the sliders");
    verb.add_flag(
        "--grid", options.grid,
        "gemm: products of layers over M, N, K and their casts, for a recording; two to three minutes");
    verb.add_option("--seconds", options.seconds, "gemm --grid: begins nothing new after that; 300")
        ->check(CLI::Range(1.0, 3600.0));
    verb.add_option("--repeat", options.repeat, "measurements of each timing")
        ->check(whole("--repeat", 1, 10000));
}

}  // namespace

Timing summarize(std::vector<double> ms) {
    std::sort(ms.begin(), ms.end());
    // Linear interpolation between the two observations around the quantile.
    const auto quantile = [&](double q) {
        const double place = q * static_cast<double>(ms.size() - 1);
        const auto below = static_cast<std::size_t>(place);
        const std::size_t above = std::min(below + 1, ms.size() - 1);
        return ms[below] + (place - static_cast<double>(below)) * (ms[above] - ms[below]);
    };
    if (ms.empty()) return {};
    return {quantile(0.5), quantile(0.25), quantile(0.75), static_cast<int>(ms.size())};
}

nlohmann::json to_json(const Timing& timing) {
    return {{"median_ms", timing.median_ms},
            {"iqr_ms", timing.q3_ms - timing.q1_ms},
            {"repeats", timing.repeats}};
}

double time_ms(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Compared time_against(int repeats, const std::function<void()>& work, const std::function<void()>& ceiling,
                      const std::function<void(int)>& told) {
    work();
    ceiling();
    std::vector<double> work_ms, ceiling_ms;
    for (int i = 0; i < repeats && !interrupted(); ++i) {
        if (told) told(i);
        work_ms.push_back(time_ms(work));
        ceiling_ms.push_back(time_ms(ceiling));
    }
    Compared compared{summarize(work_ms), summarize(ceiling_ms)};
    compared.ratio = compared.work.median_ms / compared.ceiling.median_ms;
    return compared;
}

void add_bench(CLI::App& app, Globals& globals) {
    struct Arguments {
        std::string kind;
        BenchOptions options;
        bool json = false;
    };
    const auto a = std::make_shared<Arguments>();
    CLI::App* verb = app.add_subcommand("bench", "Timings, with the ratio to this machine's ceiling");
    std::string names, kinds;
    for (const BenchKind& kind : kKinds) {
        names += fmt::format("{}{}", names.empty() ? "" : "|", kind.name);
        kinds += fmt::format("{}{}: {}", kinds.empty() ? "" : "; ", kind.name, kind.summary);
    }
    verb->add_option(names, a->kind, kinds)->required();
    add_options(*verb, a->options);
    verb->add_flag("--json", a->json, "as JSON");
    verb->callback([a, verb, &globals] {
        const BenchKind& kind = find_kind(a->kind);
        for (const std::string option :
             {"--shape", "--layers", "--batch", "--recipe", "--state", "--sweep", "--grid", "--seconds",
              "--brief", "--accumulate", "--accumulate-in", "--devices", "--shard", "--gather", "--sum",
              "--tokens", "--weights", "--kv"})
            if (verb->count(option) > 0 && kind.options.find(option) == kind.options.npos)
                throw usage_error("bench", fmt::format("{} takes no {}", kind.name, option));
        if (a->options.seconds > 0 && !a->options.grid)
            throw usage_error("--seconds", "it limits bench gemm --grid");
        choose_backend(
            a->options.backend);  // a kind that needs no backend refuses an unusable one all the same
        const nlohmann::json result = kind.run(a->options, globals, a->json);
        if (a->json && !result.is_null()) print_json(result);
        end_if_interrupted("; what was measured until then is printed");
    });
}

}  // namespace fp8lab::cli
