// cuBLASLt's products on the CPU: column-major D = op(A) op(B), operands dequantised by their scales, sums in FP32.
// One algorithm, no workspace.
#include <cublasLt.h>

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "core/formats/codec.h"
#include "tests/simulator/runtime.h"

namespace {

using namespace fp8lab;

struct Description {
    std::map<int, std::uint64_t> attributes;
    template <class T>
    T get(cublasLtMatmulDescAttributes_t which) const {
        T value{};
        const auto known = attributes.find(which);
        if (known != attributes.end()) std::memcpy(&value, &known->second, sizeof value);
        return value;
    }
};
struct Layout {
    cudaDataType_t type = CUDA_R_32F;
    std::int64_t rows = 0, cols = 0, ld = 0;
};

template <class T>
T& as(void* opaque) {
    return *static_cast<T*>(opaque);
}

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic>;  // column-major

float decoded(const void* from, cudaDataType_t type, std::int64_t i) {
    switch (type) {
        case CUDA_R_32F:
            return static_cast<const float*>(from)[i];
        case CUDA_R_16BF:
            return std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(from)[i])
                                        << 16);
        case CUDA_R_8F_E4M3:
        case CUDA_R_8F_E5M2: {
            static const auto table = [](const char* format) {
                std::vector<float> values(256);
                for (unsigned code = 0; code < 256; ++code) values[code] = decode(find_format(format), code);
                return values;
            };
            static const std::vector<float> e4m3 = table("e4m3"), e5m2 = table("e5m2");
            return (type == CUDA_R_8F_E4M3 ? e4m3 : e5m2)[static_cast<const std::uint8_t*>(from)[i]];
        }
        default:
            return NAN;
    }
}

// The scale of element i along K of vector v of an operand of `vectors` vectors: kernels/gemm/gemm.h has the layouts.
float scale_of(const float* scales, std::int32_t mode, std::int64_t v, std::int64_t i, std::int64_t vectors,
               std::int64_t k) {
    constexpr std::int64_t kBlock = 128;
    if (!scales) return 1;
    switch (mode) {
        case CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F:
            return scales[v];
        case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F:
            return scales[i / kBlock * vectors + v];
        case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F:
            return scales[v / kBlock * (((k + kBlock - 1) / kBlock + 3) / 4 * 4) + i / kBlock];
        default:
            return scales[0];
    }
}

// op(A) (m, k) or op(B) (k, n). `along_rows`: K is the rows of the result.
Matrix operand(const void* from, const Layout& layout, cublasOperation_t op, bool along_rows,
               const float* scales, std::int32_t mode) {
    const std::int64_t rows = op == CUBLAS_OP_N ? layout.rows : layout.cols,
                       cols = op == CUBLAS_OP_N ? layout.cols : layout.rows;
    Matrix out(rows, cols);
    for (std::int64_t c = 0; c < cols; ++c)
        for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t at = op == CUBLAS_OP_N ? c * layout.ld + r : r * layout.ld + c;
            const float scale = along_rows ? scale_of(scales, mode, c, r, cols, rows)
                                           : scale_of(scales, mode, r, c, rows, cols);
            out(r, c) = decoded(from, layout.type, at) * scale;
        }
    return out;
}

void store(const Matrix& result, const Layout& layout, void* to) {
    for (std::int64_t c = 0; c < result.cols(); ++c)
        for (std::int64_t r = 0; r < result.rows(); ++r) {
            const float value = result(r, c);
            const std::int64_t at = c * layout.ld + r;
            if (layout.type == CUDA_R_32F)
                static_cast<float*>(to)[at] = value;
            else
                static_cast<std::uint16_t*>(to)[at] = static_cast<std::uint16_t>(
                    encode(find_format("bf16"), value, Rounding::nearest, Overflow::nonsaturate));
        }
}

bool takes_mode(std::int32_t mode) {
    return mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F ||
           mode == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F ||
           mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F ||
           mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
}

template <class T>
cublasStatus_t make(T** out, auto* made) {
    *out = reinterpret_cast<T*>(made);
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete reinterpret_cast<int*>(handle);
    return CUBLAS_STATUS_SUCCESS;
}
std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
const char* cublasLtGetStatusName(cublasStatus_t) { return "simulated status"; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "simulated status"; }
cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetFile(FILE*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetMask(int) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t, cudaDataType_t) {
    return make(desc, new Description);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    delete reinterpret_cast<Description*>(desc);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, value, bytes);
    as<Description>(desc).attributes[which] = word;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
    return make(layout,
                new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols), ld});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete reinterpret_cast<Layout*>(layout);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
                                                const void*, std::size_t) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    return make(preference, new int(0));
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete reinterpret_cast<int*>(preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t, const void*,
                                                    std::size_t) {
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
    *count = 0;
    const auto& d = as<Description>(desc);
    const cudaDataType_t type = as<Layout>(a).type;
    if (type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2)
        for (const auto which : {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE})
            if (!takes_mode(d.get<std::int32_t>(which))) return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0] = {};
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t*, cublasLtMatmulHeuristicResult_t* result) {
    *result = {};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*,
                              std::size_t, cudaStream_t) {
    // What the description says now: a graph keeps it.
    const float factor = *static_cast<const float*>(alpha), of_c = *static_cast<const float*>(beta);
    simulator::enqueue([=, how = as<Description>(desc), la = as<Layout>(a_layout), lb = as<Layout>(b_layout),
                        lc = as<Layout>(c_layout), ld = as<Layout>(d_layout)] {
        const auto op = [&](cublasLtMatmulDescAttributes_t which) {
            return static_cast<cublasOperation_t>(how.get<std::int32_t>(which));
        };
        const Matrix left = operand(a, la, op(CUBLASLT_MATMUL_DESC_TRANSA), false,
                                    how.get<const float*>(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER),
                                    how.get<std::int32_t>(CUBLASLT_MATMUL_DESC_A_SCALE_MODE)),
                     right = operand(b, lb, op(CUBLASLT_MATMUL_DESC_TRANSB), true,
                                     how.get<const float*>(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER),
                                     how.get<std::int32_t>(CUBLASLT_MATMUL_DESC_B_SCALE_MODE));
        Matrix product = factor * (left * right);
        if (of_c != 0)  // zero: C is not read
            product += of_c * operand(c, lc, CUBLAS_OP_N, false, nullptr, 0);
        store(product, ld, d);
    });
    return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
