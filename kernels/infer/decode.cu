// The kernel of decode(): the layers of a token, and its launch.
#include "core/base/error.h"
#include "kernels/device/launching.cuh"
#include "kernels/infer/attention.cuh"
#include "kernels/infer/decode.h"

namespace fp8lab::cuda {
namespace {

__device__ inline void clear_amaxes(int which) {
    if (blockIdx.x == 0 && threadIdx.x < kMostDecodeTokens)
        model().amaxes[which * kMostDecodeTokens + thread_number()] = 0;
}

// The scales of this block's rows, which nobody writes.
__device__ inline void fetch_scales(int step) {
    const DecodeMatrix& w = model().matrix[name_of(step)];
    const float* const scales =
        model().scales + static_cast<std::size_t>(step / 4) * static_cast<std::size_t>(model().layer_scales) +
        w.scales_at;
    for (int i = thread_number(); i < tiles_here(w) * kDecodeTileRows; i += kDecodeThreads) {
        const int row = row_of(i / kDecodeTileRows, i % kDecodeTileRows);
        shared_scales()[i] = row < w.rows ? __ldg(scales + row) : 0;
    }
}

// body(index, row, token, value) for the rows of this block.
template <class Body>
__device__ inline void for_rows(const DecodeMatrix& w, const Body& body) {
    const int each = kDecodeTileRows * model().batch, n = tiles_here(w) * each;
    for (int i = thread_number(); i < n; i += kDecodeThreads) {
        const int tile = i / each, token = i % each / kDecodeTileRows, row = i % kDecodeTileRows;
        if (row_of(tile, row) < w.rows) body(i, row_of(tile, row), token, product(w, tile, row, token));
    }
}
// Into Q, K, V or the logits.
__device__ inline void store_products(int name) {
    const DecodeMatrix& w = model().matrix[name];
    float* const to = name == kQkv ? model().qkv : model().logits;
    for_rows(w, [&](int, int row, int token, float v) {
        to[static_cast<std::size_t>(token) * static_cast<std::size_t>(w.rows) +
           static_cast<std::size_t>(row)] = v;
    });
}

// This block's rows of the stream, which stay in shared memory: the same of out and of down.
__device__ inline void take_stream() {
    const DecodeModel& m = model();
    const int each = kDecodeTileRows * m.batch, n = tiles_here(m.matrix[kOut]) * each;
    for (int i = thread_number(); i < n; i += kDecodeThreads) {
        const int at = row_of(i / each, i % kDecodeTileRows), token = i % each / kDecodeTileRows;
        if (at < m.d) shared_stream()[i] = m.stream[token * m.d + at];
    }
}
__device__ inline void add_to_stream(int name) {
    const DecodeModel& m = model();
    float* const own = shared_stream();
    for_rows(m.matrix[name], [&](int i, int row, int token, float v) {
        own[i] += v;
        m.stream[token * m.d + row] = own[i];
    });
}

// SwiGLU of the rows of this block. A warp has one token at a time.
__device__ inline void gate() {
    const DecodeModel& m = model();
    const DecodeMatrix& w = m.matrix[kGateUp];
    constexpr int kPairs = kDecodeTileRows / 2;
    const int n = tiles_here(w) * kPairs, turns = (n + 31) / 32;
    for (int turn = warp_number(); turn < turns * m.batch; turn += kDecodeWarps) {
        const int token = turn / turns, i = turn % turns * 32 + lane_number();
        const int tile = i / kPairs, pair = i % kPairs, at = row_of(tile, 2 * pair) / 2;
        float most = 0;
        if (i < n && at < m.ffn) {
            const float g = product(w, tile, 2 * pair, token), up = product(w, tile, 2 * pair + 1, token);
            most = larger(
                most, give(m.hidden, static_cast<std::size_t>(token * m.ffn + at), g / (1 + expf(-g)) * up));
        }
        raise(block().amaxes + token, most);
    }
    __syncthreads();
    if (thread_number() < m.batch) {
        atomicMax(m.amaxes + kMostDecodeTokens + thread_number(), block().amaxes[thread_number()]);
        block().amaxes[thread_number()] = 0;
    }
}

template <DecodeCast kCast>
__device__ inline void multiply(int step, int times) {
    const int name = name_of(step);
    const DecodeMatrix& w = model().matrix[name];
    fetch_scales(step);
    for (int slice = 0; slice * w.slice < w.blocks; ++slice) {
        Weights weights(step, slice);
        if (name == kOut || name == kDown) {
            if (slice == 0)
                wait_for_blocks(times);
            else
                __syncthreads();
            take_given<kCast>(name, slice);
        } else {
            take_norm<kCast>(step, times);
        }
        __syncthreads();
        multiply_slice<weights_of(kCast)>(w, slice, weights);
    }
    __syncthreads();
}

// A step after the other: its input, the products, and what is done with them.
template <DecodeCast kCast, class T>
__device__ inline void run() {
    const int steps = step_count();
    int times = 0;
    take_stream();
    for (int step = 0; step < steps; ++step) {
        const int name = name_of(step);
        if (step > 0) arrive(), ++times;
        multiply<kCast>(step, times);
        if (name == kQkv) {
            store_products(name);
            arrive();
            clear_amaxes(1);
            attend<T, kMostDecodeHead / 32>(step / 4, ++times);
        } else if (name == kGateUp) {
            clear_amaxes(0);
            gate();
        } else if (name == kHead) {
            store_products(name);
        } else {
            add_to_stream(name);
        }
    }
    leave();
}

template <DecodeCast kCast, class T>
__global__ void __launch_bounds__(kDecodeThreads, 1)
    decode_kernel(const __grid_constant__ DecodeModel m, const __grid_constant__ DecodePlan plan) {
    const int at = thread_number(), half = m.head_size / 2;
    BlockState& state = block();
    if (at == 0) {
        state.m = m;
        state.plan = plan;
    }
    if (at < kMostDecodeTokens) state.amaxes[at] = 0;
    if (at < half) {
        const std::size_t angle = static_cast<std::size_t>(*m.length) * static_cast<std::size_t>(half) +
                                  static_cast<std::size_t>(at);
        state.angles[at] = m.cos[angle];
        state.angles[half + at] = m.sin[angle];
    }
    __syncthreads();
    run<kCast, T>();
}

template <DecodeCast kCast, class T>
void launch_decode(const DecodeModel& model, const DecodePlan& plan, cudaStream_t stream) {
    launch_together_with_memory("decode", decode_kernel<kCast, T>, static_cast<unsigned>(plan.blocks),
                                kDecodeThreads, static_cast<std::size_t>(plan.bytes), stream, model, plan);
}
template <DecodeCast kCast>
void launch_by_cache(const DecodeModel& model, const DecodePlan& plan, DecodeCache cache,
                     cudaStream_t stream) {
    cache == DecodeCache::bf16 ? launch_decode<kCast, __nv_bfloat16>(model, plan, stream)
                               : launch_decode<kCast, std::uint8_t>(model, plan, stream);
}

}  // namespace

void decode(const DecodeModel& model, const DecodePlan& plan, DecodeWeights weights, DecodeCache cache,
            cudaStream_t stream) {
    if (weights == DecodeWeights::bf16)
        launch_by_cache<DecodeCast::bf16>(model, plan, cache, stream);
    else if (model.inputs == DecodeInputs::bf16)
        launch_by_cache<DecodeCast::f16>(model, plan, cache, stream);
    else
        launch_by_cache<DecodeCast::e4m3>(model, plan, cache, stream);
}

}  // namespace fp8lab::cuda
