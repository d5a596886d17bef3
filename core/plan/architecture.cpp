#include "core/plan/architecture.h"

#include <algorithm>
#include <array>

namespace fp8lab::plan {
namespace {

constexpr Bias kAll{Bias::all}, kQkv{Bias::qkv};
constexpr Bias all_if(std::string_view key, bool otherwise) { return {Bias::all, key, otherwise}; }

constexpr Experts kDeepSeek{"n_routed_experts", "moe_intermediate_size", "first_k_dense_replace",
                            "n_shared_experts"};

constexpr std::array kArchitectures = {
    Architecture{.type = "llama",
                 .attention_bias = all_if("attention_bias", false),
                 .mlp_bias = all_if("mlp_bias", false)},
    Architecture{.type = "mistral", .window = Window::every_layer},
    Architecture{.type = "mixtral", .experts = {"num_local_experts", "intermediate_size"}},
    Architecture{.type = "qwen2", .attention_bias = kQkv},
    Architecture{.type = "qwen3",
                 .attention_bias = all_if("attention_bias", false),
                 .qk_norm = QkNorm::per_head,
                 .defaults = R"({"head_dim": 128})"},
    Architecture{.type = "qwen3_moe",
                 .attention_bias = all_if("attention_bias", false),
                 .qk_norm = QkNorm::per_head,
                 .experts = {"num_experts", "moe_intermediate_size"}},
    Architecture{.type = "olmoe", .qk_norm = QkNorm::whole, .experts = {"num_experts", "intermediate_size"}},
    Architecture{.type = "gemma", .tied = true, .defaults = R"({"head_dim": 256})"},
    Architecture{.type = "gemma2",
                 .norms = 4,
                 .tied = true,
                 .window = Window::some_layers,
                 .full_every = 2,
                 .defaults = R"({"head_dim": 256, "sliding_window": 4096})"},
    Architecture{
        .type = "gemma3_text",
        .norms = 4,
        .qk_norm = QkNorm::per_head,
        .tied = true,
        .window = Window::some_layers,
        .full_every = 6,
        .defaults =
            R"({"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208, "sliding_window": 4096})"},
    Architecture{.type = "phi3", .window = Window::every_layer},
    // Attention and MLP side by side behind one LayerNorm.
    Architecture{.type = "phi",
                 .gated = false,
                 .final_norm = 2,
                 .attention_bias = kAll,
                 .mlp_bias = kAll,
                 .head_bias = true},
    Architecture{.type = "gpt2",
                 .gated = false,
                 .norms = 4,
                 .final_norm = 2,
                 .attention_bias = kAll,
                 .mlp_bias = kAll,
                 .tied = true,
                 .positions = "n_positions",
                 .defaults = R"({"n_positions": 1024})"},
    Architecture{.type = "gpt_neox",
                 .gated = false,
                 .norms = 4,
                 .final_norm = 2,
                 .attention_bias = all_if("attention_bias", true),
                 .mlp_bias = kAll},
    Architecture{.type = "starcoder2",
                 .gated = false,
                 .norms = 4,
                 .final_norm = 2,
                 .attention_bias = all_if("use_bias", true),
                 .mlp_bias = all_if("use_bias", true),
                 .tied = true,
                 .window = Window::every_layer},
    Architecture{.type = "gpt_oss",
                 .attention_bias = kAll,
                 .sinks = true,
                 .window = Window::some_layers,
                 .full_every = 2,
                 .experts = {.count = "num_local_experts", .width = "intermediate_size", .biased = true},
                 .defaults = R"({"head_dim": 64, "sliding_window": 128})"},
    Architecture{.type = "deepseek_v2",
                 .latent = true,
                 .experts = kDeepSeek,
                 .defaults = R"({"first_k_dense_replace": 0, "n_shared_experts": 2, "v_head_dim": 128})"},
    Architecture{.type = "deepseek_v3",
                 .latent = true,
                 .experts = kDeepSeek,
                 .defaults = R"({"first_k_dense_replace": 3, "n_shared_experts": 1, "v_head_dim": 128})"},
    Architecture{.type = "minicpm3", .latent = true},
};

struct Refused {
    std::string_view type, why;
};
constexpr std::array kRefused = {
    Refused{"falcon_h1", "Mamba layers beside attention"},
    Refused{"nemotron_h", "Mamba layers"},
    Refused{"jamba", "Mamba layers"},
    Refused{"bamba", "Mamba layers"},
    Refused{"zamba2", "Mamba layers"},
    Refused{"granitemoehybrid", "Mamba layers"},
    Refused{"mamba", "Mamba layers"},
    Refused{"mamba2", "Mamba layers"},
    Refused{"qwen3_next", "linear attention"},
    Refused{"qwen3_5", "linear attention"},
    Refused{"kimi_linear", "linear attention"},
    Refused{"rwkv7", "linear attention"},
    Refused{"recurrent_gemma", "recurrent layers"},
    Refused{"deepseek_v4", "compressed attention"},
    Refused{"mllama", "layers of cross-attention"},
    Refused{"t5", "an encoder and a decoder"},
    Refused{"bart", "an encoder and a decoder"},
    Refused{"whisper", "an encoder and a decoder"},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* find_architecture(std::string_view type) {
    const auto* const found = std::ranges::find(kArchitectures, type, &Architecture::type);
    return found == kArchitectures.end() ? nullptr : found;
}

std::string_view why_refused(std::string_view type) {
    const auto* const found = std::ranges::find(kRefused, type, &Refused::type);
    return found == kRefused.end() ? std::string_view{} : found->why;
}

}  // namespace fp8lab::plan
