// infer --mixed-tokens: which tokens of a transformer are in the wider of two formats.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "app/cli/infer/infer_job.h"

namespace fp8lab::cli {

// Adds its options to the verb; it is refused beside `others`.
void add_infer_tokens(CLI::App& verb, InferOptions& options, const std::vector<CLI::Option*>& others);
// Throws usage_error and input_error as prepare_infer().
void infer_tokens(const InferOptions& options);

}  // namespace fp8lab::cli
