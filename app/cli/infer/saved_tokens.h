// A model of tokens from a checkpoint that a verb names.
#pragma once

#include <memory>
#include <string>

#include "core/inference/token_model.h"

namespace fp8lab::cli {

struct SavedTokens {
    TrainSpec spec;
    ArmCheckpoint checkpoint;
    std::shared_ptr<TokenModel> model(int batches = TokenModel::kTestBatches) const;
};
// Throws usage_error(where, ...): a model of something else; input_error: no checkpoint.
SavedTokens read_tokens(const std::string& file, const std::string& where);

}  // namespace fp8lab::cli
