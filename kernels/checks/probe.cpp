#include "kernels/checks/probe.h"

#include <string>

#include "core/base/error.h"
#include "kernels/device/random_fill.h"
#include "kernels/gemm/lt_handles.h"

namespace fp8lab::cuda {
namespace {

constexpr int kSize = 256;                         // of the products that are tried
constexpr std::size_t kBytes = kSize * kSize * 4;  // the largest matrix, and more than any mode's scales

// Operands, scales and output of any product of that size.
struct Matrices {
    explicit Matrices(cudaStream_t stream) : a(kBytes), b(kBytes), d(kBytes), scales(kBytes / sizeof(float)) {
        fill_random(a.get(), Element::e4m3, kBytes, 1, stream);
        fill_random(b.get(), Element::e4m3, kBytes, 2, stream);
        scales.upload(std::vector<float>(scales.size(), 1.0F));
    }
    Memory a, b, d;
    Buffer<float> scales;
};

struct Planned {
    const char* name;
    GemmSpec spec;
};

std::vector<Planned> planned() {
    constexpr Element kE4 = Element::e4m3, kE5 = Element::e5m2, kWide = Element::bf16;
    using enum ScaleMode;
    const auto fp8 = [](Element a, Element b, Element d, ScaleMode a_scale, ScaleMode b_scale, bool fast) {
        return GemmSpec{Product::nt, kSize, kSize, kSize, a, b, d, a_scale, b_scale, fast};
    };
    return {{"BF16", {Product::nt, kSize, kSize, kSize, kWide, kWide, kWide}},
            {"FP8 E4M3, tensor scales", fp8(kE4, kE4, kWide, tensor, tensor, false)},
            {"FP8 E4M3, tensor scales, fast accumulation", fp8(kE4, kE4, kWide, tensor, tensor, true)},
            {"FP8 E5M2 x E4M3 to FP32, tensor scales", fp8(kE5, kE4, Element::f32, tensor, tensor, false)},
            {"FP8 E4M3, row scales (OUTER_VEC)", fp8(kE4, kE4, kWide, row, row, false)},
            {"FP8 E4M3, 1x128 x 128x128 scales", fp8(kE4, kE4, kWide, block128, square128, false)},
            {"FP8 E4M3, 1x128 x 1x128 scales", fp8(kE4, kE4, kWide, block128, block128, false)},
            {"MXFP8 E4M3, 1x32 E8M0 scales", fp8(kE4, kE4, kWide, block32, block32, false)}};
}

// What no recipe uses on the tensor cores, but a card may have.
struct Bare {
    const char* name;
    cudaDataType_t operands, output;
    cublasLtMatmulMatrixScale_t scales;
    cublasOperation_t first = CUBLAS_OP_T;
};
constexpr Bare kBare[] = {
    {"NVFP4, 1x16 E4M3 scales", CUDA_R_4F_E2M1, CUDA_R_16BF, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3},
    {"FP8 E4M3 to E4M3, tensor scales", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3,
     CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F},
    {"FP8 E4M3, operand not along k (NN)", CUDA_R_8F_E4M3, CUDA_R_16BF,
     CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, CUBLAS_OP_N}};

void run_planned(const Lt& lt, const GemmSpec& spec, const Matrices& on, cudaStream_t stream) {
    const GemmPlan plan(lt, spec, stream);
    const float* scales = spec.a_scale == ScaleMode::none ? nullptr : on.scales.get();
    plan.run(on.a.get(), on.b.get(), on.d.get(), scales, scales, stream);
}

void run_bare(const Lt& lt, const Bare& mode, const Matrices& on, cudaStream_t stream) {
    Desc desc;
    check_lt(cublasLtMatmulDescCreate(&desc.handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), mode.name);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
        check_lt(cublasLtMatmulDescSetAttribute(desc.handle, attribute, &value, sizeof value), mode.name);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, mode.first);
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, static_cast<std::int32_t>(mode.scales));
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, static_cast<std::int32_t>(mode.scales));
    const float* scales = on.scales.get();
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales);
    // C names the type beside which an FP8 output is allowed; nothing is read from it (beta is 0).
    Layout operand, c, d;
    check_lt(cublasLtMatrixLayoutCreate(&operand.handle, mode.operands, kSize, kSize, kSize), mode.name);
    check_lt(cublasLtMatrixLayoutCreate(&c.handle, CUDA_R_16BF, kSize, kSize, kSize), mode.name);
    check_lt(cublasLtMatrixLayoutCreate(&d.handle, mode.output, kSize, kSize, kSize), mode.name);
    Preference preference;
    check_lt(cublasLtMatmulPreferenceCreate(&preference.handle), mode.name);
    const std::size_t workspace = lt.workspace_bytes();
    check_lt(cublasLtMatmulPreferenceSetAttribute(preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &workspace, sizeof workspace),
             mode.name);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    check_lt(cublasLtMatmulAlgoGetHeuristic(lt.handle(), desc.handle, operand.handle, operand.handle,
                                            c.handle, d.handle, preference.handle, 1, &found, &count),
             mode.name);
    if (count == 0) throw Error(ErrorKind::backend, mode.name, "cuBLASLt has no algorithm for it");
    constexpr float kOne = 1, kZero = 0;
    const Memory unused(kBytes);
    check_lt(cublasLtMatmul(lt.handle(), desc.handle, &kOne, on.a.get(), operand.handle, on.b.get(),
                            operand.handle, &kZero, unused.get(), c.handle, on.d.get(), d.handle, &found.algo,
                            lt.workspace(), lt.workspace_bytes(), stream),
             mode.name);
    check(cudaStreamSynchronize(stream), mode.name);
}

template <class Run>
Capability tried(const char* name, Run&& run, cudaStream_t stream) {
    try {
        run();
        check(cudaStreamSynchronize(stream), name);
        return {name, true, ""};
    } catch (const Error& refused) {
        return {name, false, refused.why()};
    }
}

}  // namespace

std::vector<Capability> probe_capabilities(const Lt& lt, cudaStream_t stream) {
    const Matrices on(stream);
    std::vector<Capability> found;
    for (const Planned& mode : planned())
        found.push_back(tried(
            mode.name, [&] { run_planned(lt, mode.spec, on, stream); }, stream));
    for (const Bare& mode : kBare)
        found.push_back(tried(
            mode.name, [&] { run_bare(lt, mode, on, stream); }, stream));
    return found;
}

}  // namespace fp8lab::cuda
