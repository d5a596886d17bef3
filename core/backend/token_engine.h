// A trained transformer that is kept on a device and reads tokens: what `generate --backend cuda` asks for. The operands of its
// linear layers and of its head, and the keys and values of what was read, are in a format; the rest is in FP32.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/nn/train_spec.h"

namespace fp8lab {

// Of weights and of what is multiplied with them. e4m3: a scale per tensor, which of inputs is that of a token; e4m3_row: a
// scale per row of the weights and per token; weight_only: a scale per row of the weights, inputs in BF16.
enum class ServedWeights { bf16, e4m3, e4m3_row, weight_only };
struct ServedWeightsInfo {
    ServedWeights id;
    std::string_view name, label;  // "e4m3-weight-only", "E4M3 weights, BF16 inputs"
    int bytes = 1;                 // of a weight
};
std::span<const ServedWeightsInfo> served_weights();
const ServedWeightsInfo& info_of(ServedWeights id);
// Throws usage_error("--weights", ...) with the names that there are.
ServedWeights find_served_weights(std::string_view name);

enum class ServedCache { bf16, e4m3 };  // e4m3: a static scale per head of K and of V
std::string_view to_string(ServedCache cache);
// Throws usage_error("--kv", ...).
ServedCache find_served_cache(std::string_view name);
std::string served_weights_names(), served_cache_names();  // "bf16, e4m3"

struct ServedFormats {
    ServedWeights weights = ServedWeights::bf16;
    ServedCache cache = ServedCache::bf16;
};

struct ServedModel {
    TrainSpec spec;                                       // of the training; model transformer
    std::vector<std::span<const float>> parameters = {};  // in the order of ModelPlan::parameters
    ServedFormats formats = {};
    // Of an E4M3 cache: the amaxes of K and V, (blocks, kv heads), whose scale is 448 / amax; what is larger saturates. Empty:
    // all scales are 1.
    std::vector<float> k_amaxes = {}, v_amaxes = {};
};

// Throws usage_error("--backend cuda", ...): a model that no TokenEngine takes, whatever its sizes. It is no transformer, or its
// SwiGLU has limits (act=clamp).
void check_served(const TrainSpec& spec);

class TokenEngine {
  public:
    virtual ~TokenEngine() = default;
    // How many tokens it has read: the position of the next one.
    virtual std::size_t length() const = 0;
    // The tokens behind the first `length` are forgotten. Throws usage_error: more than it has.
    virtual void forget(std::size_t length) = 0;
    // Reads tokens that follow, one after the other; the logits behind the last one, (vocabulary), valid until the next call.
    // A token's logits are the same, byte for byte, in whichever parts the tokens come. Nothing is asked meanwhile
    // (core/threads/ask.h). Throws usage_error: no token, one that the vocabulary does not have, or more than the context has
    // room for.
    virtual std::span<const float> read(std::span<const int> tokens) = 0;
    virtual double memory_bytes() const = 0;  // of the device
};

}  // namespace fp8lab
