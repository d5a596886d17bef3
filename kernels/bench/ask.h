// Asks cuBLASLt for products without the rules that gemm.cpp checks first: any size and any type; the answer is the
// library's. For benches and for lab L9, which shows refusals; training uses GemmPlan.
#pragma once

#include <cublasLt.h>

#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/lt_handles.h"

namespace fp8lab::cuda {

// Row-major, as GemmSpec has them: D (m, n), `groups` of them, the operands of one behind those of the other.
struct LtSpec {
    Product product = Product::nt;
    int m = 0, n = 0, k = 0;
    cudaDataType_t a = CUDA_R_16BF, b = CUDA_R_16BF, d = CUDA_R_16BF;
    int a_scale = -1, b_scale = -1;  // cublasLtMatmulMatrixScale_t; -1: the type has none
    bool fast_accum = false;         // FP8 only
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    int groups = 1;
};
LtSpec lt_spec(const GemmSpec& spec, int groups = 1);

struct LtOperands {
    const void *a = nullptr, *b = nullptr;
    void* d = nullptr;
    const void *a_scale = nullptr, *b_scale = nullptr;  // null where there is none
};

// status 0: the product runs. Else this says which call refused it ("heuristic" or "matmul") and why: the name of the
// status, and the text of cuBLASLt's log.
struct Answer {
    int status = 0;
    std::string from, words;
};

class LtProduct {
  public:
    // Asks the heuristic for at most `most` algorithms. Does not throw for a refusal: answer() has it, and there
    // are then no candidates.
    LtProduct(const Lt& lt, const LtSpec& spec, int most);
    ~LtProduct();
    LtProduct(LtProduct&&) noexcept;
    LtProduct& operator=(LtProduct&&) noexcept;

    const Answer& answer() const;
    std::size_t candidates() const;
    // Keeps this candidate and drops all others: from then on it is candidate 0.
    void keep(std::size_t only);
    // Takes an algorithm from the cache instead of the candidates. False: cuBLASLt does not take it for this product.
    bool take(const cublasLtMatmulAlgo_t& algo);
    // Enqueues a candidate. Returns the status instead of throwing, because a candidate of the heuristic may refuse.
    cublasStatus_t run(std::size_t candidate, const LtOperands& on, cudaStream_t stream) const;
    // Enqueues the candidate that keep() or take() has chosen. Throws Error{backend} where cuBLASLt refuses.
    void run(const LtOperands& on, cudaStream_t stream) const;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

// What answer() would be for a matmul that said `status`.
Answer refused_by_matmul(cublasStatus_t status);

// Asks the heuristic and, where it has an algorithm, runs that once and waits for it.
struct Asked {
    Answer answer;
    std::string kernel;
};
Asked ask(const Lt& lt, const LtSpec& spec, const LtOperands& on, cudaStream_t stream);
Asked ask(const Lt& lt, const GemmSpec& spec, const LtOperands& on, cudaStream_t stream);

}  // namespace fp8lab::cuda
