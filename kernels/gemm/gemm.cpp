#include "kernels/gemm/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "kernels/device/random_fill.h"
#include "kernels/device/ranges.h"
#include "kernels/gemm/autotune.h"
#include "kernels/gemm/gemm_cache.h"
#include "kernels/gemm/lt_handles.h"

namespace fp8lab::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64}
                                   << 20;  // NVIDIA recommends 32 MiB on Hopper; split-K takes more
constexpr int kCandidates = 32;

cudaDataType_t type_of(Element e) {
    constexpr std::array kTypes = {CUDA_R_32F, CUDA_R_16BF, CUDA_R_8F_E4M3, CUDA_R_8F_E5M2};
    return kTypes[static_cast<std::size_t>(e)];
}
std::string_view name_of(Element e) {
    constexpr std::array<std::string_view, 4> kNames = {"f32", "bf16", "e4m3", "e5m2"};
    return kNames[static_cast<std::size_t>(e)];
}
bool is_fp8(Element e) { return e == Element::e4m3 || e == Element::e5m2; }

// Which scales go with which, in words; empty: these do.
std::string unfit_scales(const GemmSpec& s) {
    using enum ScaleMode;
    const auto either = [&](ScaleMode x, ScaleMode y) { return s.a_scale == x || s.b_scale == y; };
    if (either(row, row))
        return s.a_scale == s.b_scale ? "" : "row scales of one operand need row scales of the other";
    if (either(block32, block32))
        return s.a_scale == s.b_scale ? "" : "1x32 scales of one operand need 1x32 scales of the other";
    const auto blocks = [](ScaleMode m) { return m == block128 || m == square128; };
    if (blocks(s.a_scale) != blocks(s.b_scale))
        return "block scales of one operand need block scales of the other";
    if (s.a_scale == square128 && s.b_scale == square128)
        return "of two operands only one can have 128x128 scales";
    if (blocks(s.a_scale) && s.fast_accum)
        return "block scales are applied outside the tensor core: there is no fast accumulation";
    return "";
}

void check_rules(const GemmSpec& s) {
    const auto refuse = [&](const std::string& why) { throw Error(ErrorKind::backend, to_string(s), why); };
    if (s.m <= 0 || s.n <= 0 || s.k <= 0) refuse("dimensions must be at least 1");
    if (is_fp8(s.d)) refuse("the output is bf16 or f32");
    if (is_fp8(s.a) != is_fp8(s.b) || (!is_fp8(s.a) && s.a != s.b))
        refuse("operands are both bf16, both f32 or both FP8");
    if (!is_fp8(s.a)) {
        if (s.a == Element::f32 && s.d != Element::f32) refuse("operands in f32 give an output in f32");
        if (s.a_scale != ScaleMode::none || s.b_scale != ScaleMode::none || s.fast_accum)
            refuse("scales and fast accumulation belong to FP8 operands");
        return;
    }
    if (s.product != Product::nt) refuse("FP8 operands must both be contiguous along k (product nt)");
    if (s.a == Element::e5m2 && s.b == Element::e5m2)
        refuse("tensor cores take no product of two E5M2 operands");
    if (s.m % 16 || s.n % 16 || s.k % 16) refuse("FP8 needs m, n and k to be multiples of 16");
    if (const std::string why = unfit_scales(s); !why.empty()) refuse(why);
}

}  // namespace

cublasLtMatmulMatrixScale_t lt_mode(ScaleMode mode) {
    switch (mode) {
        case ScaleMode::row:
            return CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
        case ScaleMode::block128:
            return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
        case ScaleMode::square128:
            return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
        case ScaleMode::block32:
            return CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
        default:
            return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    }
}

std::string words(cublasStatus_t status) {
    return fmt::format("{} ({})", cublasLtGetStatusName(status), static_cast<int>(status));
}
void check_lt(cublasStatus_t status, const std::string& where) {
    if (status != CUBLAS_STATUS_SUCCESS)
        throw Error(ErrorKind::backend, where, "cuBLASLt refuses it: " + words(status));
}

std::string to_string(const GemmSpec& s) {
    constexpr std::array<std::string_view, 3> kProducts = {"nt", "nn", "tn"};
    constexpr std::array<std::string_view, 6> kScales = {"no", "tensor", "row", "1x128", "128x128", "1x32"};
    const auto scale = [&](ScaleMode m) { return kScales[static_cast<std::size_t>(m)]; };
    std::string out = fmt::format("{} {}x{}x{} {} x {} -> {}", kProducts[static_cast<std::size_t>(s.product)],
                                  s.m, s.n, s.k, name_of(s.a), name_of(s.b), name_of(s.d));
    if (s.a_scale != ScaleMode::none)
        out += fmt::format(", {} x {} scales", scale(s.a_scale), scale(s.b_scale));
    if (s.fast_accum) out += ", fast accumulation";
    if (s.spared > 0) out += fmt::format(", {} multiprocessors spared", s.spared);
    return out;
}

Lt::Lt() : workspace_(kWorkspace) {
    constexpr std::size_t kMajor = 10000;  // of CUBLAS_VERSION: 130100 is 13.1.0
    if (cublasLtGetVersion() / kMajor < CUBLAS_VERSION / kMajor)
        throw Error(ErrorKind::backend, "cuBLASLt",
                    lt_version_text() + ": the library found here is too old");
    check_lt(cublasLtCreate(&handle_), "cublasLtCreate");
}
Lt::~Lt() { cublasLtDestroy(handle_); }

// Row-major D = A B is column-major D^T = B^T A^T: cuBLASLt's first operand is our B.
struct GemmPlan::Parts {
    GemmSpec spec;
    const Lt* lt = nullptr;
    Desc desc;
    Layout first, second, out;
    // An algorithm, and the bytes of workspace that it needs.
    struct Choice {
        cublasLtMatmulAlgo_t algo{};
        std::size_t workspace = 0;
    } choice;
    const float *a_scale_now = nullptr, *b_scale_now = nullptr;  // what the description points to

    // A sentence only where one is needed: a product of a few microseconds would wait for its formatting.
    void require(cublasStatus_t status) const {
        if (status != CUBLAS_STATUS_SUCCESS) check_lt(status, to_string(spec));
    }
    template <class T>
    void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
        require(cublasLtMatmulDescSetAttribute(desc.handle, attribute, &value, sizeof value));
    }
    void describe();
    void point(const float* a_scale, const float* b_scale);
    std::vector<Choice> candidates() const;
    cublasStatus_t run(const void* a, const void* b, void* d, const Choice& which, cudaStream_t stream,
                       bool add = false) const;
    std::optional<Choice> runnable(const cublasLtMatmulAlgo_t& which) const;
    void choose(cudaStream_t stream);
    Choice fastest(cudaStream_t stream);
};

void GemmPlan::Parts::describe() {
    const std::string where = to_string(spec);
    check_lt(cublasLtMatmulDescCreate(&desc.handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), where);
    // nt: B (n, k) row-major is (k, n) column-major, transposed to (n, k). nn and tn: B (k, n) is (n, k) as
    // it lies.
    const cublasOperation_t op_b = spec.product == Product::nt ? CUBLAS_OP_T : CUBLAS_OP_N,
                            op_a = spec.product == Product::tn ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, op_b);
    set(CUBLASLT_MATMUL_DESC_TRANSB, op_a);
    const auto layout = [&](Layout& l, Element e, int inner, int outer) {
        check_lt(cublasLtMatrixLayoutCreate(&l.handle, type_of(e), static_cast<std::uint64_t>(inner),
                                            static_cast<std::uint64_t>(outer), inner),
                 where);
    };
    if (spec.product == Product::nt)
        layout(first, spec.b, spec.k, spec.n);
    else
        layout(first, spec.b, spec.n, spec.k);
    if (spec.product == Product::tn)
        layout(second, spec.a, spec.m, spec.k);
    else
        layout(second, spec.a, spec.k, spec.m);
    layout(out, spec.d, spec.n, spec.m);
    if (spec.spared > 0)
        set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, static_cast<std::int32_t>(multiprocessors() - spec.spared));
    if (!is_fp8(spec.a)) return;
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(spec.fast_accum));
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, static_cast<std::int32_t>(lt_mode(spec.b_scale)));
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, static_cast<std::int32_t>(lt_mode(spec.a_scale)));
}

void GemmPlan::Parts::point(const float* a_scale, const float* b_scale) {
    if (!is_fp8(spec.a) || (a_scale == a_scale_now && b_scale == b_scale_now)) return;
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b_scale);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a_scale);
    a_scale_now = a_scale;
    b_scale_now = b_scale;
}

std::vector<GemmPlan::Parts::Choice> GemmPlan::Parts::candidates() const {
    Preference preference;
    check_lt(cublasLtMatmulPreferenceCreate(&preference.handle), to_string(spec));
    const std::size_t workspace = lt->workspace_bytes();
    cublasLtMatmulPreferenceSetAttribute(preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &workspace, sizeof workspace);
    // Partial sums of split-K stay in FP32.
    const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreferenceSetAttribute(preference.handle, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                         &schemes, sizeof schemes);
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> found{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(lt->handle(), desc.handle, first.handle, second.handle, out.handle,
                                       out.handle, preference.handle, kCandidates, found.data(), &count);
    check_lt(status, to_string(spec));
    if (count == 0) throw Error(ErrorKind::backend, to_string(spec), "cuBLASLt has no algorithm for it");
    std::vector<Choice> choices;
    for (const auto& one : std::span(found).first(static_cast<std::size_t>(count)))
        choices.push_back({one.algo, one.workspaceSize});
    return choices;
}

cublasStatus_t GemmPlan::Parts::run(const void* a, const void* b, void* d, const Choice& which,
                                    cudaStream_t stream, bool add) const {
    constexpr float kOne = 1, kZero = 0;
    return cublasLtMatmul(lt->handle(), desc.handle, &kOne, b, first.handle, a, second.handle,
                          add ? &kOne : &kZero, d, out.handle, d, out.handle, &which.algo,
                          lt->workspace_for(which.workspace), which.workspace, stream);
}

std::optional<GemmPlan::Parts::Choice> GemmPlan::Parts::runnable(const cublasLtMatmulAlgo_t& which) const {
    cublasLtMatmulHeuristicResult_t needs{};
    if (cublasLtMatmulAlgoCheck(lt->handle(), desc.handle, first.handle, second.handle, out.handle,
                                out.handle, &which, &needs) != CUBLAS_STATUS_SUCCESS ||
        needs.workspaceSize > lt->workspace_bytes())
        return {};
    return Choice{which, needs.workspaceSize};
}

void GemmPlan::Parts::choose(cudaStream_t stream) {
    // cuBLASLt wants a scale's address beside its mode before it answers; nothing is read from this one.
    point(static_cast<const float*>(lt->workspace()), static_cast<const float*>(lt->workspace()));
    GemmCache& cache = gemm_cache();
    if (const auto known = cache.find(spec))
        if (const auto runs = runnable(*known)) {
            choice = *runs;
            return;
        }
    choice = fastest(stream);
    cache.put(spec, choice.algo);
}

GemmPlan::Parts::Choice GemmPlan::Parts::fastest(cudaStream_t stream) {
    const std::vector<Choice> choices = candidates();
    const auto size = [](int x, int y, Element e) {
        return static_cast<std::size_t>(x) * static_cast<std::size_t>(y) *
               static_cast<std::size_t>(bytes_of(e));
    };
    const Memory a(size(spec.m, spec.k, spec.a)), b(size(spec.n, spec.k, spec.b)),
        d(size(spec.m, spec.n, spec.d));
    fill_random(a.get(), spec.a, a.bytes(), 1, stream);
    fill_random(b.get(), spec.b, b.bytes(), 2, stream);
    // As many as the finest mode has, with room for padding: one for 32 elements, in single bytes.
    const auto scale_count =
        static_cast<std::size_t>(std::max(spec.m, spec.n)) * static_cast<std::size_t>(spec.k / 128 + 4) +
        1024;
    const Buffer<float> scales(std::vector<float>(is_fp8(spec.a) ? scale_count : 1, 1.0F));
    point(scales.get(), scales.get());
    std::vector<Choice> working;
    for (const Choice& candidate : choices) {
        bool works = true;
        for (int i = 0; i < 2 && works; ++i)
            works = run(a.get(), b.get(), d.get(), candidate, stream) == CUBLAS_STATUS_SUCCESS;
        if (works) working.push_back(candidate);
    }
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (working.empty())
        throw Error(ErrorKind::backend, to_string(spec),
                    "cuBLASLt proposes algorithms, but none of them runs");
    return working[fastest_of(
        working.size(), 2.0 * spec.m * spec.n * spec.k,
        [&](std::size_t i) { require(run(a.get(), b.get(), d.get(), working[i], stream)); }, stream)];
}

GemmPlan::GemmPlan(const Lt& lt, const GemmSpec& spec, cudaStream_t stream)
    : parts_(std::make_unique<Parts>()) {
    check_rules(spec);
    parts_->spec = spec;
    parts_->lt = &lt;
    parts_->describe();
    const Range range(to_string(spec));
    parts_->choose(stream);
}
GemmPlan::~GemmPlan() = default;
GemmPlan::GemmPlan(GemmPlan&&) noexcept = default;
GemmPlan& GemmPlan::operator=(GemmPlan&&) noexcept = default;

const GemmSpec& GemmPlan::spec() const { return parts_->spec; }

void GemmPlan::run(const void* a, const void* b, void* d, const float* a_scale_inv, const float* b_scale_inv,
                   cudaStream_t stream, bool add) const {
    parts_->point(a_scale_inv, b_scale_inv);
    parts_->require(parts_->run(a, b, d, parts_->choice, stream, add));
}

}  // namespace fp8lab::cuda
