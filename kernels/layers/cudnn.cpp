#include "kernels/layers/cudnn.h"

#ifndef FP8LAB_CUDNN

namespace fp8lab::cuda {

std::string cudnn_text() {
    return "cuDNN: this build found no cudnn.h and cudnn_frontend.h (packages nvidia-cudnn-cu13 and "
           "nvidia-cudnn-frontend of Python)";
}

std::unique_ptr<Attention> make_cudnn_attention(const AttentionSizes&, const AttentionPlaces&,
                                                std::string& why) {
    why = cudnn_text();
    return nullptr;
}

}  // namespace fp8lab::cuda

#else

#include <cudnn_frontend.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "kernels/device/graph.h"
#include "kernels/device/library_folders.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the frontend looks its functions up here
}

namespace fp8lab::cuda {
namespace {

namespace fe = cudnn_frontend;
struct Library {
    std::string text;
    bool found = false;
};

const Library& library() {
    static const Library opened = [] {
        for (const auto& folder : library_folders("FP8LAB_CUDNN_DIR", "cudnn")) {
            const auto path = folder / "libcudnn.so.9";
            void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
            if (!handle) continue;
            fe::cudnn_dlhandle = handle;
            const std::size_t version = fe::detail::get_backend_version();
            return Library{fmt::format("cuDNN {}.{}.{} ({})", version / 10000, version / 100 % 100,
                                       version % 100, path.string()),
                           true};
        }
        return Library{
            "cuDNN is not found: libcudnn.so.9 is neither in FP8LAB_CUDNN_DIR nor in a Python package "
            "nor among the system's libraries",
            false};
    }();
    return opened;
}

void require(fe::error_t status) {
    if (status.is_bad()) throw Error(ErrorKind::backend, "cuDNN", status.get_message());
}

class Handle {
  public:
    Handle() {
        if (fe::detail::create_handle(&handle_) != CUDNN_STATUS_SUCCESS)
            throw Error(ErrorKind::backend, "cuDNN", "cudnnCreate failed");
    }
    ~Handle() { fe::detail::destroy_handle(handle_); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    cudnnHandle_t on(cudaStream_t stream) {
        fe::detail::set_stream(handle_, stream);
        return handle_;
    }

  private:
    cudnnHandle_t handle_ = nullptr;
};

enum Uid : std::int64_t { kQ = 1, kK, kV, kO, kStats, kDO, kDQ, kDK, kDV };

class CudnnAttention final : public Attention {
  public:
    CudnnAttention(const AttentionSizes& s, const AttentionPlaces& places) : s_(s), places_(places) {
        forward_ = forward_graph();
        backward_ = backward_graph();
        const auto build = [&](Plan& graph) {
            require(graph.build(handle_.on(nullptr), {fe::HeurMode_t::A}));
            std::int64_t bytes = 0;
            require(graph.get_workspace_size(bytes));
            return static_cast<std::size_t>(bytes);
        };
        bytes_.kept = sizeof(float) * static_cast<std::size_t>(s.sequences) *
                      static_cast<std::size_t>(s.heads) * static_cast<std::size_t>(s.context);
        forward_workspace_ = build(*forward_);
        if (!counts()) bytes_.forward = forward_workspace_;
        bytes_.backward = build(*backward_);
    }

    AttentionBytes bytes() const override { return bytes_; }
    void forward(const void* qkv, void* out, const AttentionMemory& memory, cudaStream_t stream) override {
        run(*forward_,
            {{kQ, part(qkv, 0)},
             {kK, part(qkv, k_at())},
             {kV, part(qkv, v_at())},
             {kO, out},
             {kStats, memory.kept}},
            counts() ? counters_.next() : memory.scratch, stream);
    }
    void backward(const void* qkv, const void* out, const void* dout, void* dqkv,
                  const AttentionMemory& memory, cudaStream_t stream) override {
        run(*backward_,
            {{kQ, part(qkv, 0)},
             {kK, part(qkv, k_at())},
             {kV, part(qkv, v_at())},
             {kO, const_cast<void*>(out)},
             {kDO, const_cast<void*>(dout)},
             {kStats, memory.kept},
             {kDQ, part(dqkv, 0)},
             {kDK, part(dqkv, k_at())},
             {kDV, part(dqkv, v_at())}},
            memory.scratch, stream);
    }
    // The product of K with the gradients of the scores, which are the workspace. Four of its blocks are on a multiprocessor,
    // and take half of the registers. With heads of 128, both beside each other take longer than one after the other: 868
    // instead of 752 us in a delayed step, 739 instead of 715 in BF16 (d 4096, T 2048, B 4; one H200, CUDA 13.0, 2026-11-25).
    std::size_t bytes_of_last() const override { return s_.head_size <= 64 ? bytes_.backward : 0; }
    std::string_view name() const override { return "cuDNN"; }

  private:
    using Plan = fe::graph::Graph;
    using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
    using Pointers = std::unordered_map<std::int64_t, void*>;

    // The forward pass needs a workspace for counters alone.
    bool counts() const { return forward_workspace_ > 0 && forward_workspace_ <= Counters::kBytes; }
    int k_at() const { return s_.heads * s_.head_size; }
    int v_at() const { return k_at() + s_.kv_heads * s_.head_size; }
    void* part(const void* base, int column) const {
        return static_cast<std::byte*>(const_cast<void*>(base)) +
               static_cast<std::ptrdiff_t>(column) * bytes_of(places_.element);
    }
    void run(Plan& graph, Pointers pointers, void* workspace, cudaStream_t stream) {
        require(graph.execute(handle_.on(stream), pointers, workspace));
    }
    // (sequences, heads, context, head_size), as columns of a matrix of `stride` elements a row.
    std::vector<std::int64_t> dims(int heads) const {
        return {s_.sequences, heads, s_.context, s_.head_size};
    }
    std::vector<std::int64_t> strides(int stride) const {
        return {static_cast<std::int64_t>(s_.context) * stride, s_.head_size, stride, 1};
    }
    Tensor input(Plan& graph, const char* name, Uid uid, int heads, int stride) const {
        return graph.tensor(fe::graph::Tensor_attributes()
                                .set_name(name)
                                .set_uid(uid)
                                .set_dim(dims(heads))
                                .set_stride(strides(stride)));
    }
    Tensor stats_tensor(Plan& graph) const {
        const std::int64_t t = s_.context, h = s_.heads;
        return graph.tensor(fe::graph::Tensor_attributes()
                                .set_name("stats")
                                .set_uid(kStats)
                                .set_dim({s_.sequences, h, t, 1})
                                .set_stride({h * t, t, 1, 1})
                                .set_data_type(fe::DataType_t::FLOAT));
    }
    void output(const Tensor& tensor, Uid uid, int heads, int stride) const {
        tensor->set_output(true).set_uid(uid).set_dim(dims(heads)).set_stride(strides(stride));
    }
    static std::shared_ptr<Plan> empty_graph() {
        auto graph = std::make_shared<Plan>();
        graph->set_io_data_type(fe::DataType_t::BFLOAT16)
            .set_intermediate_data_type(fe::DataType_t::FLOAT)
            .set_compute_data_type(fe::DataType_t::FLOAT);
        return graph;
    }
    float scale() const { return 1 / std::sqrt(static_cast<float>(s_.head_size)); }

    std::shared_ptr<Plan> forward_graph() const {
        auto graph = empty_graph();
        const int in = places_.qkv_stride;
        auto [o, stats] =
            graph->sdpa(input(*graph, "q", kQ, s_.heads, in), input(*graph, "k", kK, s_.kv_heads, in),
                        input(*graph, "v", kV, s_.kv_heads, in),
                        fe::graph::SDPA_attributes()
                            .set_name("attention")
                            .set_generate_stats(true)
                            .set_causal_mask(true)
                            .set_attn_scale(scale()));
        output(o, kO, s_.heads, places_.out_stride);
        stats->set_output(true).set_uid(kStats).set_data_type(fe::DataType_t::FLOAT);
        return graph;
    }
    std::shared_ptr<Plan> backward_graph() const {
        auto graph = empty_graph();
        const int in = places_.qkv_stride, out = places_.out_stride;
        auto [dq, dk, dv] = graph->sdpa_backward(
            input(*graph, "q", kQ, s_.heads, in), input(*graph, "k", kK, s_.kv_heads, in),
            input(*graph, "v", kV, s_.kv_heads, in), input(*graph, "o", kO, s_.heads, out),
            input(*graph, "do", kDO, s_.heads, out), stats_tensor(*graph),
            fe::graph::SDPA_backward_attributes()
                .set_name("attention backward")
                .set_causal_mask(true)
                .set_attn_scale(scale())
                .set_deterministic_algorithm(true));
        output(dq, kDQ, s_.heads, in);
        output(dk, kDK, s_.kv_heads, in);
        output(dv, kDV, s_.kv_heads, in);
        return graph;
    }

    AttentionSizes s_;
    AttentionPlaces places_;
    AttentionBytes bytes_;
    std::size_t forward_workspace_ = 0;
    Counters counters_;
    Handle handle_;
    std::shared_ptr<Plan> forward_, backward_;
};

}  // namespace

std::string cudnn_text() { return library().text; }

std::unique_ptr<Attention> make_cudnn_attention(const AttentionSizes& sizes, const AttentionPlaces& places,
                                                std::string& why) {
    why = library().text;
    if (!library().found) return nullptr;
    if (places.element != Element::bf16) {
        why = "cuDNN's attention is in BF16";
        return nullptr;
    }
    try {
        return std::make_unique<CudnnAttention>(sizes, places);
    } catch (const std::exception& error) {  // the frontend throws its own where it misses a library
        why = library().text + ": " + error.what();
        return nullptr;
    }
}

}  // namespace fp8lab::cuda

#endif
