// The kernel of decode(): the layers of a token, and its launch.
#include "core/base/error.h"
#include "kernels/device/launching.cuh"
#include "kernels/infer/attention.cuh"
#include "kernels/infer/decode.h"

namespace fp8lab::cuda {
namespace {

// What all phases of a launch share.
template <DecodeWeights kW, int kTokens, class T>
class Layers {
  public:
    __device__ Layers(const DecodeModel& m, const DecodePlan& plan, const DecodeMatrix* matrices,
                      std::uint64_t* there, float* slots, float* factors, float* angles, bool* last)
        : m_(m),
          matrices_(matrices),
          memory_(dynamic_shared_memory()),
          x_{memory_ + kDecodeWarps * plan.depth * kDecodeBlockBytes, plan.x_stride, factors},
          sums_{reinterpret_cast<float*>(x_.at + plan.x_bytes), m.batch},
          scales_(reinterpret_cast<float*>(x_.at + plan.x_bytes + plan.sums_bytes)),
          slots_(slots),
          last_(last),
          units_(m, *m.length + 1),
          attention_(x_.at, angles, m.head_size),
          all_(m.barrier),
          stream_(m, matrices, memory_ + warp_number() * plan.depth * kDecodeBlockBytes,
                  there + warp_number() * kMostDecodeDepth, plan.depth) {}

    __device__ void run() {
        const auto nothing = [] {};
        for (int l = 0; l < m_.layers; ++l) {
            const float* const scales =
                m_.scales + static_cast<std::size_t>(l) * static_cast<std::size_t>(m_.layer_scales);
            const float* const gains =
                m_.gains + static_cast<std::size_t>(2 * l) * static_cast<std::size_t>(m_.d);
            of_norm(kQkv, scales, gains, l > 0);
            for_rows(kQkv, [&](int row, int token, float v) { m_.qkv[token * matrix(kQkv).rows + row] = v; });
            all_.arrive();
            ask_for_cache<T>(m_, units_, l);
            all_.wait();
            clear_amaxes(1);
            attend<T, kMostDecodeHead / 32>(m_, units_, l, attention_, last_);
            of_given(kOut, scales, static_cast<const __nv_bfloat16*>(m_.attended), 0);
            add_to_stream(kOut);
            of_norm(kGateUp, scales, gains + m_.d, true);
            clear_amaxes(0);
            gate();
            of_given(kDown, scales, static_cast<const __nv_bfloat16*>(m_.hidden), 1);
            add_to_stream(kDown);
        }
        if (m_.head) {
            of_norm(
                kHead,
                m_.scales + static_cast<std::size_t>(m_.layers) * static_cast<std::size_t>(m_.layer_scales),
                m_.gains + static_cast<std::size_t>(2 * m_.layers) * static_cast<std::size_t>(m_.d), true);
            for_rows(kHead, [&](int row, int token, float v) {
                m_.logits[static_cast<std::size_t>(token) * static_cast<std::size_t>(matrix(kHead).rows) +
                          static_cast<std::size_t>(row)] = v;
            });
        }
        all_.leave();
    }

  private:
    __device__ const DecodeMatrix& matrix(DecodeMatrixName name) const { return matrices_[name]; }
    __device__ static int row_of(int tile, int row) {
        return (static_cast<int>(blockIdx.x) + tile * static_cast<int>(gridDim.x)) * kDecodeTileRows + row;
    }
    __device__ void clear_amaxes(int which) const {
        if (blockIdx.x == 0 && threadIdx.x < kMostDecodeTokens)
            m_.amaxes[which * kMostDecodeTokens + static_cast<int>(threadIdx.x)] = 0;
    }
    // The scales of this block's rows, which nobody writes.
    __device__ void fetch_scales(const DecodeMatrix& w, const float* scales) const {
        for (int i = static_cast<int>(threadIdx.x); i < tiles_here(w) * kDecodeTileRows;
             i += kDecodeThreads) {
            const int row = row_of(i / kDecodeTileRows, i % kDecodeTileRows);
            scales_[i] = row < w.rows ? __ldg(scales + w.scales_at + row) : 0;
        }
    }
    // Sums of a matrix times the norm of the stream; `wait`: what is added to the stream before it must be there.
    __device__ void of_norm(DecodeMatrixName name, const float* scales, const float* gain, bool wait) {
        const DecodeMatrix& w = matrix(name);
        const NormInput in{m_.stream, gain, m_.batch, m_.d, w.blocks * block_k(kW), m_.inputs};
        if (wait) all_.arrive();
        NormTaker<kW, kTokens> norm(in);
        fetch_scales(w, scales);
        if (wait) all_.wait();
        norm.take(x_, slots_);
        multiply_slice<kW>(w, 0, stream_, x_, sums_);
    }
    __device__ void of_given(DecodeMatrixName name, const float* scales, const __nv_bfloat16* rows,
                             int amaxes) {
        const DecodeMatrix& w = matrix(name);
        const GivenInput in{rows, m_.amaxes + amaxes * kMostDecodeTokens, m_.batch, w.cols, m_.inputs};
        all_.arrive();
        fetch_scales(w, scales);
        all_.wait();
        for (int slice = 0; slice * w.slice < w.blocks; ++slice) {
            take_given<kW>(in, slice * w.slice * block_k(kW),
                           min(w.slice, w.blocks - slice * w.slice) * block_k(kW), x_);
            multiply_slice<kW>(w, slice, stream_, x_, sums_);
        }
    }
    __device__ float product(const DecodeMatrix& w, int tile, int row, int token) const {
        return sums_.total(w, tile, row, token) * (scales_[tile * kDecodeTileRows + row] * x_.factors[token]);
    }
    // body(row, token, value) for the rows of this block.
    template <class Body>
    __device__ void for_rows(DecodeMatrixName name, const Body& body) const {
        const DecodeMatrix& w = matrix(name);
        const int each = kDecodeTileRows * m_.batch, n = tiles_here(w) * each;
        for (int i = static_cast<int>(threadIdx.x); i < n; i += kDecodeThreads) {
            const int tile = i / each, token = i % each / kDecodeTileRows, row = i % kDecodeTileRows;
            if (row_of(tile, row) < w.rows) body(row_of(tile, row), token, product(w, tile, row, token));
        }
    }
    __device__ void add_to_stream(DecodeMatrixName name) const {
        for_rows(name, [&](int row, int token, float v) {
            float* const at = m_.stream + token * m_.d + row;
            *at = __ldcg(at) + v;
        });
    }
    // SwiGLU of the rows of this block.
    __device__ void gate() const {
        const DecodeMatrix& w = matrix(kGateUp);
        constexpr int kPairs = kDecodeTileRows / 2;
        const int n = tiles_here(w) * kPairs;
        for (int token = 0; token < m_.batch; ++token) {
            float most = 0;
            for (int i = static_cast<int>(threadIdx.x); i < n; i += kDecodeThreads) {
                const int tile = i / kPairs, pair = i % kPairs, at = row_of(tile, 2 * pair) / 2;
                if (at >= m_.ffn) continue;
                const float g = product(w, tile, 2 * pair, token), up = product(w, tile, 2 * pair + 1, token);
                const __nv_bfloat16 h = __float2bfloat16_rn(g / (1 + expf(-g)) * up);
                static_cast<__nv_bfloat16*>(m_.hidden)[token * m_.ffn + at] = h;
                most = larger(most, __bfloat162float(h));
            }
            if (warp_number() * 32 < n) raise(m_.amaxes + kMostDecodeTokens + token, most);
        }
    }

    const DecodeModel& m_;
    const DecodeMatrix* const matrices_;
    std::byte* const memory_;
    const SharedX x_;
    const Sums sums_;
    float *const scales_, *const slots_;
    bool* const last_;
    const Units units_;
    const AttentionShared attention_;
    AllBlocks all_;
    WeightStream stream_;
};

template <DecodeWeights kW, int kTokens, class T>
__global__ void __launch_bounds__(kDecodeThreads, 1)
    decode_kernel(const __grid_constant__ DecodeModel m, const __grid_constant__ DecodePlan plan) {
    __shared__ __align__(8) std::uint64_t there[kDecodeWarps * kMostDecodeDepth];
    __shared__ float slots[kDecodeWarps * kTokens], factors[kMostDecodeTokens], angles[kMostDecodeHead];
    __shared__ __align__(8) DecodeMatrix matrices[kDecodeMatrices];
    __shared__ bool last;
    const int at = static_cast<int>(threadIdx.x), half = m.head_size / 2;
    if (at < kDecodeMatrices) matrices[at] = m.matrix[at];
    if (at < half) {
        const std::size_t angle = static_cast<std::size_t>(*m.length) * static_cast<std::size_t>(half) +
                                  static_cast<std::size_t>(at);
        angles[at] = m.cos[angle];
        angles[half + at] = m.sin[angle];
    }
    __syncthreads();
    Layers<kW, kTokens, T>(m, plan, matrices, there, slots, factors, angles, &last).run();
}

template <DecodeWeights kW, int kTokens, class T>
void launch_decode(const DecodeModel& model, const DecodePlan& plan, cudaStream_t stream) {
    launch_together_with_memory("decode", decode_kernel<kW, kTokens, T>, static_cast<unsigned>(plan.blocks),
                                kDecodeThreads, static_cast<std::size_t>(plan.bytes), stream, model, plan);
}
template <DecodeWeights kW>
void launch_by_tokens(const DecodeModel& model, const DecodePlan& plan, DecodeCache cache,
                      cudaStream_t stream) {
    if (cache == DecodeCache::bf16)
        model.batch == 1 ? launch_decode<kW, 1, __nv_bfloat16>(model, plan, stream)
                         : launch_decode<kW, kMostDecodeTokens, __nv_bfloat16>(model, plan, stream);
    else
        model.batch == 1 ? launch_decode<kW, 1, std::uint8_t>(model, plan, stream)
                         : launch_decode<kW, kMostDecodeTokens, std::uint8_t>(model, plan, stream);
}

}  // namespace

void decode(const DecodeModel& model, const DecodePlan& plan, DecodeWeights weights, DecodeCache cache,
            cudaStream_t stream) {
    if (weights == DecodeWeights::bf16)
        launch_by_tokens<DecodeWeights::bf16>(model, plan, cache, stream);
    else
        launch_by_tokens<DecodeWeights::e4m3>(model, plan, cache, stream);
}

}  // namespace fp8lab::cuda
