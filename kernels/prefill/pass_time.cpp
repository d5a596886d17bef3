#include "kernels/prefill/pass_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "kernels/bench/copy.h"
#include "kernels/bench/measure.h"
#include "kernels/device/graph.h"
#include "kernels/device/random_fill.h"
#include "kernels/gemm/gemm.h"

namespace fp8lab::cuda {
namespace {

std::size_t area(int rows, int cols) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}

PassShape shape_of(const PassCase& c) {
    PassShape s;
    s.layers = c.layers, s.d = c.d, s.heads = c.heads, s.kv_heads = c.kv_heads;
    s.head_size = c.heads > 0 ? c.d / c.heads : 0, s.ffn = c.ffn;
    s.capacity = c.context, s.batch = c.batch, s.tokens = c.tokens;
    s.weights = c.weights, s.cache = c.cache, s.stream = c.stream;
    s.from_empty = c.tokens == c.context, s.own_attention = c.own_attention;
    return s;
}
double bytes_of_weight(const PassCase& c) { return c.weights == PassWeights::bf16 ? 2 : 1; }
double bytes_of_cached(const PassCase& c) { return c.cache == PassCache::bf16 ? 2 : 1; }
double weights_of(const PassShape& s) {  // of all layers
    const double d = s.d, heads = s.heads * s.head_size;
    return s.layers * (d * s.qkv_rows() + d * heads + 3 * d * s.ffn);
}

// A model of random numbers in device memory.
class RandomModel {
  public:
    RandomModel(const PassShape& s, cudaStream_t stream) : shape_(s), stream_(stream) {
        const int heads = s.heads * s.head_size, widest = std::max({s.qkv_rows(), 2 * s.ffn, s.d, heads});
        gains_ = ones(index(s.d));
        // Sums of products of numbers around 1 stay around 1.
        scales_ = Buffer<float>(
            std::vector<float>(index(widest), 1 / std::sqrt(static_cast<float>(std::max(s.d, s.ffn)))));
        const std::size_t cached = area(s.layers * s.batch, s.kv_heads) * area(s.capacity, s.head_size);
        for (void** const of : {&model_.k, &model_.v})
            *of = random(cached, s.cache == PassCache::bf16 ? Element::bf16 : Element::e4m3);
        cache_scales_ = ones(index(s.kv_heads));
        angles_ = Buffer<float>(std::vector<float>(area(s.capacity, s.head_size / 2),
                                                   std::sqrt(0.5F)));  // cos and sin of 45 degrees
        for (int l = 0; l < s.layers; ++l)
            model_.layers.push_back({matrix(s.qkv_rows(), s.d), matrix(s.d, heads), matrix(2 * s.ffn, s.d),
                                     matrix(s.d, s.ffn), gains_.get(), gains_.get(), cache_scales_.get(),
                                     cache_scales_.get()});
        model_.norm = gains_.get();
        model_.cos = model_.sin = angles_.get();
        const std::vector<std::int32_t> length = {s.capacity - s.tokens};
        length_ = Buffer<std::int32_t>(std::span<const std::int32_t>(length));
        model_.length = length_.get();
    }
    const PassModel& get() const { return model_; }
    std::size_t bytes() const {
        std::size_t sum = 0;
        for (const Memory& memory : memory_) sum += memory.bytes();
        return sum;
    }

  private:
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }
    static Buffer<float> ones(std::size_t count) { return Buffer<float>(std::vector<float>(count, 1)); }
    void* random(std::size_t count, Element element) {
        const Memory& memory = memory_.emplace_back(count * static_cast<std::size_t>(bytes_of(element)));
        fill_random(memory.get(), element, memory.bytes(), static_cast<std::uint32_t>(memory_.size()),
                    stream_);
        return memory.get();
    }
    PassMatrix matrix(int rows, int cols) {
        const bool wide = shape_.weights == PassWeights::bf16;
        return {random(area(rows, cols), wide ? Element::bf16 : Element::e4m3), scales_.get()};
    }

    PassShape shape_;
    cudaStream_t stream_;
    std::vector<Memory> memory_;
    Buffer<float> gains_, scales_, cache_scales_, angles_;
    Buffer<std::int32_t> length_;
    PassModel model_;
};

// What the kernels of a part read and write once, of all layers. rotates: Q and K in place, for cuDNN.
double bytes_moved(const PassCase& c, unsigned part, bool rotates) {
    const PassShape s = shape_of(c);
    const double rows = s.rows(), stream = bytes_of(c.stream), heads = s.heads * s.head_size,
                 kv = s.kv_heads * s.head_size, fp8 = c.weights != PassWeights::bf16, in = fp8 > 0 ? 1 : 2,
                 reads = c.weights == PassWeights::e4m3_tensor ? 2 : 1;
    switch (part) {
        case kServedNorms:
            return 2 * s.layers * rows * s.d * (stream * reads + in);
        case kServedAppends:
            return s.layers * rows *
                   (2 * kv * (stream + bytes_of_cached(c)) + (rotates ? 4 * (heads + kv) : 0));
        case kServedCasts:
            return fp8 * s.layers * rows * heads * (2 * reads + in);
        case kServedGates:
            return s.layers * rows * s.ffn * (2 * stream * reads + in);
        case kServedMemory: {
            double all = 0;
            for (const unsigned one : {kServedNorms, kServedAppends, kServedCasts, kServedGates})
                all += bytes_moved(c, one, rotates);
            return all;
        }
        case kServedAttention:
            return s.layers *
                   (s.batch * c.context * 2 * kv * bytes_of_cached(c) + rows * heads * (stream + 2));
        default:
            return weights_of(s) * bytes_of_weight(c) +
                   s.layers * s.batch * (c.context - c.tokens) * 2.0 * kv * bytes_of_cached(c);
    }
}
double flop_of(const PassCase& c, unsigned part) {
    const PassShape s = shape_of(c);
    const double rows = s.rows(), heads = s.heads * s.head_size,
                 seen = c.context - 0.5 * (c.tokens - 1);  // positions of a token, in the mean
    const double gemms = 2 * rows * weights_of(s), attention = 4.0 * s.layers * rows * heads * seen;
    return part == kServedGemms       ? gemms
           : part == kServedAttention ? attention
           : part == kServedAll       ? gemms + attention
                                      : 0;
}

struct Row {
    const char* name;
    unsigned part;
};
// The pass is the last of a turn: what the copy leaves in the L2 cache has been written back by then.
constexpr Row kRows[] = {{"GEMMs", kServedGemms},
                         {"attention", kServedAttention},
                         {"memory-bound kernels", kServedMemory},
                         {"norm + cast", kServedNorms},
                         {"append", kServedAppends},
                         {"cast of attention", kServedCasts},
                         {"SwiGLU + cast", kServedGates},
                         {"pass", kServedAll}};

}  // namespace

const Timed& PassTimes::line(const std::string& name) const {
    for (const Timed& one : lines)
        if (one.name == name) return one;
    throw usage_error("bench infer", fmt::format("there is no line '{}'", name));
}

PassTimes time_pass(const PassCase& c, int repeats) {
    const Stream stream;
    const Lt lt;
    const cudaStream_t on = stream.get();
    ServedPass pass(shape_of(c), lt, on);
    const RandomModel model(shape_of(c), on);
    fill_random(pass.stream(), c.stream,
                area(c.batch * c.tokens, c.d) * static_cast<std::size_t>(bytes_of(c.stream)), 1, on);
    pass.enqueue(model.get(), on);  // what the graphs capture has run
    const Memory from(c.copied), to(c.copied);
    fill_random(from.get(), Element::bf16, c.copied, 1, on);
    std::vector<Job> jobs(1);
    jobs[0].line.name = "copy";
    jobs[0].line.bytes = 2.0 * static_cast<double>(c.copied);
    jobs[0].run = [&](cudaStream_t s) { copy_kernel(from.get(), to.get(), c.copied, s); };
    std::vector<Graph> graphs;
    graphs.reserve(std::size(kRows));
    for (const Row& row : kRows) {
        Job job;
        job.line.name = row.name;
        job.line.flop = flop_of(c, row.part);
        job.line.bytes = bytes_moved(c, row.part, pass.attention() == "cuDNN");
        // Without a cast there is nothing to capture, unless ranges of positions are merged there.
        if (job.line.bytes == 0) continue;
        const Graph& graph =
            graphs.emplace_back(on, [&] { pass.enqueue(model.get(), on, row.part & ~kServedHead); });
        job.run = [&graph](cudaStream_t s) { graph.launch(s); };
        jobs.push_back(std::move(job));
    }
    return {time_in_turns(std::move(jobs), repeats, on), std::string(pass.attention()),
            static_cast<double>(pass.bytes() + model.bytes())};
}

}  // namespace fp8lab::cuda
