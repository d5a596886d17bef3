#include "kernels/bench/ask.h"

#include <array>
#include <cstdio>
#include <mutex>

#include "core/base/error.h"
#include "kernels/bench/copy.h"

namespace fp8lab::cuda {
namespace {

cudaDataType_t lt_type(Element e) {
    constexpr std::array kTypes = {CUDA_R_32F, CUDA_R_16BF, CUDA_R_8F_E4M3, CUDA_R_8F_E5M2};
    return kTypes[static_cast<std::size_t>(e)];
}

int lt_scale(ScaleMode mode) { return mode == ScaleMode::none ? -1 : lt_mode(mode); }

bool has_fast_accum(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

// What cuBLASLt logs while an object lives: its reason for a refusal. The log is one of the process.
class Log {
  public:
    Log() : lock_(mutex()) {
        text().clear();
        cublasLtLoggerSetCallback([](int, const char*, const char* message) {
            if (message && text().empty()) text() = message;
        });
        // Without a file of its own the library writes to stdout, where reports go.
        static FILE* const nowhere = std::fopen("/dev/null", "w");
        if (nowhere == nullptr) return;
        cublasLtLoggerSetFile(nowhere);
        constexpr int kErrorsAndHints = 1 | 4;
        cublasLtLoggerSetMask(kErrorsAndHints);
    }
    ~Log() {
        cublasLtLoggerSetMask(0);
        cublasLtLoggerSetCallback(nullptr);
    }
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;
    // The first message, on one line, of a length that a screen has room for.
    static std::string first() {
        constexpr std::size_t kLongest = 160;
        std::string out;
        for (const char c : text()) {
            if (static_cast<unsigned char>(c) >= ' ') out += c;
            if (c == '\n' && !out.empty()) break;
        }
        if (out.size() > kLongest) out = out.substr(0, kLongest) + "...";
        return out;
    }

  private:
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
    static std::string& text() {
        static std::string one;
        return one;
    }
    std::lock_guard<std::mutex> lock_;
};

Answer answer_of(const char* from, cublasStatus_t status, const std::string& logged) {
    Answer answer{static_cast<int>(status), from, words(status)};
    if (!logged.empty()) answer.words += ": " + logged;
    return answer;
}

}  // namespace

LtSpec lt_spec(const GemmSpec& s, int groups) {
    return {s.product,
            s.m,
            s.n,
            s.k,
            lt_type(s.a),
            lt_type(s.b),
            lt_type(s.d),
            lt_scale(s.a_scale),
            lt_scale(s.b_scale),
            s.fast_accum,
            CUBLAS_COMPUTE_32F,
            groups};
}

// Row-major D = A B is column-major D^T = B^T A^T: cuBLASLt's first operand is our B.
struct LtProduct::Parts {
    const Lt* lt = nullptr;
    LtSpec spec;
    Desc desc;
    Layout first, second, out;
    const void *a_scale_now = nullptr, *b_scale_now = nullptr;
    std::vector<cublasLtMatmulAlgo_t> algos;
    Answer answer;

    template <class T>
    cublasStatus_t set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
        return cublasLtMatmulDescSetAttribute(desc.handle, attribute, &value, sizeof value);
    }
    cublasStatus_t describe();
    cublasStatus_t layout(Layout& l, cudaDataType_t type, int inner, int outer) const;
    cublasStatus_t point(const void* a_scale, const void* b_scale);
    cublasStatus_t propose(int most);
};

cublasStatus_t LtProduct::Parts::layout(Layout& l, cudaDataType_t type, int inner, int outer) const {
    const auto rows = static_cast<std::uint64_t>(inner), cols = static_cast<std::uint64_t>(outer);
    cublasStatus_t status = cublasLtMatrixLayoutCreate(&l.handle, type, rows, cols, inner);
    if (status != CUBLAS_STATUS_SUCCESS || spec.groups == 1) return status;
    const std::int32_t count = spec.groups;
    const auto stride = static_cast<std::int64_t>(rows * cols);
    status =
        cublasLtMatrixLayoutSetAttribute(l.handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return cublasLtMatrixLayoutSetAttribute(l.handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                            sizeof stride);
}

// The first status that is not success.
cublasStatus_t LtProduct::Parts::describe() {
    std::vector<cublasStatus_t> all;
    const bool half = spec.compute == CUBLAS_COMPUTE_16F;
    all.push_back(cublasLtMatmulDescCreate(&desc.handle, spec.compute, half ? CUDA_R_16F : CUDA_R_32F));
    if (all.back() != CUBLAS_STATUS_SUCCESS) return all.back();
    const cublasOperation_t op_b = spec.product == Product::nt ? CUBLAS_OP_T : CUBLAS_OP_N,
                            op_a = spec.product == Product::tn ? CUBLAS_OP_T : CUBLAS_OP_N;
    all.push_back(set(CUBLASLT_MATMUL_DESC_TRANSA, op_b));
    all.push_back(set(CUBLASLT_MATMUL_DESC_TRANSB, op_a));
    all.push_back(spec.product == Product::nt ? layout(first, spec.b, spec.k, spec.n)
                                              : layout(first, spec.b, spec.n, spec.k));
    all.push_back(spec.product == Product::tn ? layout(second, spec.a, spec.m, spec.k)
                                              : layout(second, spec.a, spec.k, spec.m));
    all.push_back(layout(out, spec.d, spec.n, spec.m));
    if (has_fast_accum(spec.a))
        all.push_back(set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(spec.fast_accum)));
    if (spec.b_scale >= 0)
        all.push_back(set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, static_cast<std::int32_t>(spec.b_scale)));
    if (spec.a_scale >= 0)
        all.push_back(set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, static_cast<std::int32_t>(spec.a_scale)));
    for (const cublasStatus_t status : all)
        if (status != CUBLAS_STATUS_SUCCESS) return status;
    // cuBLASLt wants a scale's address beside its mode before it answers; nothing is read from this one.
    return point(lt->workspace(), lt->workspace());
}

cublasStatus_t LtProduct::Parts::point(const void* a_scale, const void* b_scale) {
    if (spec.a_scale < 0 || (a_scale == a_scale_now && b_scale == b_scale_now)) return CUBLAS_STATUS_SUCCESS;
    const cublasStatus_t status = set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b_scale);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    a_scale_now = a_scale;
    b_scale_now = b_scale;
    return set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a_scale);
}

cublasStatus_t LtProduct::Parts::propose(int most) {
    Preference preference;
    cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference.handle);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const std::size_t workspace = lt->workspace_bytes();
    cublasLtMatmulPreferenceSetAttribute(preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &workspace, sizeof workspace);
    // Partial sums of split-K stay in FP32, as in training.
    const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreferenceSetAttribute(preference.handle, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                         &schemes, sizeof schemes);
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
    int count = 0;
    status =
        cublasLtMatmulAlgoGetHeuristic(lt->handle(), desc.handle, first.handle, second.handle, out.handle,
                                       out.handle, preference.handle, most, found.data(), &count);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    for (int i = 0; i < count; ++i)
        if (const auto& result = found[static_cast<std::size_t>(i)]; result.state == CUBLAS_STATUS_SUCCESS)
            algos.push_back(result.algo);
    return algos.empty() ? CUBLAS_STATUS_NOT_SUPPORTED
                         : CUBLAS_STATUS_SUCCESS;  // success without one means no
}

LtProduct::LtProduct(const Lt& lt, const LtSpec& spec, int most) : parts_(std::make_unique<Parts>()) {
    parts_->lt = &lt;
    parts_->spec = spec;
    cublasStatus_t status = parts_->describe();
    if (status == CUBLAS_STATUS_SUCCESS) status = parts_->propose(most);
    if (status == CUBLAS_STATUS_SUCCESS) return;
    parts_->algos.clear();
    std::string logged;
    if (parts_->desc.handle && parts_->out.handle) {  // once more, and this time it says why
        const Log log;
        parts_->propose(1);
        parts_->algos.clear();
        logged = Log::first();
    }
    parts_->answer = answer_of("heuristic", status, logged);
}
LtProduct::~LtProduct() = default;
LtProduct::LtProduct(LtProduct&&) noexcept = default;
LtProduct& LtProduct::operator=(LtProduct&&) noexcept = default;

const Answer& LtProduct::answer() const { return parts_->answer; }
std::size_t LtProduct::candidates() const { return parts_->algos.size(); }
void LtProduct::keep(std::size_t only) { parts_->algos = {parts_->algos.at(only)}; }

bool LtProduct::take(const cublasLtMatmulAlgo_t& algo) {
    if (parts_->algos.empty()) return false;
    cublasLtMatmulHeuristicResult_t needs{};
    const bool works =
        cublasLtMatmulAlgoCheck(parts_->lt->handle(), parts_->desc.handle, parts_->first.handle,
                                parts_->second.handle, parts_->out.handle, parts_->out.handle, &algo,
                                &needs) == CUBLAS_STATUS_SUCCESS &&
        needs.workspaceSize <= parts_->lt->workspace_bytes();
    if (works) parts_->algos = {algo};
    return works;
}

cublasStatus_t LtProduct::run(std::size_t candidate, const LtOperands& on, cudaStream_t stream) const {
    if (const cublasStatus_t status = parts_->point(on.a_scale, on.b_scale); status != CUBLAS_STATUS_SUCCESS)
        return status;
    constexpr float kOne = 1, kZero = 0;
    constexpr std::uint16_t kHalfOne = 0x3C00, kHalfZero = 0;
    const bool half = parts_->spec.compute == CUBLAS_COMPUTE_16F;
    const void *one = half ? static_cast<const void*>(&kHalfOne) : &kOne,
               *zero = half ? static_cast<const void*>(&kHalfZero) : &kZero;
    return cublasLtMatmul(parts_->lt->handle(), parts_->desc.handle, one, on.b, parts_->first.handle, on.a,
                          parts_->second.handle, zero, on.d, parts_->out.handle, on.d, parts_->out.handle,
                          &parts_->algos[candidate], parts_->lt->workspace(), parts_->lt->workspace_bytes(),
                          stream);
}

void LtProduct::run(const LtOperands& on, cudaStream_t stream) const {
    if (const cublasStatus_t status = run(0, on, stream); status != CUBLAS_STATUS_SUCCESS)
        check_lt(status, "cublasLtMatmul");
}

Answer refused_by_matmul(cublasStatus_t status) { return answer_of("matmul", status, ""); }

Asked ask(const Lt& lt, const LtSpec& spec, const LtOperands& on, cudaStream_t stream) {
    const LtProduct product(lt, spec, 1);
    Asked asked{product.answer(), ""};
    if (asked.answer.status != 0) return asked;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    {
        const Log log;
        status = product.run(0, on, stream);
        if (status != CUBLAS_STATUS_SUCCESS) asked.answer = answer_of("matmul", status, Log::first());
    }
    if (status != CUBLAS_STATUS_SUCCESS) return asked;
    check(cudaStreamSynchronize(stream), "cublasLtMatmul");
    asked.kernel = kernel_name([&](cudaStream_t s) { product.run(on, s); });
    return asked;
}

Asked ask(const Lt& lt, const GemmSpec& spec, const LtOperands& on, cudaStream_t stream) {
    return ask(lt, lt_spec(spec), on, stream);
}

}  // namespace fp8lab::cuda
