// The launches between the GEMMs of a served pass (kernels/prefill/launch.h), each alone: casts and what is appended bit for bit,
// attention against float64.
#include <cmath>

#include "kernels/prefill/launch.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/prefill_model.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::served;

namespace {

std::vector<float> normal_numbers(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& v : values) v = bf16(static_cast<double>(normal(random)));
    return values;
}
Buffer<std::uint16_t> as_bf16(const std::vector<float>& values) {
    std::vector<std::uint16_t> bits;
    for (const float v : values) {
        const __nv_bfloat16 rounded = __float2bfloat16_rn(v);
        bits.emplace_back();
        std::memcpy(&bits.back(), &rounded, 2);
    }
    return Buffer<std::uint16_t>(std::span<const std::uint16_t>(bits));
}
float of_bf16(std::uint16_t bits) { return __bfloat162float(__nv_bfloat16(__nv_bfloat16_raw{bits})); }

struct Rotations {
    int head_size;
    std::vector<float> cos, sin;
    Rotations(int positions, int width) : head_size(width) {
        for (int t = 0; t < positions; ++t)
            for (int i = 0; i < head_size / 2; ++i) {
                const double angle = t * std::pow(10000.0, -2.0 * i / head_size);
                cos.push_back(static_cast<float>(std::cos(angle)));
                sin.push_back(static_cast<float>(std::sin(angle)));
            }
    }
    // Element i of a head at a position, in FP32.
    float rotated(const float* head, int position, int i) const {
        const int half = head_size / 2;
        const std::size_t at = index(position * half + i % half);
        const float other = head[(i + half) % head_size] * sin[at];
        return head[i] * cos[at] + (i < half ? -other : other);
    }
};

struct Sizes {
    int batch, tokens, heads, kv_heads, head_size, capacity, start;
    PassCache cache;
    int splits;
    Element element = Element::bf16;
};
// What is appended to an empty cache, then attention from `start` on.
class Attended {
  public:
    explicit Attended(const Sizes& s)
        : s_(s),
          wide_(s.cache == PassCache::bf16),
          angles_(s.capacity, s.head_size),
          qkv_(normal_numbers(index(s.batch * s.tokens * stride()), 5)),
          device_qkv_(as_bf16(qkv_)),
          wide_qkv_(std::span<const float>(qkv_)),
          cos_(std::span<const float>(angles_.cos)),
          sin_(std::span<const float>(angles_.sin)),
          k_(count() * (wide_ ? 2 : 1)),
          v_(k_.size()),
          out_(index(s.batch * s.tokens * s.heads * s.head_size)),
          partials_(index(s.batch * s.tokens * s.heads * s.splits * partial_width(s.head_size))) {
        std::vector<float> scales;
        scales.reserve(index(s.kv_heads));
        for (int i = 0; i < s.kv_heads; ++i) scales.push_back(wide_ ? 1 : 0.02F * static_cast<float>(i + 1));
        scales_ = Buffer<float>(std::span<const float>(scales));
        kv_scales_ = scales;
        length_.upload(std::vector<std::int32_t>{s.start});
        fill();
        a_.element = s.element;
        a_.qkv = device_qkv_.get();
        if (s.element == Element::f32) a_.qkv = wide_qkv_.get();
        a_.k = k_.get(), a_.v = v_.get();
        a_.k_scales = a_.v_scales = scales_.get(), a_.cos = cos_.get(), a_.sin = sin_.get();
        a_.length = length_.get(), a_.out = out_.get(), a_.partials = partials_.get();
        a_.batch = s.batch, a_.tokens = s.tokens, a_.heads = s.heads, a_.kv_heads = s.kv_heads;
        a_.head_size = s.head_size, a_.capacity = s.capacity, a_.cache = s.cache, a_.splits = s.splits;
    }
    void append() {
        append_heads(a_, false, on_.get());
        on_.wait();
    }
    std::vector<float> attend() {
        attend_served(a_, on_.get());
        const int width = s_.heads * s_.head_size, rows = s_.batch * s_.tokens;
        Buffer<std::uint16_t> merged(out_.size());
        if (s_.splits > 1) {
            RowTarget to;
            to.rows = to.padded_rows = rows, to.cols = width, to.out = merged.get();
            merge_rows(a_, to, on_.get());
        }
        on_.wait();
        std::vector<float> out;
        for (const std::uint16_t bits : (s_.splits > 1 ? merged : out_).download())
            out.push_back(of_bf16(bits));
        return out;
    }
    // The bytes of the caches, and what they should be.
    std::vector<std::uint8_t> bytes() const {
        std::vector<std::uint8_t> all = k_.download(), v = v_.download();
        all.insert(all.end(), v.begin(), v.end());
        return all;
    }
    std::vector<std::uint8_t> appended() const {
        std::vector<std::uint8_t> all = before_;
        for (int b = 0; b < s_.batch; ++b)
            for (int t = 0; t < s_.tokens; ++t)
                for (int kv = 0; kv < s_.kv_heads; ++kv)
                    for (int i = 0; i < s_.head_size; ++i) {
                        const float* const k = row(b, t) + index((s_.heads + kv) * s_.head_size);
                        const float values[] = {angles_.rotated(k, s_.start + t, i),
                                                k[s_.kv_heads * s_.head_size + i]};
                        for (int of = 0; of < 2; ++of)
                            put(all, index(of) * count() + at(b, kv, s_.start + t, i), values[of], kv);
                    }
        return all;
    }
    std::vector<double> reference() const {
        const std::vector<std::uint8_t> cache = appended();
        std::vector<double> out;
        for (int b = 0; b < s_.batch; ++b)
            for (int t = 0; t < s_.tokens; ++t)
                for (int h = 0; h < s_.heads; ++h) {
                    const std::vector<double> of = head(cache, b, t, h);
                    out.insert(out.end(), of.begin(), of.end());
                }
        return out;
    }

  private:
    int stride() const { return (s_.heads + 2 * s_.kv_heads) * s_.head_size; }
    std::size_t count() const { return index(s_.batch * s_.kv_heads * s_.capacity * s_.head_size); }
    std::size_t at(int b, int kv, int t, int i) const {
        return index(((b * s_.kv_heads + kv) * s_.capacity + t) * s_.head_size + i);
    }
    const float* row(int b, int t) const { return qkv_.data() + index((b * s_.tokens + t) * stride()); }
    void put(std::vector<std::uint8_t>& to, std::size_t i, float v, int kv) const {
        if (wide_) {
            const __nv_bfloat16 rounded = __float2bfloat16_rn(v);
            std::memcpy(to.data() + 2 * i, &rounded, 2);
        } else {
            to[i] = e4m3_code(v * (1 / kv_scales_[index(kv)]));
        }
    }
    double get(const std::vector<std::uint8_t>& from, std::size_t i, int kv) const {
        if (!wide_) return static_cast<double>(e4m3(from[i])) * static_cast<double>(kv_scales_[index(kv)]);
        std::uint16_t bits = 0;
        std::memcpy(&bits, from.data() + 2 * i, 2);
        return static_cast<double>(of_bf16(bits));
    }
    // Numbers up to `start`, NaN behind it.
    void fill() {
        before_.assign(2 * k_.size(), 0xFF);
        const std::vector<float> values = normal_numbers(2 * count(), 6);
        for (std::size_t i = 0; i < 2 * count(); ++i) {
            const int in_head = static_cast<int>(i % index(s_.capacity * s_.head_size));
            if (in_head < s_.start * s_.head_size)
                put(before_, i, values[i],
                    static_cast<int>(i / index(s_.capacity * s_.head_size)) % s_.kv_heads);
        }
        copy_to_device(k_.get(), before_.data(), k_.size());
        copy_to_device(v_.get(), before_.data() + k_.size(), v_.size());
    }
    std::vector<double> head(const std::vector<std::uint8_t>& cache, int b, int t, int h) const {
        const int kv = h / (s_.heads / s_.kv_heads), n = s_.start + t + 1, hd = s_.head_size;
        std::vector<double> p, sum(index(hd));
        double top = -1e300, total = 0;
        for (int j = 0; j < n; ++j) {
            double score = 0;
            for (int i = 0; i < hd; ++i) {
                const float q = angles_.rotated(row(b, t) + index(h * hd), s_.start + t, i);
                const float used = s_.element == Element::f32 ? q
                                   : wide_                    ? bf16(static_cast<double>(q))
                                                              : __half2float(__float2half_rn(q));
                score += static_cast<double>(used) * get(cache, at(b, kv, j, i), kv);
            }
            p.push_back(score / std::sqrt(hd));
            top = std::max(top, p.back());
        }
        for (int j = 0; j < n; ++j) {
            const double e = std::exp(p[index(j)] - top);
            total += e;
            for (int i = 0; i < hd; ++i) sum[index(i)] += e * get(cache, count() + at(b, kv, j, i), kv);
        }
        for (double& v : sum) v /= total;
        return sum;
    }

    const Sizes s_;
    const bool wide_;
    const Rotations angles_;
    const std::vector<float> qkv_;
    const Buffer<std::uint16_t> device_qkv_;
    const Buffer<float> wide_qkv_;
    Stream on_;
    Buffer<float> cos_, sin_, scales_;
    Buffer<std::uint8_t> k_, v_;
    Buffer<std::uint16_t> out_;
    Buffer<float> partials_;
    Buffer<std::int32_t> length_{1};
    std::vector<float> kv_scales_;
    std::vector<std::uint8_t> before_;
    ServedAttention a_;
};

}  // namespace

TEST_CASE("new K and V are appended bit for bit, and attention over the cache is that of float64") {
    NEEDS_HOPPER();
    for (const PassCache cache : {PassCache::bf16, PassCache::e4m3})
        for (const Sizes& s : {Sizes{1, 1, 4, 1, 128, 200, 150, cache, 1},
                               {1, 1, 4, 1, 128, 300, 260, cache, 3},
                               {2, 4, 8, 2, 32, 200, 70, cache, 2, Element::f32},
                               {1, 70, 2, 1, 64, 90, 13, cache, 1},
                               {2, 33, 5, 1, 80, 40, 0, cache, 1, Element::f32},
                               {1, 130, 1, 1, 112, 150, 20, cache, 1},
                               {1, 1, 20, 1, 16, 80, 64, cache, 1},
                               {1, 70, 2, 1, 64, 90, 13, cache, 1, Element::f32}}) {
            CAPTURE(s.tokens);
            CAPTURE(s.head_size);
            CAPTURE(static_cast<int>(cache));
            Attended attended(s);
            attended.append();
            CHECK(attended.bytes() == attended.appended());
            const std::vector<float> got = attended.attend();
            const std::vector<double> want = attended.reference();
            REQUIRE(got.size() == want.size());
            double error = 0, size = 0;
            for (std::size_t i = 0; i < got.size(); ++i) {
                error += std::pow(static_cast<double>(got[i]) - want[i], 2);
                size += want[i] * want[i];
            }
            // The result is rounded to BF16, which is 1.7e-3, and the probabilities to BF16, or with a cache in E4M3 to FP16.
            CHECK(std::sqrt(error / size) <=
                  (cache == PassCache::bf16 && s.element == Element::bf16 ? 3e-3 : 1.8e-3));
        }
}

TEST_CASE("a row of what attention gives is cast as core casts it, bit for bit") {
    NEEDS_HOPPER();
    const Stream on;
    for (const int cols : {16, 512, 528, 2064, 4112, 8208, 16400}) {
        CAPTURE(cols);
        const int rows = 3, padded_rows = 16;
        std::vector<float> x = normal_numbers(index(rows * cols), 9);
        for (int i = 0; i < cols; ++i) x[index(cols + i)] = 0;
        const Buffer<std::uint16_t> from = as_bf16(x);
        Buffer<std::uint8_t> codes(index(padded_rows * cols));
        Buffer<float> scales(padded_rows);
        Buffer<std::uint32_t> amax(1);
        for (const PassWeights as : {PassWeights::e4m3_row, PassWeights::e4m3_tensor}) {
            copy_to_device(codes.get(), std::vector<std::uint8_t>(codes.size(), 0xFF).data(), codes.size());
            cast_rows(from.get(), {as, rows, padded_rows, cols, codes.get(), scales.get(), amax.get()},
                      on.get());
            on.wait();
            std::vector<std::uint8_t> want(codes.size());
            std::vector<float> factors;
            float all = 0;
            for (const float v : x) all = std::max(all, std::abs(v));
            for (int r = 0; r < rows; ++r) {
                float most = 0;
                for (int i = 0; i < cols; ++i) most = std::max(most, std::abs(x[index(r * cols + i)]));
                if (as == PassWeights::e4m3_tensor) most = all;
                const float scale = most > 0 ? 448.0F / most : 1.0F;
                factors.push_back(1 / scale);
                for (int i = 0; i < cols; ++i)
                    want[index(r * cols + i)] = e4m3_code(x[index(r * cols + i)] * scale);
            }
            CHECK(codes.download() == want);
            const std::vector<float> got = scales.download();
            CHECK(std::equal(factors.begin(), factors.begin() + (as == PassWeights::e4m3_row ? rows : 1),
                             got.begin()));
        }
    }
}

TEST_CASE("norms and gates of rows are those of float64, the last rows of sequences too") {
    NEEDS_HOPPER();
    const Stream on;
    for (const int cols : {48, 1040, 4112, 16400}) {
        CAPTURE(cols);
        const int rows = 2, step = 3;
        const std::vector<float> x = normal_numbers(index(2 * rows * step * cols), 2),
                                 gain = normal_numbers(index(cols), 3);
        const Buffer<std::uint16_t> from = as_bf16(x);
        const Buffer<float> wide(std::span<const float>(x.data(), x.size())),
            gains(std::span<const float>(gain.data(), gain.size()));
        Buffer<std::uint16_t> normed(index(16 * cols)), wide_normed(normed.size()), gated(normed.size()),
            wide_gated(normed.size());
        RowTarget to;
        to.rows = rows, to.padded_rows = 16, to.cols = cols, to.out = normed.get();
        norm_rows(from.get(), Element::bf16, step, gains.get(), to, on.get());
        to.out = wide_normed.get();
        norm_rows(wide.get(), Element::f32, step, gains.get(), to, on.get());
        to.out = gated.get();
        gate_rows(from.get(), Element::bf16, to, on.get());
        to.out = wide_gated.get();
        gate_rows(wide.get(), Element::f32, to, on.get());
        on.wait();
        const std::vector<std::uint16_t> n = normed.download(), g = gated.download();
        CHECK(wide_normed.download() == n);
        CHECK(wide_gated.download() == g);
        double worst = 0;
        for (int r = 0; r < rows; ++r) {
            const float* const row = x.data() + index((r * step + step - 1) * cols);
            const float *const gate = x.data() + index(2 * r * cols), *const up = gate + cols;
            double squares = 0;
            for (int i = 0; i < cols; ++i)
                squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
            for (int i = 0; i < cols; ++i) {
                const double z = static_cast<double>(gate[i]),
                             want[] = {static_cast<double>(row[i]) / std::sqrt(squares / cols + 1e-6) *
                                           static_cast<double>(gain[index(i)]),
                                       z / (1 + std::exp(-z)) * static_cast<double>(up[i])},
                             got[] = {static_cast<double>(of_bf16(n[index(r * cols + i)])),
                                      static_cast<double>(of_bf16(g[index(r * cols + i)]))};
                for (int k = 0; k < 2; ++k)
                    if (want[k] != 0) worst = std::max(worst, std::abs(got[k] / want[k] - 1));
            }
        }
        CHECK(worst <= std::ldexp(1.01, -8));  // half a step of BF16
        CHECK(std::all_of(n.begin() + std::ptrdiff_t{rows} * cols, n.end(),
                          [](std::uint16_t bits) { return (bits & 0x7FFF) == 0; }));
    }
}
