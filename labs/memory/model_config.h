// A published model's config.json as fields of L10: "model=own", "layers=32", ...
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fp8lab::memory {

// Reads the configuration of a model in Hugging Face's form: Llama's names (num_hidden_layers, hidden_size,
// intermediate_size, num_attention_heads, num_key_value_heads, vocab_size, tie_word_embeddings) or GPT-2's (n_layer,
// n_embd, n_inner, n_head). Throws input_error(where): not JSON, a size that is missing or out of range, and models
// that the arithmetic does not have: experts, a size of heads that is not hidden / heads.
std::vector<std::string> fields_of_config(std::string_view json, const std::string& where);

}  // namespace fp8lab::memory
