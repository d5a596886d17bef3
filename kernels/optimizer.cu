// The optimisers of core/nn/optimizer.cpp, operation by operation, so that equal gradients give equal
// weights.
#include "kernels/tile.cuh"

namespace fp8lab::cuda {
namespace {

struct Factors {
    float rate, spread, decay;
    bool adamw;
};

// One weight; m and v as in core/nn/optimizer.h.
__device__ inline float updated(const Factors& f, float w, float g, float& m, float& v) {
    if (!f.adamw) return w - (f.decay * w + f.rate * g);
    constexpr float kBeta1 = 0.9F, kBeta2 = 0.999F, kEps = 1e-8F;
    constexpr auto kNew1 = static_cast<float>(1 - 0.9), kNew2 = static_cast<float>(1 - 0.999);
    m = kBeta1 * m + kNew1 * g;
    v = kBeta2 * v + kNew2 * g * g;
    return w - f.decay * w - f.rate * m / (sqrtf(v) * f.spread + kEps);
}

__device__ inline Factors factors_of(const StepInput* inputs, int slots, const ArmState* arm, bool adamw) {
    const StepInput input = inputs[arm->step % slots];
    return {adamw ? input.rate : input.lr, input.spread, input.decay, adamw};
}

struct Update {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = 2;
    struct Raw {
        Packed<float> w, g, m, v;
    };
    UpdateSource u;
    Factors factors{};
    bool alive = true;
    __device__ void prepare(int) {
        factors = factors_of(u.inputs, u.input_slots, u.arm, u.m != nullptr);
        alive = u.arm->alive != 0;
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        const std::size_t at = static_cast<std::size_t>(r) * s.padded_cols + c;
        Raw raw{fetch8(u.w + at), fetch8(u.g + at), {}, {}};
        if (factors.adamw) raw.m = fetch8(u.m + at), raw.v = fetch8(u.v + at);
        return raw;
    }
    __device__ void values(const Raw& raw, int r, int c, bool real, Shape s, Eight& w) const {
        unpack(raw.w, w);
        if (!real || !alive) return;
        const std::size_t at = static_cast<std::size_t>(r) * s.padded_cols + c;
        Eight g, m, v;
        unpack(raw.g, g);
        unpack(raw.m, m);
        unpack(raw.v, v);
        bool finite = true;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) {
            w[j] = updated(factors, w[j], g[j], m[j], v[j]);
            finite = finite && isfinite(w[j]);
        }
        store8(u.w + at, w);
        if (factors.adamw) store8(u.m + at, m), store8(u.v + at, v);
        if (!finite) *u.finite = 0;
    }
};

__global__ void bias_kernel(BiasUpdates updates, const StepInput* inputs, int slots, const ArmState* arm,
                            std::int32_t* finite) {
    wait_for_the_kernel_before();
    const BiasUpdate& u = updates.layer[blockIdx.y];
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= u.count) return;
    float g = 0;
    for (int tile = 0; tile < u.tiles; ++tile) g += u.partials[static_cast<std::size_t>(tile) * u.padded + i];
    u.db[i] = g;
    if (!arm->alive) return;
    const Factors factors = factors_of(inputs, slots, arm, u.m != nullptr);
    float m = factors.adamw ? u.m[i] : 0, v = factors.adamw ? u.v[i] : 0;
    const float b = updated(factors, u.b[i], g, m, v);
    u.b[i] = b;
    if (factors.adamw) u.m[i] = m, u.v[i] = v;
    if (!isfinite(b)) *finite = 0;
}

__global__ void finish_step_kernel(const std::int32_t* finite, StepResult* records, ArmState* arm) {
    wait_for_the_kernel_before();
    if (*finite == 0) arm->alive = 0;
    records[arm->step % kRecordSlots].alive = arm->alive;
    ++arm->step;
}

}  // namespace

template <>
constexpr bool kManyScales<Update> = false;  // weights cannot be updated twice

void update_weights(const UpdateSource& source, Shape shape, const CastTarget& target, cudaStream_t stream) {
    launch_cast(Update{source}, shape, target, Pass::cast, stream);
}

void update_biases(const BiasUpdates& updates, const StepInput* inputs, int input_slots, const ArmState* arm,
                   std::int32_t* finite, cudaStream_t stream) {
    constexpr int kBlock = 128;
    int widest = 1;
    for (int l = 0; l < updates.layers; ++l)
        widest = updates.layer[l].count > widest ? updates.layer[l].count : widest;
    const dim3 grid(static_cast<unsigned>((widest + kBlock - 1) / kBlock),
                    static_cast<unsigned>(updates.layers));
    launch("update_biases", bias_kernel, grid, kBlock, stream, updates, inputs, input_slots, arm, finite);
}

void finish_step(const std::int32_t* finite, StepResult* records, ArmState* arm, cudaStream_t stream) {
    launch("finish_step", finish_step_kernel, dim3(1), 1, stream, finite, records, arm);
}

}  // namespace fp8lab::cuda
