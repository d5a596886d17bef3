// A small model of random numbers for served passes (kernels/prefill/pass.h), on the device and, token by token in float64, on the
// CPU: inputs, cache and what lies between the GEMMs are rounded as the pass says, sums are not.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/device/device.h"
#include "kernels/prefill/pass.h"

namespace fp8lab::cuda::served {

using Row = std::vector<double>;

inline float bf16(double v) { return __bfloat162float(__float2bfloat16_rn(static_cast<float>(v))); }
inline std::uint8_t e4m3_code(float v) { return __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3); }
inline float e4m3(std::uint8_t code) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
}
inline std::size_t index(int i) { return static_cast<std::size_t>(i); }

enum Which : int { kQkv, kOut, kGateUp, kDown, kHead, kMatrices };

struct Matrix {
    int rows = 0, cols = 0, padded = 0;
    std::vector<double> values;  // without the scales
    std::vector<float> scales;   // a row has one, or all have the first
    Buffer<std::uint8_t> weights;
    Buffer<float> device_scales;
};

inline PassShape small(PassShape s) {
    if (s.d == 0) s.d = 64;
    if (s.heads == 0) s.heads = 4, s.kv_heads = 2;
    if (s.head_size == 0) s.head_size = s.d / s.heads;
    if (s.ffn == 0) s.ffn = 96;
    if (s.capacity == 0) s.capacity = 20;
    return s;
}
inline std::string name_of(const PassShape& s) {
    std::string out;
    for (const int v : {s.layers, s.batch, s.tokens, s.d, s.heads, s.kv_heads, s.head_size, s.ffn, s.capacity,
                        static_cast<int>(s.weights), static_cast<int>(s.cache), static_cast<int>(s.stream)})
        out += std::to_string(v) + " ";
    return out;
}

// A model with its numbers on both sides, and its caches.
class Model {
  public:
    explicit Model(const PassShape& s, int start, unsigned seed = 1)
        : s_(s), fp8_(s.weights != PassWeights::bf16), start_(start), random_(seed) {
        const int shapes[][2] = {{s.qkv_rows(), s.d},
                                 {s.d, s.heads * s.head_size},
                                 {2 * s.ffn, s.d},
                                 {s.d, s.ffn},
                                 {s.vocabulary, s.d}};
        for (int i = 0; i < s.layers * kHead + 1; ++i) {
            const int which = i == s.layers * kHead ? kHead : i % kHead;
            matrices_.push_back(make(shapes[which][0], shapes[which][1]));
        }
        for (int i = 0; i < (2 * s.layers + 1) * s.d; ++i) gains_.push_back(1 + 0.1F * next());
        make_angles();
        make_cache();
        point();
    }
    const PassModel& device() const { return device_; }
    int start() const { return start_; }
    void set_length(int length) { length_.upload(std::vector<std::int32_t>{length}); }

    // x (tokens, d) of one sequence: the stream behind all layers, rows behind each other; the last token's logits at its end.
    // Adds to the reference's cache.
    Row reference(int sequence, const std::vector<float>& x, int tokens, int position) {
        Row out;
        for (int t = 0; t < tokens; ++t, ++position) {
            Row s;
            for (int i = 0; i < s_.d; ++i) s.push_back(static_cast<double>(x[index(t * s_.d + i)]));
            for (int l = 0; l < s_.layers; ++l) layer(l, sequence, position, s);
            out.insert(out.end(), s.begin(), s.end());
            if (t + 1 == tokens && s_.vocabulary > 0) {
                const Row logits = product(s_.layers * kHead, norm(s, 2 * s_.layers));
                out.insert(out.end(), logits.begin(), logits.end());
            }
        }
        return out;
    }

  private:
    float next() { return normal_(random_); }
    Matrix make(int rows, int cols) {
        Matrix m;
        m.rows = rows, m.cols = cols, m.padded = (rows + 15) / 16 * 16;
        std::vector<std::uint8_t> bytes(index(m.padded * cols) * (fp8_ ? 1 : 2));
        for (int i = 0; i < rows * cols; ++i) {
            // Weights in BF16 have no scale beside them.
            const float v = fp8_ ? next() * 40 : next() / std::sqrt(static_cast<float>(cols));
            if (fp8_) {
                bytes[index(i)] = e4m3_code(v);
                m.values.push_back(static_cast<double>(e4m3(bytes[index(i)])));
            } else {
                const __nv_bfloat16 rounded = __float2bfloat16_rn(v);
                std::memcpy(bytes.data() + 2 * index(i), &rounded, 2);
                m.values.push_back(static_cast<double>(bf16(static_cast<double>(v))));
            }
        }
        for (int r = 0; r < std::max(1, m.padded); ++r)
            m.scales.push_back(fp8_ ? (1 + 0.2F * next()) / (40 * std::sqrt(static_cast<float>(cols))) : 1);
        m.weights = Buffer<std::uint8_t>(std::span<const std::uint8_t>(bytes));
        m.device_scales = Buffer<float>(std::span<const float>(m.scales));
        return m;
    }
    void make_angles() {
        const int half = s_.head_size / 2;
        for (int t = 0; t < s_.capacity; ++t)
            for (int i = 0; i < half; ++i) {
                const double angle = t * std::pow(10000.0, -static_cast<double>(i) / half);
                cos_.push_back(static_cast<float>(std::cos(angle)));
                sin_.push_back(static_cast<float>(std::sin(angle)));
            }
    }
    bool wide() const { return s_.cache == PassCache::bf16; }
    // Random up to `start`; behind it NaN, which nothing may read.
    void make_cache() {
        const int head = s_.capacity * s_.head_size;
        const std::size_t count = index(s_.layers * s_.batch * s_.kv_heads * head);
        for (auto [values, memory] : {std::pair{&k_, &device_k_}, std::pair{&v_, &device_v_}}) {
            std::vector<std::uint8_t> bytes(count * (wide() ? 2 : 1), 0xFF);
            values->assign(count, std::nan(""));
            for (std::size_t i = 0; i < count; ++i) {
                if (static_cast<int>(i % index(head)) >= start_ * s_.head_size) continue;
                const float v = next() * (wide() ? 1.0F : 30.0F);
                if (wide()) {
                    const __nv_bfloat16 rounded = __float2bfloat16_rn(v);
                    std::memcpy(bytes.data() + 2 * i, &rounded, 2);
                    (*values)[i] = static_cast<double>(bf16(static_cast<double>(v)));
                } else {
                    bytes[i] = e4m3_code(v);
                    (*values)[i] = static_cast<double>(e4m3(bytes[i]));
                }
            }
            *memory = Buffer<std::uint8_t>(std::span<const std::uint8_t>(bytes));
        }
        for (int i = 0; i < s_.layers * s_.kv_heads; ++i) {
            k_scales_.push_back(wide() ? 1 : 0.03F * (1 + 0.1F * static_cast<float>(i % 5)));
            v_scales_.push_back(wide() ? 1 : 0.03F * (1 + 0.1F * static_cast<float>(i % 3)));
        }
    }
    const float* keep(const std::vector<float>& values) {
        return kept_.emplace_back(std::span<const float>(values)).get();
    }
    void point() {
        const float* const gains = keep(gains_);
        const float *const k_scales = keep(k_scales_), *const v_scales = keep(v_scales_);
        const auto matrix = [&](int i) {
            return PassMatrix{matrices_[index(i)].weights.get(), matrices_[index(i)].device_scales.get()};
        };
        for (int l = 0; l < s_.layers; ++l)
            device_.layers.push_back({matrix(l * kHead + kQkv), matrix(l * kHead + kOut),
                                      matrix(l * kHead + kGateUp), matrix(l * kHead + kDown),
                                      gains + 2 * l * s_.d, gains + (2 * l + 1) * s_.d,
                                      k_scales + l * s_.kv_heads, v_scales + l * s_.kv_heads});
        device_.head = matrix(s_.layers * kHead);
        device_.norm = gains + 2 * s_.layers * s_.d;
        device_.cos = keep(cos_), device_.sin = keep(sin_);
        device_.k = device_k_.get(), device_.v = device_v_.get();
        length_ = Buffer<std::int32_t>(1);
        set_length(start_);
        device_.length = length_.get();
    }

    double in_stream(double v) const { return s_.stream == Element::bf16 ? static_cast<double>(bf16(v)) : v; }
    void layer(int l, int sequence, int position, Row& s) {
        const auto add = [&](const Row& what) {
            for (std::size_t i = 0; i < s.size(); ++i) s[i] = in_stream(s[i] + what[i]);
        };
        Row qkv = product(l * kHead + kQkv, norm(s, 2 * l));
        for (double& v : qkv) v = in_stream(v);
        add(product(l * kHead + kOut, attention(l, sequence, position, qkv)));
        Row both = product(l * kHead + kGateUp, norm(s, 2 * l + 1)), h;
        for (double& v : both) v = in_stream(v);
        for (std::size_t j = 0; j < index(s_.ffn); ++j)
            h.push_back(
                static_cast<double>(bf16(both[j] / (1 + std::exp(-both[j])) * both[j + index(s_.ffn)])));
        add(product(l * kHead + kDown, h));
    }
    Row norm(const Row& x, int number) const {
        double squares = 0;
        for (double v : x) squares += v * v;
        const double inverse = 1 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-6);
        Row out;
        for (std::size_t i = 0; i < x.size(); ++i)
            out.push_back(x[i] * inverse * static_cast<double>(gains_[index(number * s_.d) + i]));
        return out;
    }
    Row product(int number, Row x) const {
        const Matrix& w = matrices_[index(number)];
        double amax = 0;
        for (double v : x) amax = std::max(amax, std::abs(v));
        const float scale = 448.0F / static_cast<float>(amax);
        for (double& v : x)
            v = fp8_ ? static_cast<double>(e4m3(e4m3_code(static_cast<float>(v) * scale))) *
                           static_cast<double>(1 / scale)
                     : static_cast<double>(bf16(v));
        Row out;
        for (int r = 0; r < w.rows; ++r) {
            double sum = 0;
            for (int k = 0; k < w.cols; ++k) sum += w.values[index(r * w.cols + k)] * x[index(k)];
            out.push_back(sum *
                          static_cast<double>(w.scales[s_.weights == PassWeights::e4m3_row ? index(r) : 0]));
        }
        return out;
    }
    // Of 16 bits: what the tensor cores multiply.
    double narrow(double v) const {
        if (s_.stream == Element::f32) return v;
        return wide() ? static_cast<double>(bf16(v))
                      : static_cast<double>(__half2float(__float2half_rn(static_cast<float>(v))));
    }
    Row rotated(const Row& all, int head, int position) const {
        const int hd = s_.head_size, half = hd / 2;
        Row out;
        for (int i = 0; i < hd; ++i) {
            const std::size_t angle = index(position * half + i % half);
            const double mine = all[index(head * hd + i)], other = all[index(head * hd + (i + half) % hd)];
            out.push_back(mine * static_cast<double>(cos_[angle]) +
                          (i < half ? -1 : 1) * other * static_cast<double>(sin_[angle]));
        }
        return out;
    }
    double cached(double v, double scale_inv) const {
        return wide() ? static_cast<double>(bf16(v))
                      : static_cast<double>(
                            e4m3(e4m3_code(static_cast<float>(v) * (1 / static_cast<float>(scale_inv)))));
    }
    Row attention(int l, int b, int position, const Row& qkv) {
        const int hd = s_.head_size, n = position + 1;
        Row out;
        for (int h = 0; h < s_.heads; ++h) {
            const int kv = h / (s_.heads / s_.kv_heads), scale = l * s_.kv_heads + kv;
            const double k_scale = static_cast<double>(k_scales_[index(scale)]),
                         v_scale = static_cast<double>(v_scales_[index(scale)]);
            const std::size_t at = index(((l * s_.batch + b) * s_.kv_heads + kv) * s_.capacity) * index(hd);
            const Row q = rotated(qkv, h, position), k_now = rotated(qkv, s_.heads + kv, position);
            for (int i = 0; i < hd; ++i) {
                k_[at + index(position * hd + i)] = cached(k_now[index(i)], k_scale);
                v_[at + index(position * hd + i)] =
                    cached(qkv[index((s_.heads + s_.kv_heads + kv) * hd + i)], v_scale);
            }
            Row p(index(n)), sum(index(hd));
            double top = -1e300, total = 0;
            for (int t = 0; t < n; ++t) {
                double score = 0;
                for (int i = 0; i < hd; ++i)
                    score += narrow(q[index(i)]) * k_scale * k_[at + index(t * hd + i)];
                p[index(t)] = score / std::sqrt(hd);
                top = std::max(top, p[index(t)]);
            }
            for (int t = 0; t < n; ++t) {
                const double e = std::exp(p[index(t)] - top);
                total += e;
                for (int i = 0; i < hd; ++i) sum[index(i)] += e * v_scale * v_[at + index(t * hd + i)];
            }
            for (double v : sum) out.push_back(static_cast<double>(bf16(v / total)));
        }
        return out;
    }

    const PassShape s_;
    const bool fp8_;
    const int start_;
    std::mt19937 random_;
    std::normal_distribution<float> normal_;
    std::vector<Matrix> matrices_;
    std::vector<float> gains_, cos_, sin_, k_scales_, v_scales_;
    Row k_, v_;
    std::vector<Buffer<float>> kept_;
    Buffer<std::uint8_t> device_k_, device_v_;
    Buffer<std::int32_t> length_;
    PassModel device_;
};

}  // namespace fp8lab::cuda::served
