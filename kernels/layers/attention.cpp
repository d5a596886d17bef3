#include "kernels/layers/attention.h"

#include <string>

#include "kernels/layers/cudnn.h"

namespace fp8lab::cuda {
namespace {

class Materialised final : public Attention {
  public:
    Materialised(const AttentionSizes& sizes, const AttentionPlaces& places)
        : sizes_(sizes),
          places_(places),
          stride_(padded(sizes.context)),
          bytes_(sizeof(float) * static_cast<std::size_t>(sizes.sequences) *
                 static_cast<std::size_t>(sizes.heads) * static_cast<std::size_t>(sizes.context) *
                 static_cast<std::size_t>(stride_)) {}

    AttentionBytes bytes() const override { return {.kept = bytes_, .forward = 0, .backward = bytes_}; }
    void forward(const void* qkv, void* out, const AttentionMemory& memory, cudaStream_t stream) override {
        const Parts in = parts(const_cast<void*>(qkv));
        auto* const p = static_cast<float*>(memory.kept);
        attention_probabilities(in.q, in.k, places_.element, sizes_, p, stride_, stream);
        attention_output(p, stride_, in.v, places_.element, sizes_, true, {out, places_.out_stride}, stream);
    }
    void backward(const void* qkv, const void*, const void* dout, void* dqkv, const AttentionMemory& memory,
                  cudaStream_t stream) override {
        const auto* const p = static_cast<const float*>(memory.kept);
        auto* const ds = static_cast<float*>(memory.scratch);
        const Parts in = parts(const_cast<void*>(qkv)), to = parts(dqkv);
        const HeadMatrix d{const_cast<void*>(dout), places_.out_stride};
        attention_value_gradient(p, stride_, d, places_.element, sizes_, true, to.v, stream);
        attention_score_gradient(p, stride_, d, in.v, places_.element, sizes_, ds, stream);
        attention_query_gradient(ds, stride_, in.k, places_.element, sizes_, true, to.q, stream);
        attention_key_gradient(ds, stride_, in.q, places_.element, sizes_, true, to.k, stream);
    }
    std::string_view name() const override { return "materialised"; }

  private:
    struct Parts {
        HeadMatrix q, k, v;
    };
    Parts parts(void* qkv) const {
        const int q = sizes_.heads * sizes_.head_size, k = sizes_.kv_heads * sizes_.head_size;
        const auto at = [&](int column) {
            return HeadMatrix{static_cast<std::byte*>(qkv) +
                                  static_cast<std::ptrdiff_t>(column) * bytes_of(places_.element),
                              places_.qkv_stride};
        };
        return {at(0), at(q), at(q + k)};
    }

    AttentionSizes sizes_;
    AttentionPlaces places_;
    int stride_;
    std::size_t bytes_;
};

}  // namespace

std::unique_ptr<Attention> make_materialised_attention(const AttentionSizes& sizes,
                                                       const AttentionPlaces& places) {
    return std::make_unique<Materialised>(sizes, places);
}

std::unique_ptr<Attention> make_attention(const AttentionSizes& sizes, const AttentionPlaces& places) {
    // cuDNN's kernels are for models of size; below, a few launches of few blocks are faster, and need no library.
    constexpr int kShortContext = 128;
    std::string why;
    if (sizes.context > kShortContext)
        if (auto fused = make_cudnn_attention(sizes, places, why)) return fused;
    return make_materialised_attention(sizes, places);
}

}  // namespace fp8lab::cuda
