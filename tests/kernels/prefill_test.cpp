// A pass of several tokens through all layers (kernels/prefill/pass.h) against the same in float64 on the CPU.
#include "core/base/error.h"
#include "kernels/device/graph.h"
#include "kernels/gemm/gemm.h"
#include "kernels/prefill/pass.h"
#include "kernels/prefill/pass_time.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/prefill_model.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::served;

namespace {

std::vector<float> random_rows(const PassShape& s, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(index(s.rows() * s.d));
    for (float& v : x) v = bf16(static_cast<double>(normal(random)));
    return x;
}

// What a pass makes of x: of each sequence its rows, and behind them its logits, as Model::reference() has them.
class Runner {
  public:
    std::string_view attention() const { return pass_.attention(); }
    explicit Runner(const PassShape& s) : s_(s), pass_(s, lt_, on_.get()) {}
    std::vector<float> run(const PassModel& model, const std::vector<float>& x, bool in_graph = false) {
        put(x);
        if (in_graph)
            Graph(on_.get(), [&] { pass_.enqueue(model, on_.get()); }).launch(on_.get());
        else
            pass_.enqueue(model, on_.get());
        on_.wait();
        return get();
    }

  private:
    void put(const std::vector<float>& x) {
        if (s_.stream == Element::f32) return copy_to_device(pass_.stream(), x.data(), 4 * x.size());
        std::vector<__nv_bfloat16> rounded;
        rounded.reserve(x.size());
        for (const float v : x) rounded.push_back(__float2bfloat16_rn(v));
        copy_to_device(pass_.stream(), rounded.data(), 2 * x.size());
    }
    std::vector<float> get() const {
        const std::size_t per = index(s_.tokens * s_.d), padded = index((s_.vocabulary + 15) / 16 * 16);
        std::vector<std::byte> rows(per * index(s_.batch) * (s_.stream == Element::f32 ? 4 : 2));
        check(cudaMemcpy(rows.data(), pass_.stream(), rows.size(), cudaMemcpyDeviceToHost), "download");
        std::vector<float> logits(padded * index(s_.batch)), out;
        if (s_.vocabulary > 0)
            check(cudaMemcpy(logits.data(), pass_.logits(), 4 * logits.size(), cudaMemcpyDeviceToHost),
                  "download");
        for (std::size_t b = 0; b < index(s_.batch); ++b) {
            for (std::size_t i = b * per; i < (b + 1) * per; ++i) {
                float v = 0;
                if (s_.stream == Element::f32) {
                    std::memcpy(&v, rows.data() + 4 * i, 4);
                } else {
                    __nv_bfloat16 rounded;
                    std::memcpy(&rounded, rows.data() + 2 * i, 2);
                    v = __bfloat162float(rounded);
                }
                out.push_back(v);
            }
            for (int i = 0; i < s_.vocabulary; ++i) out.push_back(logits[b * padded + index(i)]);
        }
        return out;
    }

    PassShape s_;
    Stream on_;
    Lt lt_;
    ServedPass pass_;
};

template <class Got, class Want>
double relative_error(const Got& got, const Want& want) {
    REQUIRE(got.size() == want.size());
    double error = 0, size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double g = static_cast<double>(got[i]), w = static_cast<double>(want[i]);
        error += (g - w) * (g - w);
        size += w * w;
    }
    return std::sqrt(error / size);  // NaN is larger than no bound
}

// Sums in FP32 round an input of a GEMM, or a result of attention, the other way here and there. With a stream in BF16, so are qkv,
// gate, up and both sums of a layer, and Q and the probabilities are rounded: 11 roundings of a layer in a row, of 2^-8 at most and
// half of that in the mean. Each changes some codes of E4M3 to a neighbour. Each kernel alone is held closer in
// prefill_kernels_test.cpp. The tensor cores of Hopper keep 13 fraction bits of sums of E4M3 (assets/docs/numerics.md, 3.5), the simulator
// FP32, so that there an E4M3 input is rounded the other way by those sums alone.
double bound(const PassShape& s) {
    const bool fp8 = s.weights != PassWeights::bf16;
#ifdef FP8LAB_SIMULATOR
    constexpr double kFp8 = 1e-2;
#else
    constexpr double kFp8 = 4e-2;
#endif
    if (s.stream == Element::f32) return fp8 ? kFp8 : 1e-3;
    return fp8 ? 4e-2 : std::ldexp(std::sqrt(11.0 * s.layers), -9);
}

struct Case {
    PassShape shape;
    int start = 0;
};
std::vector<Case> cases() {
    using enum PassWeights;
    const Element f32 = Element::f32;
    const PassCache narrow = PassCache::e4m3;
    std::vector<Case> all = {
        {{.layers = 2, .vocabulary = 37, .stream = f32}, 12},
        {{.layers = 2, .vocabulary = 37, .tokens = 5, .stream = f32}},
        {{.layers = 2, .batch = 3, .tokens = 7, .weights = e4m3_row}, 4},
        {{.layers = 2, .batch = 2, .tokens = 8, .weights = e4m3_row, .cache = narrow, .stream = f32}},
        {{.batch = 9, .weights = e4m3_row, .cache = narrow, .stream = f32}, 19},
        {{.layers = 2, .batch = 2, .tokens = 20, .cache = narrow}},
        {{.layers = 2, .vocabulary = 16, .weights = e4m3_tensor, .stream = f32}, 3},
        {{.d = 128, .heads = 8, .kv_heads = 1, .ffn = 48, .capacity = 90, .tokens = 67, .stream = f32}, 20},
        // Ranges of positions that are merged; the second has some, or none.
        {{.d = 128, .heads = 1, .kv_heads = 1, .ffn = 48, .capacity = 300, .stream = f32}, 298},
        {{.d = 128, .heads = 1, .kv_heads = 1, .ffn = 48, .capacity = 300, .weights = e4m3_row}, 30},
        // Heads that are wide, or nearly: many rows.
        {{.d = 128, .heads = 1, .kv_heads = 1, .ffn = 32, .capacity = 70, .batch = 2, .tokens = 66}, 4},
        {{.d = 160, .heads = 2, .kv_heads = 2, .ffn = 32, .capacity = 140, .tokens = 131, .cache = narrow},
         9},
    };
    for (Case& c : all) c.shape = small(c.shape);
    return all;
}

}  // namespace

TEST_CASE("a pass of several tokens through all layers is that of float64") {
    NEEDS_HOPPER();
    for (const Case& c : cases()) {
        CAPTURE(name_of(c.shape));
        const PassShape& s = c.shape;
        Model model(s, c.start);
        Runner runner(s);
        const std::vector<float> x = random_rows(s, 7);
        Row want;
        for (int b = 0; b < s.batch; ++b) {
            const std::ptrdiff_t part = std::ptrdiff_t{s.tokens} * s.d;
            const auto at = x.begin() + b * part;
            const Row of = model.reference(b, std::vector<float>(at, at + part), s.tokens, c.start);
            want.insert(want.end(), of.begin(), of.end());
        }
        const std::vector<float> got = runner.run(model.device(), x);
        CHECK(relative_error(got, want) <= bound(s));
        CHECK(runner.run(model.device(), x, true) == got);  // a graph; what was appended is appended again
    }
}

TEST_CASE("a pass of n tokens and one of the next is n and one passes of a token") {
    NEEDS_HOPPER();
    for (const PassCache cache : {PassCache::bf16, PassCache::e4m3}) {
        const PassShape prefill =
            small({.layers = 2, .batch = 2, .tokens = 9, .cache = cache, .stream = Element::f32});
        PassShape decode = prefill;
        decode.tokens = 1;
        Model together(prefill, 0), alone(prefill, 0);
        Runner many(prefill), one(decode), each(decode);
        const std::vector<float> x = random_rows(prefill, 3), last = random_rows(decode, 4);
        many.run(together.device(), x);
        together.set_length(prefill.tokens);
        const std::vector<float> got = one.run(together.device(), last);
        for (int t = 0; t < prefill.tokens; ++t) {
            std::vector<float> rows;
            for (int b = 0; b < prefill.batch; ++b) {
                const auto at = x.begin() + std::ptrdiff_t{b * prefill.tokens + t} * prefill.d;
                rows.insert(rows.end(), at, at + prefill.d);
            }
            alone.set_length(t);
            each.run(alone.device(), rows);
        }
        alone.set_length(prefill.tokens);
        // A K or V whose sum in FP32 has another order is cast to a neighbour here and there.
        CHECK(relative_error(got, each.run(alone.device(), last)) <=
              (cache == PassCache::bf16 ? 1e-3 : 1e-2));
    }
}

TEST_CASE("the bytes of a sequence do not depend on the sequences beside it in a pass") {
    NEEDS_HOPPER();
    for (const Case& c : cases()) {
        const PassShape& s = c.shape;
        if (s.batch == 1 || s.weights == PassWeights::e4m3_tensor) continue;
        CAPTURE(name_of(s));
        Model model(s, c.start);
        Runner runner(s);
        std::vector<float> x = random_rows(s, 1), other = random_rows(s, 2);
        std::copy_n(x.begin(), s.tokens * s.d, other.begin());
        const std::vector<float> a = runner.run(model.device(), x), b = runner.run(model.device(), other);
        CHECK(std::equal(a.begin(), a.begin() + std::ptrdiff_t{s.tokens} * s.d, b.begin()));
        CHECK(a != b);
    }
}

TEST_CASE("a pass that cannot be is refused in a sentence") {
    NEEDS_HOPPER();
    const auto refusal = [](const PassShape& shape) {
        try {
            const Stream on;
            const Lt lt;
            ServedPass pass(small(shape), lt, on.get());
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(refusal({.batch = 257}).find("257 is not from 1 to 256") != std::string::npos);
    CHECK(refusal({.capacity = 32769}).find("32769 is not from 1 to 32768") != std::string::npos);
    CHECK(refusal({.capacity = 8, .tokens = 9}).find("9 is not from 1 to 8") != std::string::npos);
    CHECK(refusal({.d = 72, .head_size = 16}).find("72 is not a multiple of 16") != std::string::npos);
    CHECK(refusal({.ffn = 40}).find("40 is not a multiple of 16") != std::string::npos);
    CHECK(refusal({.head_size = 24}).find("24 is not a multiple of 16 up to 128") != std::string::npos);
    CHECK(refusal({.heads = 3, .kv_heads = 2, .head_size = 16}).find("not a multiple of 2") !=
          std::string::npos);
    CHECK(refusal({.stream = Element::e4m3}).find("BF16 or FP32") != std::string::npos);
    CHECK(refusal({.heads = 512, .kv_heads = 1, .head_size = 16, .capacity = 32768, .tokens = 32768})
              .find("more than 8388480 rows") != std::string::npos);
    CHECK(refusal({.d = 32768,
                   .heads = 256,
                   .kv_heads = 256,
                   .ffn = 32768,
                   .capacity = 32768,
                   .batch = 256,
                   .tokens = 32768})
              .find("memory") != std::string::npos);
    CHECK(refusal({}).empty());
}

TEST_CASE("cuDNN's attention of a pass gives what ours gives") {
    NEEDS_HOPPER();
    PassShape s = small({.d = 256, .ffn = 64, .capacity = 200, .batch = 2, .tokens = 150});
    s.from_empty = true;
    Runner fused(s);
    if (fused.attention() == "own") {
        std::printf("skipped: this build or this machine has no cuDNN\n");
        return;
    }
    s.own_attention = true;
    Runner own(s);
    CHECK(own.attention() == "own");
    Model model(s, 0);
    const std::vector<float> x = random_rows(s, 1), got = fused.run(model.device(), x);
    // Both round the probabilities, and what follows may round the other way.
    CHECK(relative_error(got, own.run(model.device(), x)) <= bound(s));
}

TEST_CASE("the times of a pass have a line for each part, and what each moves") {
    NEEDS_HOPPER();
    PassCase c;
    c.d = 32, c.heads = 2, c.kv_heads = 1, c.ffn = 48, c.context = 12, c.layers = 2;
    c.copied = 1 << 12;
    for (const int tokens : {1, 12}) {
        c.tokens = tokens, c.weights = tokens == 1 ? PassWeights::bf16 : PassWeights::e4m3_row;
        const PassTimes times = time_pass(c, 3);
        const bool fp8 = tokens > 1;
        for (const char* const name : {"copy", "pass", "GEMMs", "attention", "memory-bound kernels",
                                       "norm + cast", "append", "SwiGLU + cast"})
            CHECK(times.line(name).median_ms > 0);
        const double rows = tokens, in = fp8 ? 1 : 2, weights = 32 * 64 + 32 * 32 + 3 * 32 * 48;
        // Two layers: two norms of 32 numbers in BF16; K and V of a head of 16; 48 gates.
        CHECK(times.line("norm + cast").bytes == 2 * 2 * rows * 32 * (2 + in));
        CHECK(times.line("append").bytes == 2 * rows * 2 * 16 * 4);
        CHECK(times.line("SwiGLU + cast").bytes == 2 * rows * 48 * (4 + in));
        CHECK(times.line("pass").bytes == 2 * weights * in + 2 * (12 - tokens) * 2 * 16 * 2);
        CHECK(times.line("GEMMs").flop == 2 * rows * 2 * weights);
        // 12 positions seen by the one token, or 6.5 by each of 12.
        CHECK(times.line("attention").flop == 4.0 * 2 * rows * 32 * (tokens == 1 ? 12 : 6.5));
        CHECK(times.memory_bytes > 0);
    }
}
