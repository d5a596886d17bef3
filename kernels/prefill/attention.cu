// How the attention of a pass is launched.
#include <algorithm>

#include "kernels/device/launching.cuh"
#include "kernels/prefill/attention.cuh"

namespace fp8lab::cuda {
namespace {

constexpr int kNarrowHead = 64;

bool has_few_rows(int tokens, int heads, int kv_heads) {
    return tokens == 1 || tokens * (heads / kv_heads) <= kFewServedRows;
}

template <class F>
void launch_form(const ServedAttention& a, cudaStream_t stream) {
    const int rows = a.tokens * (a.heads / a.kv_heads), blocks = (rows + F::kRows - 1) / F::kRows;
#ifndef FP8LAB_SIMULATOR
    check(cudaFuncSetAttribute(served_attention_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               F::kBytes),
          "attend_served");
#endif
    launch_with_memory("attend_served", overlapping(), served_attention_kernel<F>,
                       dim3(static_cast<unsigned>(a.batch * a.kv_heads), static_cast<unsigned>(blocks),
                            static_cast<unsigned>(a.splits)),
                       F::kThreads, F::kBytes, stream, a);
}
// run.template operator()<Form>().
template <class T, class Q, class Run>
void with_form(bool few, int head_size, const Run& run) {
    if (few)
        head_size <= kNarrowHead ? run.template operator()<FewRows<T, Q, kNarrowHead>>()
                                 : run.template operator()<FewRows<T, Q, kMostServedHead>>();
    else
        head_size <= kNarrowHead ? run.template operator()<ManyRows<T, Q, kNarrowHead>>()
                                 : run.template operator()<ManyRows<T, Q, kMostServedHead>>();
}
template <class T, class Run>
void with_form(Element element, bool few, int head_size, const Run& run) {
    if (element == Element::f32)
        with_form<T, float>(few, head_size, run);
    else
        with_form<T, __nv_bfloat16>(few, head_size, run);
}
template <class Run>
void with_form(PassCache cache, Element element, bool few, int head_size, const Run& run) {
    if (cache == PassCache::bf16)
        with_form<__nv_bfloat16>(element, few, head_size, run);
    else
        with_form<std::uint8_t>(element, few, head_size, run);
}

}  // namespace

int served_attention_bytes(const PassShape& s) {
    int bytes = 0;
    with_form(s.cache, s.stream, has_few_rows(s.tokens, s.heads, s.kv_heads), s.head_size,
              [&]<class F>() { bytes = F::kBytes; });
    return bytes;
}

// The fewest rounds of blocks times the positions of a block, which also has a start and an end.
int served_splits(const PassShape& s, int multiprocessors) {
    if (!has_few_rows(s.tokens, s.heads, s.kv_heads)) return 1;
    constexpr int kAtOnce = 2, kMostSplits = 64, kOfStart = 128;
    const int tiles = (s.tokens * (s.heads / s.kv_heads) + kFewServedRows - 1) / kFewServedRows,
              pairs = s.batch * s.kv_heads * tiles, steps = (s.capacity + kStep - 1) / kStep;
    const auto cost = [&](int splits) {
        const long long rounds = (static_cast<long long>(pairs) * splits + kAtOnce * multiprocessors - 1) /
                                 (kAtOnce * multiprocessors);
        return rounds * ((steps + splits - 1) / splits * kStep + kOfStart);
    };
    int best = 1;
    for (int splits = 2; splits <= std::min(steps, kMostSplits); ++splits)
        if (cost(splits) < cost(best)) best = splits;
    return best;
}

void attend_served(const ServedAttention& a, cudaStream_t stream) {
    with_form(a.cache, a.element, has_few_rows(a.tokens, a.heads, a.kv_heads), a.head_size,
              [&]<class F>() { launch_form<F>(a, stream); });
}

}  // namespace fp8lab::cuda
