// Updates that leave moments in 16 or 8 bits, or weights in BF16.
#include "core/base/error.h"
#include "kernels/optimizer/moments.cuh"

namespace fp8lab::cuda {
namespace {

constexpr float kLarge = 10;  // times the learning rate: StepRecord::large_updates_ppm

// The source of a cast that updates as it goes, as Update.
template <class Gradient, int kIs>
struct RoundedUpdate {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = Gradient::kAhead;
    struct Raw {
        RawMoments w;
        typename Gradient::Raw g;
        RawMoments m, v;
    };
    UpdateSource u;
    Gradient gradient;
    AdamWConstants adamw = constants_of(u.adamw);
    Factors factors{};
    bool alive = true;
    float large = 0;
    std::uint64_t m_stream = 0, v_stream = 0, w_stream = 0;
    unsigned zeros = 0, larges = 0;

    // Weights are FP32 where the moments are all alike.
    static constexpr int kWeights = kIs == kAny ? kAny : static_cast<int>(Element::f32);
    __device__ MomentStore weights() const { return {u.element, false, nullptr}; }

    __device__ void prepare(int) {
        factors = factors_of(u.inputs, u.input_slots, u.arm, true, u.gradient_factor);
        alive = u.arm->alive != 0;
        large = kLarge * u.inputs[u.arm->step % u.input_slots].lr;
        const auto dice = [&](unsigned what) {
            return stream(Draw::update, u.rounded.layer, u.arm->step, what);
        };
        m_stream = dice(1), v_stream = dice(2), w_stream = dice(3);
        gradient.prepare();
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        const std::size_t at = static_cast<std::size_t>(r) * s.padded_cols + c;
        return {fetch_moments<kWeights>(u.w, weights(), at), gradient.fetch(r, c, s),
                fetch_moments<kIs>(u.m, u.rounded.m, at), fetch_moments<kIs>(u.v, u.rounded.v, at)};
    }
    // Lanes of a warp share scales: rows that are not real go along, and store nothing.
    __device__ void values(const Raw& raw, int r, int c, bool real, Shape s, Eight& w) {
        unpack_moments<kWeights>(raw.w, weights(), w);
        if (!alive) return;
        Eight g, m, v, move;
        gradient.values(raw.g, r, c, g);
        unpack_moments<kIs>(raw.m, u.rounded.m, m);
        unpack_moments<kIs>(raw.v, u.rounded.v, v);
        moves_of_eight(factors, adamw, g, m, v, move);
        float most = 0, most_moved = 0;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) {
            w[j] = w[j] - factors.decay * w[j] - move[j];
            most = larger(most, w[j]);
            most_moved = fmaxf(most_moved, fabsf(move[j]));
        }
        const MomentPlace place{static_cast<std::size_t>(r) * s.padded_cols + c,
                                static_cast<std::uint64_t>(r) * s.cols + c, real};
        if (kIs == kAny && u.rounded.weights) round_weights(w, place.first);
        if (real && element_of<kWeights>(weights()) == Element::f32)
            store8_streaming(static_cast<float*>(u.w) + place.at, w);
        else if (real)
            store8_streaming(static_cast<__nv_bfloat16*>(u.w) + place.at, w);
        keep_moments<kIs>(u.m, u.rounded.m, m, place, u.rounded.seed, m_stream);
        const unsigned became_zero = keep_moments<kIs>(u.v, u.rounded.v, v, place, u.rounded.seed, v_stream);
        if (!real) return;
        zeros += became_zero;
        if (most_moved > large)
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) larges += fabsf(move[j]) > large;
        if (!isfinite(most)) *u.finite = 0;
    }
    __device__ void round_weights(Eight& w, std::uint64_t first) const {
        if (u.rounded.weights_stochastic)
            to_bf16(w, w, u.rounded.seed, w_stream, first);
        else
            to_bf16(w, w);
    }
    // After the tile.
    __device__ void finish() {
        if (!u.rounded.counts) return;
        const unsigned z = __reduce_add_sync(0xFFFFFFFFu, zeros), l = __reduce_add_sync(0xFFFFFFFFu, larges);
        if (threadIdx.x % 32 != 0) return;
        if (z) atomicAdd(&u.rounded.counts->zeros, static_cast<unsigned long long>(z));
        if (l) atomicAdd(&u.rounded.counts->large, static_cast<unsigned long long>(l));
    }
};

}  // namespace

template <class Gradient, int kIs>
constexpr bool kManyScales<RoundedUpdate<Gradient, kIs>> = false;  // weights cannot be updated twice
template <class Gradient, int kIs>
constexpr bool kMayBeE5m2<RoundedUpdate<Gradient, kIs>> = false;
template <class Gradient, int kIs>
constexpr int kBlocksAtOnce<RoundedUpdate<Gradient, kIs>> = kIs == kAny ? 2 : 3;

namespace {

// Four values of a matrix whose groups of 128 run across its rows: what a thread works on, of the group that its warp has.
struct FourOfGroup {
    static constexpr int kFour = 4;
    using Values = float[kFour];
    Shape s;
    std::size_t group, first;  // of the flattened matrix
    std::uint64_t seed;

    __device__ bool real(int j) const { return first + j < static_cast<std::size_t>(s.rows) * s.cols; }
    __device__ std::size_t place(int j) const {
        return (first + j) / s.cols * s.padded_cols + (first + j) % s.cols;
    }
    __device__ void load(const void* from, Element element, Values& x) const {
        for (int j = 0; j < kFour; ++j)
            x[j] = !real(j) ? 0
                   : element == Element::f32
                       ? static_cast<const float*>(from)[place(j)]
                       : __bfloat162float(static_cast<const __nv_bfloat16*>(from)[place(j)]);
    }
    __device__ void store(void* to, Element element, const Values& x) const {
        for (int j = 0; j < kFour; ++j) {
            if (!real(j)) continue;
            if (element == Element::f32)
                static_cast<float*>(to)[place(j)] = x[j];
            else
                static_cast<__nv_bfloat16*>(to)[place(j)] = __float2bfloat16_rn(x[j]);
        }
    }
    __device__ void round(Values& x, bool stochastic, std::uint64_t dice) const {
        if (stochastic)
            to_bf16(x, x, seed, dice, first);
        else
            to_bf16(x, x);
    }
    // Codes have no padding, and there are whole groups of them.
    __device__ void read(const void* moment, const MomentStore& how, Values& x) const {
        if (bytes_of(how.element) > 1) return load(moment, how.element, x);
        const auto* const codes = static_cast<const std::uint8_t*>(moment) + first;
        decode4(how.element, *reinterpret_cast<const std::uint32_t*>(codes), how.scale_inv[group], x);
    }
    // Returns how many became 0.
    __device__ unsigned keep(void* moment, const MomentStore& how, const Values& x,
                             std::uint64_t dice) const {
        if (bytes_of(how.element) > 1) {
            unsigned zeros = 0;
            Values kept = {x[0], x[1], x[2], x[3]};
            if (how.element == Element::bf16) round(kept, how.stochastic, dice);
            store(moment, how.element, kept);
            for (int j = 0; j < kFour; ++j) zeros += x[j] != 0 && kept[j] == 0;
            return zeros;
        }
        const auto codes = group_codes<kAny>(how, x, seed, dice, first);
        *reinterpret_cast<std::uint32_t*>(static_cast<std::uint8_t*>(moment) + first) = codes.words[0];
        if (threadIdx.x % 32 == 0) how.scale_inv[group] = codes.scale_inv;
        return became_zero(codes, x);
    }
};

// A warp takes a group.
template <class G>
__global__ void __launch_bounds__(kThreads)
    groups_kernel(RoundedUpdate<StoredGradient<G, 1>, kAny> source, Shape s) {
    wait_for_the_kernel_before();
    source.prepare(0);
    const UpdateSource& u = source.u;
    const Factors& f = source.factors;
    if (!source.alive) return;
    const std::size_t n = static_cast<std::size_t>(s.rows) * s.cols, groups = (n + kTileCols - 1) / kTileCols;
    constexpr int kWarps = kThreads / 32;
    for (std::size_t group = static_cast<std::size_t>(blockIdx.x) * kWarps + threadIdx.x / 32; group < groups;
         group += static_cast<std::size_t>(gridDim.x) * kWarps) {
        const FourOfGroup four{s, group, group * kTileCols + threadIdx.x % 32 * FourOfGroup::kFour,
                               u.rounded.seed};
        FourOfGroup::Values w, g, m, v;
        four.load(u.w, u.element, w);
        four.load(u.g, u.g_element, g);
        four.read(u.m, u.rounded.m, m);
        four.read(u.v, u.rounded.v, v);
        for (int j = 0; j < FourOfGroup::kFour; ++j) {
            new_moments(source.adamw, g[j] * f.gradient, m[j], v[j]);
            const float move = f.rate * m[j] / (sqrtf(v[j]) * f.spread + source.adamw.eps);
            w[j] = w[j] - f.decay * w[j] - move;
            if (!isfinite(w[j])) *u.finite = 0;
            source.larges += fabsf(move) > source.large;
        }
        if (u.rounded.weights) four.round(w, u.rounded.weights_stochastic, source.w_stream);
        four.store(u.w, u.element, w);
        four.keep(u.m, u.rounded.m, m, source.m_stream);
        source.zeros += four.keep(u.v, u.rounded.v, v, source.v_stream);
    }
    source.finish();
}

template <class G>
void launch_groups(const WeightUpdate& update, cudaStream_t stream) {
    const auto& [source, s, target] = update;
    constexpr long long kMostBlocks = 132 * 8, kOfBlock = kTileCols * (kThreads / 32);
    const long long n = static_cast<long long>(s.rows) * s.cols;
    const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, (n + kOfBlock - 1) / kOfBlock));
    launch("update of weights", groups_kernel<G>, dim3(blocks), kThreads, stream,
           RoundedUpdate<StoredGradient<G, 1>, kAny>{source, {static_cast<const G*>(source.g)}}, s);
    if (target.rows || target.state) cast_matrix(source.w, source.element, s, target, Pass::cast, stream);
}

template <class G, int kIs>
void launch_rounded(std::span<const WeightUpdate> updates, const Share& share, cudaStream_t stream) {
    using Source = RoundedUpdate<StoredGradient<G, 1>, kIs>;
    const CastTarget& target = updates.front().target;
    if (target.scaling != ScaleMode::tensor || target.element == Element::e5m2)
        throw Error(ErrorKind::backend, "update of weights", "weights are cast to E4M3 with one scale");
    if (target.element == Element::e4m3)
        launch_updates_to<Source, ToFp8<__NV_E4M3>>(updates, share, stream);
    else if (target.element == Element::bf16)
        launch_updates_to<Source, ToBf16>(updates, share, stream);
    else
        launch_updates<Source, ToF32, Gather::nothing>(updates, share, stream);
}

template <class G>
void launch_as_kept(std::span<const WeightUpdate> updates, const Share& share, cudaStream_t stream) {
    const UpdateSource& source = updates.front().source;
    const MomentStore &m = source.rounded.m, &v = source.rounded.v;
    if (has_groups_across_rows(updates.front())) return launch_groups<G>(updates.front(), stream);
    if (source.element == Element::f32 && !source.rounded.weights && m.element == Element::e4m3 &&
        v.element == Element::e4m3 && !m.stochastic && !v.stochastic)
        return launch_rounded<G, static_cast<int>(Element::e4m3)>(updates, share, stream);
    launch_rounded<G, kAny>(updates, share, stream);
}

}  // namespace

void update_rounded(std::span<const WeightUpdate> updates, const Share& share, cudaStream_t stream) {
    if (updates.front().source.g_element == Element::f32)
        launch_as_kept<float>(updates, share, stream);
    else
        launch_as_kept<__nv_bfloat16>(updates, share, stream);
}

}  // namespace fp8lab::cuda
