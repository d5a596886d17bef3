// infer --kv: a transformer with its keys and values in a cache scheme.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fp8lab::cli {

struct InferKvOptions {
    std::string scheme;  // empty: not asked for
    double k_factor = 1;
};
// Adds its options to the verb; it is refused beside `others`.
void add_infer_kv(CLI::App& verb, InferKvOptions& options, const std::vector<CLI::Option*>& others);
// Throws usage_error and input_error: an unknown scheme, no model of tokens.
void infer_kv(const InferKvOptions& options, const std::string& file, bool json);

}  // namespace fp8lab::cli
