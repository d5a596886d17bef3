// cuBLASLt plans: one per product of a layer, built once and run any number of times, also during a graph
// capture.
//
// Products are those of core/nn/matrix.h, row-major: D (m, n), K dimension k (numerics.md 3.6).
//   nt  D = A B^T   A (m, k), B (n, k)   fprop, and every FP8 product: both operands contiguous along k
//   nn  D = A B     A (m, k), B (k, n)   dgrad in BF16 and FP32
//   tn  D = A^T B   A (k, m), B (k, n)   wgrad in BF16 and FP32
// FP8: m, n, k multiples of 16, pointers multiples of 16 bytes, not E5M2 x E5M2.
//
// Scales are *de*quantisation factors in device memory, read when the product runs (cuBLASLt manual, 13):
//   tensor    one FP32
//   row       (m) of A, (n) of B; both operands
//   block128  1x128 along k: (ceil(k/128), m) of A, (ceil(k/128), n) of B - the outer dimension contiguous
//   square128 128x128: (ceil(m/128), L) of A, (ceil(n/128), L) of B with L = ceil(k/128) rounded up to a
//             multiple of 4 - k contiguous. At most one operand; the other is block128.
//   block32   1x32 in E8M0, NVIDIA's tiles of 128x4; compute capability 10 and above
// A wrong layout gives no error but wrong numbers, so tests use scales from 2^-8 to 2^8.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/device/graph.h"
#include "kernels/device/launch.h"

namespace fp8lab::cuda {

enum class Product { nt, nn, tn };

struct GemmSpec {
    Product product = Product::nt;
    int m = 0, n = 0, k = 0;
    Element a = Element::bf16, b = Element::bf16, d = Element::bf16;  // d: bf16 or f32
    ScaleMode a_scale = ScaleMode::none, b_scale = ScaleMode::none;
    bool fast_accum = false;  // FP8 only
    int spared = 0;           // multiprocessors that it leaves to kernels beside it
    bool operator==(const GemmSpec&) const = default;
};
std::string to_string(const GemmSpec& spec);  // "nt 16384x8192x4096 e4m3 x e5m2 -> f32, tensor scales"

// The handle and its workspace. One per stream: a workspace shared by two streams would be a race. Throws
// Error{backend} where the library that was loaded is of an older major version than the headers.
class Lt {
  public:
    Lt();
    ~Lt();
    Lt(const Lt&) = delete;
    Lt& operator=(const Lt&) = delete;
    cublasLtHandle_t handle() const { return handle_; }
    void* workspace() const { return workspace_.get(); }
    std::size_t workspace_bytes() const { return workspace_.bytes(); }
    // The workspace of a launch that needs so many bytes; a launch that needs only counters has its own.
    void* workspace_for(std::size_t bytes) const {
        return bytes > 0 && bytes <= Counters::kBytes ? counters_.next() : workspace();
    }

  private:
    cublasLtHandle_t handle_ = nullptr;
    Memory workspace_;
    Counters counters_;
};

class GemmPlan {
  public:
    // Finds the algorithm: in the cache for this GPU, library version and spec; else by timing every
    // candidate of the heuristic on random data on `stream`, and stores the fastest. Throws Error{backend}
    // with the rule that the spec violates, or with cuBLASLt's status.
    GemmPlan(const Lt& lt, const GemmSpec& spec, cudaStream_t stream);
    ~GemmPlan();
    GemmPlan(GemmPlan&&) noexcept;
    GemmPlan& operator=(GemmPlan&&) noexcept;

    const GemmSpec& spec() const;
    // a_scale_inv, b_scale_inv: null for ScaleMode::none. add: D += instead of D =, rounded once to the type of D.
    void run(const void* a, const void* b, void* d, const float* a_scale_inv, const float* b_scale_inv,
             cudaStream_t stream, bool add = false) const;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace fp8lab::cuda
