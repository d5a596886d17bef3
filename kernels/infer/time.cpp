#include "kernels/infer/time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "kernels/bench/copy.h"
#include "kernels/bench/turns.h"
#include "kernels/device/graph.h"
#include "kernels/device/random_fill.h"
#include "kernels/infer/decode_memory.h"
#include "kernels/prefill/pass_time.h"

namespace fp8lab::cuda {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{1} << 30;  // read, and as many written

PassWeights pass_weights(ServedWeights weights) {
    switch (weights) {
        case ServedWeights::bf16:
            return PassWeights::bf16;
        case ServedWeights::e4m3:
            return PassWeights::e4m3_tensor;
        case ServedWeights::e4m3_row:
            return PassWeights::e4m3_row;
        case ServedWeights::weight_only:
            break;
    }
    throw usage_error("--weights",
                      fmt::format("{} is for one token of up to {} sequences: GEMMs of more rows "
                                  "multiply E4M3 by E4M3",
                                  info_of(weights).name, kMostDecodeTokens));
}

// More rows than one launch takes: GEMMs of cuBLASLt.
InferTime time_with_gemms(const InferCase& of, int repeats) {
    PassCase c;
    c.d = of.d, c.heads = of.heads, c.kv_heads = of.kv_heads, c.ffn = of.ffn, c.context = of.context;
    c.layers = of.layers, c.batch = of.batch, c.tokens = of.tokens;
    c.weights = pass_weights(of.formats.weights);
    c.cache = of.formats.cache == ServedCache::bf16 ? PassCache::bf16 : PassCache::e4m3;
    const PassTimes times = time_pass(c, repeats);
    const Timed &pass = times.line("pass"), &copy = times.line("copy");
    InferTime out = {.median_ms = pass.median_ms,
                     .q1_ms = pass.q1_ms,
                     .q3_ms = pass.q3_ms,
                     .repeats = pass.repeats,
                     .copy_ms = copy.median_ms,
                     .copy_bytes = copy.bytes,
                     .memory_bytes = times.memory_bytes,
                     .attention = times.attention};
    for (const Timed& line : times.lines)
        if (line.name != "pass" && line.name != "copy")
            out.parts.push_back({line.name, line.median_ms, line.bytes, line.flop});
    return out;
}

void fill_random_values(Memory& memory, bool bf16, std::uint32_t seed, cudaStream_t stream) {
    fill_random(memory.get(), bf16 ? Element::bf16 : Element::e4m3, memory.bytes(), seed, stream);
}

// Rows of weights have a length of about 1, so that the stream neither grows fast nor vanishes.
void scale_rows(DecodeMemory& memory) {
    constexpr float kRms = 2;  // of random weights
    const DecodeModel& model = memory.model();
    std::vector<float> scales(memory.scales().size());
    for (int layer = 0; layer < model.layers; ++layer)
        for (int i = 0; i < kHead; ++i) {
            const DecodeMatrix& m = model.matrix[i];
            std::fill_n(scales.begin() + layer * model.layer_scales + m.scales_at, m.rows,
                        1 / (kRms * std::sqrt(static_cast<float>(m.cols))));
        }
    memory.scales().upload(scales);
}

}  // namespace

InferTime time_infer(const InferCase& of, int repeats) {
    check_infer_case(of);
    if (of.batch > kMostDecodeTokens || of.tokens > 1) return time_with_gemms(of, repeats);
    const Stream on;
    const cudaStream_t stream = on.get();
    DecodeMemory memory({.layers = of.layers,
                         .batch = of.batch,
                         .d = of.d,
                         .heads = of.heads,
                         .kv_heads = of.kv_heads,
                         .ffn = of.ffn,
                         .capacity = of.context},
                        of.formats);
    scale_rows(memory);
    fill_random_values(memory.weights(), of.formats.weights == ServedWeights::bf16, 1, stream);
    fill_random_values(memory.keys(), of.formats.cache == ServedCache::bf16, 2, stream);
    fill_random_values(memory.values(), of.formats.cache == ServedCache::bf16, 3, stream);
    fill_random(memory.stream().get(), Element::f32, memory.stream().size() * sizeof(float), 4, stream);
    on.wait();
    const std::int32_t length = of.context - 1;
    memory.length().upload({&length, 1});
    memory.enqueue(stream);  // modules load before the capture
    on.wait();
    const Graph graph(stream, [&] { memory.enqueue(stream); });
    const Memory from(kCopyBytes), to(kCopyBytes);
    fill_random(from.get(), Element::bf16, kCopyBytes, 5, stream);
    const auto pass = [&](cudaStream_t s) { graph.launch(s); };
    const auto by_kernel = [&](cudaStream_t s) { copy_kernel(from.get(), to.get(), kCopyBytes, s); };
    const auto by_library = [&](cudaStream_t s) {
        check(cudaMemcpyAsync(to.get(), from.get(), kCopyBytes, cudaMemcpyDeviceToDevice, s),
              "cudaMemcpyAsync");
    };
    GridTime times
        [3];  // The pass alone first: what a copy leaves in the L2 cache would have to be written back meanwhile.
    time_turns({{&times[0], pass, rough_ms(pass, stream)}}, repeats, stream, {});
    time_turns({{&times[1], by_kernel, rough_ms(by_kernel, stream)},
                {&times[2], by_library, rough_ms(by_library, stream)}},
               repeats, stream, {});
    return {.median_ms = times[0].median_ms,
            .q1_ms = times[0].q1_ms,
            .q3_ms = times[0].q3_ms,
            .repeats = times[0].repeats,
            .copy_ms = std::min(times[1].median_ms, times[2].median_ms),
            .copy_bytes = 2.0 * static_cast<double>(kCopyBytes),
            .memory_bytes = memory.bytes()};
}

}  // namespace fp8lab::cuda
