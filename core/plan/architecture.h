// What a layer of a published model consists of: one row for each model_type of a config.json. The rows give the parameters
// of transformers' models to the last one (transformers 5.24, models on the meta device, 2026-11-25).
#pragma once

#include <span>
#include <string_view>

namespace fp8lab::plan {

// Whether linear layers have biases.
struct Bias {
    enum { none, qkv, all } where = none;
    std::string_view key = {};  // not empty: this boolean of the config decides between none and `where`
    bool otherwise = false;     // what it is where the config has none
};

struct Experts {
    std::string_view count = {},
                     width = {};        // keys: how many, and their intermediate size; empty: a dense model
    std::string_view dense_first = {};  // key: so many layers at the start are dense
    std::string_view shared = {};       // key: experts that every token goes through
    bool biased = false;                // router and experts have biases
};

enum class QkNorm { none, per_head, whole };  // RMSNorm of queries and keys: weights of one head, or of all
enum class Window { none, every_layer, some_layers };

struct Architecture {
    std::string_view type;
    bool gated = true;  // gate and up; false: up alone
    int norms = 2,
        final_norm = 1;  // vectors of the model's width, of a layer and at its end; a LayerNorm has two
    Bias attention_bias = {}, mlp_bias = {};
    QkNorm qk_norm = QkNorm::none;
    bool sinks = false;   // one more logit a head
    bool latent = false;  // multi-head latent attention: keys and values from kv_lora_rank numbers a token
    bool tied = false;    // embedding and head are one matrix where the config does not say
    bool head_bias = false;
    bool needs_head_dim =
        false;  // without head_dim transformers takes a number of its own, not hidden / heads
    std::string_view positions = {};  // key: learned positions
    Window window = Window::none;
    int full_every = 0;  // some_layers, without layer_types: so many-th layers have full attention
    Experts experts = {};
    std::string_view defaults = {};  // JSON: what transformers takes where a config has no such entry
};

std::span<const Architecture> architectures();
const Architecture* find_architecture(std::string_view type);  // null: not known
// Why models of this type are not counted: "Mamba layers"; empty: that is not why.
std::string_view why_refused(std::string_view type);

}  // namespace fp8lab::plan
