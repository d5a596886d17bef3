// The size of a published model, counted from its config.json: parameters, those that a token uses, and its KV cache.
//
// d hidden size, L layers, H heads, G key and value heads, e head dimension, f intermediate size, V vocabulary:
//   attention  d H e + 2 d G e + H e d, and biases, norms of queries and keys, sinks;
//   latent     d q + q + q H (n + r) where q_lora_rank is q, else d H (n + r); d (k + r) + k + k H (n + v) + H v d, with
//              kv_lora_rank k, qk_nope_head_dim n, qk_rope_head_dim r, v_head_dim v;
//   MLP        3 d f gated, else 2 d f, and biases; experts: E of them, and a router of d E;
//   ends       V d, V d again unless tied, the last norm.
// KV cache of a token: 2 G e numbers a layer; latent k + r. A sliding layer keeps min(tokens, window).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fp8lab::plan {

struct KvLayer {
    double numbers = 0;  // of one token
    int window = 0;      // tokens that it keeps at most; 0: all
    bool operator==(const KvLayer&) const = default;
};

// A linear layer, w (out, in). Those that are cast: not the head, not the router. Layers of one input are one, as fused
// kernels compute them: qkv, gate_up.
struct Linear {
    std::string name = {};
    double out = 0, in = 0;                   // features
    std::string out_from = {}, in_from = {};  // fields of the config that give them
    int layers = 0;                           // of the model that have it
    int experts = 1;                          // of such a layer
    int chosen = 1;                           // of them, by a token
    bool operator==(const Linear&) const = default;
};

struct ModelSize {
    std::string model_type;
    std::string note;  // what is not counted, as a sentence; empty: nothing
    int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocabulary = 0;
    bool tied = false;
    // Grouped attention without norms of queries and keys, a gated MLP, two norms a layer: what a layer keeps for its backward
    // pass is what Llama's keeps.
    bool like_llama = false;
    double parameters = 0;
    double active = 0;     // that one token goes through, with the embedding table
    double embedding = 0;  // the embedding table: some makers leave it out of "active"
    double matrices =
        0;  // weights of matrices that a token goes through, with the head, without the embedding table
    double attention_width = 0;  // H e; latent: H times the mean of n + r and v
    std::vector<Linear> linears;
    std::vector<KvLayer> kv;
    bool operator==(const ModelSize&) const = default;

    bool has_experts() const;
    double kv_numbers(double tokens) const;  // in the cache of one sequence
};

// Of the language part where there is a text_config. Throws input_error(where): not JSON, a size that is missing or out of
// range, a model_type that is missing, not known or of layers that are not counted. Nothing is guessed.
ModelSize read_model_size(std::string_view config_json, const std::string& where);

// The members of a config.json that read_model_size() reads, as one line of JSON.
std::string compact_config(std::string_view config_json, const std::string& where);

}  // namespace fp8lab::plan
