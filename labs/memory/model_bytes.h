// L10's arithmetic: bytes of a model's states, activations and KV cache. GB = 10^9 bytes.
//
// States: Rajbhandari et al., "ZeRO", arXiv 1910.02054. Activations: Korthikanti et al., "Reducing Activation
// Recomputation in Large Transformer Models", arXiv 2205.05198, equations 1 and 2, taken apart by tensor.
// Offload: Ren et al., "ZeRO-Offload", arXiv 2101.06840.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/plan/model_size.h"
#include "labs/memory/model_plan.h"

namespace fp8lab::memory {

inline constexpr double kGB = 1e9;
// Context, cuBLAS's workspaces and the slack of the allocator: a typical value, not a measured one.
inline constexpr double kWorkspace = 1e9;

enum class Kind { gpt, llama };  // GPT: biases, dropout, GELU; Llama: gate and up, no bias, no dropout

// A decoder. Llama kind: 2Vh (Vh where tied) + L(2h^2 + 2h^2 kv/a + 3hf + 2h) + h parameters; GPT kind:
// Vh + 2048h + L(4h^2 + 2hf + 9h + f) + 2h.
struct ModelShape {
    std::string id, label;
    Kind kind = Kind::llama;
    double layers = 32, hidden = 4096, ffn = 11008, heads = 32, kv_heads = 32, vocabulary = 32000;
    bool tied = false;            // the head is the embedding
    double fixed_parameters = 0;  // not 0: as the document says, whatever the shape gives
    std::optional<plan::ModelSize> counted =
        {};  // of a config.json: its parameters and KV cache, whatever the shape gives
    bool has_activations() const {
        return !counted || counted->like_llama;
    }  // whether there is a rule for them
    double head_dim() const { return counted ? counted->head_dim : hidden / heads; }
    double parameters() const;
    bool operator==(const ModelShape&) const = default;
};
std::span<const ModelShape> models();  // the published ones
const ModelShape* find_model(std::string_view id);

enum class Recompute { none, selective, full };
struct Load {
    double batch = 1, sequence = 4096;  // of one GPU
    double contexts = 1;                // inference: sequences whose KV is kept
    Recompute recompute = Recompute::none;
    bool scores = false;  // attention keeps its softmax output; else flash attention
    double gpus = 1;
    int zero = 0;  // stage
    double tokens() const { return batch * sequence; }
};

// What one layer keeps, in bytes per token; with scores kept also 5 a s of them.
double layer_bytes(const ModelShape& model, Inputs inputs, const Load& load);
// The activations of a token in a layer, divided by h, whatever is recomputed: "28.5 s b h bytes per layer".
double layer_sbh(const ModelShape& model, Inputs inputs, const Load& load);
// The bytes of the whole model: full recomputation keeps 2h per layer, and one whole layer while it is computed
// again.
double activation_bytes(const ModelShape& model, Inputs inputs, const Load& load);
// One linear after its forward pass, as Transformer Engine measures it (numerics.md 7): weights, the FP8 copy that
// fprop reads, the input that is kept for the backward pass, the 16-bit output. The transpose is not there yet.
double linear_forward_bytes(const Plan& plan, double in, double out, double tokens);
double kv_bytes_per_token(const ModelShape& model, Keep format);

// The bytes of a plan on one GPU, row by row.
struct Account {
    std::array<double, kRows> gpu = {}, cpu = {};
    // The part of the activations that is inputs of linears kept in FP8.
    double fp8_activations = 0;
    double gathered = 0;   // ZeRO stage 3: one layer's weights, whole; in the workspace
    double fp32 = 0;       // all FP32 states, GPU and CPU
    double offload_s = 0;  // gradients down and weights up, one after the other; 0: the update is on the GPU
    double offload_overlapped_s = 0;
    double on_gpu() const;
    double on_cpu() const;
    double states() const;  // on the GPU
    double operator[](Row row) const { return gpu[index(row)]; }
};
// pcie: bytes per second, each way.
Account account(const Plan& plan, const ModelShape& model, const Load& load, double pcie);

}  // namespace fp8lab::memory
