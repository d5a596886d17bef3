#include "kernels/bench/transformer_cases.h"

#include <cmath>

#include "core/nn/ops/rope.h"
#include "kernels/device/random_fill.h"

namespace fp8lab::cuda {
namespace {

constexpr int kContext = 2048;
constexpr Element kBf16 = Element::bf16, kE4m3 = Element::e4m3;

std::size_t count(int n) { return static_cast<std::size_t>(n); }
// Side by side: gate and up; q, k and v.
Shape times(int n, Shape s) { return {s.rows, n * s.cols, s.padded_rows, n * s.padded_cols}; }

// The amaxes of rows and columns first, where the scales are theirs.
template <class Cast>
void run(const TransformerBench& bench, Cast cast) {
    if (bench.kernel.scaling == ScaleMode::row) cast(Pass::amax_only);
    cast(Pass::cast);
}
void norm(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    run(b, [&](Pass pass) {
        cast_norm({m[0], kBf16, b.inverse_rms.get(), b.gain.get(), true}, b.shape, b.target(m + 1), pass,
                  stream);
    });
}
void measure(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    add_and_measure({m[0], m[1], kBf16, true, m[2], b.inverse_rms.get(), nullptr}, b.shape, stream);
}
void measure_and_cast(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    const CastTarget cast = b.target(m + 3);
    add_and_measure({m[0], m[1], kBf16, true, m[2], b.inverse_rms.get(), b.gain.get()}, b.shape, stream,
                    &cast);
}
NormBackward backward_of(const TransformerBench& b, void* const* m) {
    return {m[0], m[1], kBf16, b.inverse_rms.get(), b.gain.get(), m[2], m[2], true, b.gain_partials.get()};
}
void backward(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    norm_backward(backward_of(b, m), b.shape, stream);
}
void backward_and_cast(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    const CastTarget cast = b.target(m + 3);
    norm_backward(backward_of(b, m), b.shape, stream, &cast);
}
void rotate(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    rotate_heads(m[0], kBf16, b.shape, b.rotary, Turn::forward, true, stream);
}
// Rotates the first two of q, k and v back.
void rotated_back(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    Rotary rotary = b.rotary;
    rotary.cols *= 2;
    run(b, [&](Pass pass) {
        cast_rotated_back({m[0], kBf16, rotary, true}, times(3, b.shape), b.target(m + 1), pass, stream);
    });
}
void gate(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    run(b, [&](Pass pass) {
        cast_gate({m[0], kBf16, GateKind::swiglu, true, nullptr}, b.shape, b.target(m + 1), pass, stream);
    });
}
void gate_slope(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    run(b, [&](Pass pass) {
        cast_gate_slope({m[0], m[1], kBf16, GateKind::swiglu, true, nullptr}, times(2, b.shape),
                        b.target(m + 2), pass, stream);
    });
}
void tokens(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    token_rows({m[0], kBf16, b.ring(), nullptr, true}, b.shape, b.row_stats.get(), b.row_sums.get(),
               b.correct.get(), stream);
}
void token_gradient(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    run(b, [&](Pass pass) {
        cast_token_gradient({m[0], kBf16, b.ring(), b.row_stats.get(), true}, b.shape, b.target(m + 1), pass,
                            stream);
    });
}
void embedding(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    gather(b.embedding_ring(), static_cast<const float*>(m[0]), b.shape, kBf16, true, m[1], stream);
}
void embedding_gradient(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    gather_backward(b.embedding_ring(), m[0], kBf16, b.shape, nullptr, static_cast<float*>(m[1]), stream);
}
void squares(const TransformerBench& b, void* const* m, cudaStream_t stream) {
    const auto elements = static_cast<long long>(b.shape.rows) * b.shape.cols;
    sum_of_squares(m[0], Element::f32, elements, b.row_sums.get(), stream);
}

std::vector<TransformerCase> make_cases() {
    const std::vector<MovedMatrix> cast = {{kBf16}, {kE4m3}, {kE4m3}}, copy = {{kBf16}, {kBf16}},
                                   rotated_cast = {{kBf16, 3}, {kE4m3, 3}, {kE4m3, 3}},
                                   gate_cast = {{kBf16, 2}, {kE4m3}, {kE4m3}},
                                   slope_cast = {{kBf16}, {kBf16, 2}, {kE4m3, 2}, {kE4m3, 2}};
    constexpr ScaleMode kBlocks = ScaleMode::block128;
    return {
        {"residual add + RMS",
         "measure_kernel",
         {{kBf16}, {kBf16}, {kBf16}},
         measure,
         false,
         ScaleMode::tensor,
         kWidestNorm},
        {"residual add + RMS + cast + transpose",
         "measure_kernel",
         {{kBf16}, {kBf16}, {kBf16}, {kE4m3}, {kE4m3}},
         measure_and_cast,
         true,
         ScaleMode::tensor,
         kWidestCastNorm},
        {"RMSNorm + cast + transpose", "tile_cast", cast, norm, true},
        {"RMSNorm + 1x128 cast + transpose", "block_cast", cast, norm, true, kBlocks},
        {"RMSNorm + row cast + transpose",
         "row_cast",
         {{kBf16, 1, 2}, {kE4m3}, {kE4m3}},
         norm,
         true,
         ScaleMode::row},
        {"RMSNorm to BF16", "tile_cast", copy, norm},
        {"RMSNorm backward + dgain + residual",
         "backward_kernel",
         {{kBf16}, {kBf16}, {kBf16, 1, 2}},
         backward,
         false,
         ScaleMode::tensor,
         kWidestNorm},
        {"RMSNorm backward + dgain + residual + cast + transpose",
         "backward_kernel",
         {{kBf16}, {kBf16}, {kBf16, 1, 2}, {kE4m3}, {kE4m3}},
         backward_and_cast,
         true,
         ScaleMode::tensor,
         kWidestCastNorm},
        {"RoPE in place", "rotate_heads_kernel", {{kBf16, 1, 2}}, rotate},
        {"RoPE back + cast + transpose", "tile_cast", rotated_cast, rotated_back, true},
        {"RoPE back + 1x128 cast + transpose", "parts_cast", rotated_cast, rotated_back, true, kBlocks},
        {"RoPE back to BF16", "tile_cast", {{kBf16, 3}, {kBf16, 3}}, rotated_back},
        {"SwiGLU + cast + transpose", "tile_cast", gate_cast, gate, true},
        {"SwiGLU + 1x128 cast + transpose", "block_cast", gate_cast, gate, true, kBlocks},
        {"SwiGLU + row cast + transpose",
         "row_cast",
         {{kBf16, 2, 2}, {kE4m3}, {kE4m3}},
         gate,
         true,
         ScaleMode::row},
        {"SwiGLU to BF16", "tile_cast", {{kBf16, 2}, {kBf16}}, gate},
        {"dSwiGLU + cast + transpose", "tile_cast", slope_cast, gate_slope, true},
        {"dSwiGLU + 1x128 cast + transpose", "parts_cast", slope_cast, gate_slope, true, kBlocks},
        {"dSwiGLU to BF16", "tile_cast", {{kBf16}, {kBf16, 2}, {kBf16, 2}}, gate_slope},
        {"token loss", "token_rows_kernel", {{kBf16}}, tokens},
        {"token gradient + cast + transpose", "tile_cast", cast, token_gradient, true},
        {"token gradient to BF16", "tile_cast", copy, token_gradient},
        {"embedding", "gather_kernel", {{Element::f32}, {kBf16}}, embedding},
        {"embedding backward", "gather_backward_kernel", {{kBf16}, {Element::f32}}, embedding_gradient},
        {"sum of squares of FP32", "squares_kernel", {{Element::f32}}, squares},
    };
}

}  // namespace

double bytes_per_element(const TransformerCase& kernel) {
    double bytes = 0;
    for (const MovedMatrix& m : kernel.matrices) bytes += m.times * m.moved * bytes_of(m.element);
    if (kernel.scaling == ScaleMode::block128)
        bytes += kernel.matrices.back().times * 2.0 * sizeof(float) / kBlock;  // of scales
    return bytes;
}

const std::vector<TransformerCase>& transformer_cases() {
    static const std::vector<TransformerCase> table = make_cases();
    return table;
}

TransformerBench::TransformerBench(const TransformerCase& of, Shape s, double least_bytes,
                                   cudaStream_t stream)
    : kernel(of), shape(s), scales(of.scaling, times(of.matrices.back().times, s)) {
    const auto elements = count(s.rows) * count(s.cols);
    const auto turns = static_cast<int>(std::ceil(least_bytes / bytes()));
    std::uint32_t seed = 1;
    for (int turn = 0; turn < turns; ++turn)
        for (const MovedMatrix& m : kernel.matrices) {
            memory.emplace_back(elements * count(m.times * bytes_of(m.element)));
            if (bytes_of(m.element) > 1)
                fill_random(memory.back().get(), m.element, memory.back().bytes(), ++seed, stream);
        }
    gain = Buffer<float>(count(s.cols));
    fill_random(gain.get(), Element::f32, gain.size() * sizeof(float), 99, stream);
    inverse_rms = Buffer<float>(std::span<const float>(std::vector<float>(count(s.rows), 0.7F)));
    gain_partials = Buffer<float>(count(norm_partials(s)) * count(s.cols));
    const int head_size = s.cols % 128 == 0 ? 128 : 16;
    const RotaryTable<float> table(kContext, count(head_size));
    cos = Buffer<float>(std::span<const float>(table.cos().values));
    sin = Buffer<float>(std::span<const float>(table.sin().values));
    rotary = {cos.get(), sin.get(), kContext, head_size, s.cols};
    // Any targets, all scored.
    std::vector<std::int32_t> entry(count(static_cast<int>(ring().stride())));
    for (int r = 0; r < s.rows; ++r) entry[count(s.rows + r)] = r % s.cols;
    entry.back() = s.rows;
    tokens = Buffer<std::int32_t>(std::span<const std::int32_t>(entry));
    entry.assign(count(static_cast<int>(TokenRing{nullptr, s.rows, s.rows}.stride())), 0);
    for (int r = 0; r < s.rows; ++r) {
        entry[count(r)] = entry[count(2 * s.rows + r)] = s.rows - 1 - r;  // the token, and its row
        entry[count(3 * s.rows + r)] = r;
    }
    entry[count(4 * s.rows)] = s.rows;
    embedded = Buffer<std::int32_t>(std::span<const std::int32_t>(entry));
    row_stats = Buffer<float2>(std::span<const float2>(std::vector<float2>(count(s.rows), float2{3, 50})));
    const int squared = square_partials(static_cast<long long>(s.rows) * s.cols);
    row_sums = Buffer<double>(count(squared > s.rows ? squared : s.rows));
    correct = Buffer<std::uint8_t>(count(s.rows));
    ScaleState start;
    start.scale = 8;
    state.upload({&start, 1});
}

CastTarget TransformerBench::target(void* const* payload) const {
    CastTarget to;
    to.element = kernel.transposed ? kE4m3 : kBf16;
    to.rows = payload[0];
    if (kernel.transposed) to.columns = payload[1];
    to.state = state.get();
    to.scaled = kernel.transposed;
    to.scaling = kernel.scaling;
    to.vectors = scales.vectors(controls.get());
    return to;
}

void TransformerBench::enqueue(cudaStream_t stream) const {
    const std::size_t each = kernel.matrices.size();
    std::vector<void*> matrices(each);
    for (std::size_t first = 0; first < memory.size(); first += each) {
        for (std::size_t i = 0; i < each; ++i) matrices[i] = memory[first + i].get();
        kernel.launch(*this, matrices.data(), stream);
    }
}

double TransformerBench::bytes() const {
    return bytes_per_element(kernel) * static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
}

}  // namespace fp8lab::cuda
