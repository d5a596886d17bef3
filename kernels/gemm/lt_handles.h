// cuBLASLt's C handles as objects, and its status codes as text.
#pragma once

#include <cublasLt.h>

#include <string>

#include "kernels/device/launch.h"

namespace fp8lab::cuda {

std::string words(cublasStatus_t status);  // "CUBLAS_STATUS_NOT_SUPPORTED (15)"

// Throws Error{backend, where, "cuBLASLt refuses it: ..."} unless `status` is success.
void check_lt(cublasStatus_t status, const std::string& where);

// The scale mode of an operand in cuBLASLt's terms; without scales, that of one scale.
cublasLtMatmulMatrixScale_t lt_mode(ScaleMode mode);

// A handle of any kind with its destructor.
template <class Handle, cublasStatus_t (*kDestroy)(Handle)>
struct Owned {
    Handle handle = nullptr;
    Owned() = default;
    ~Owned() {
        if (handle) kDestroy(handle);
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
};
using Desc = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

}  // namespace fp8lab::cuda
