#include "app/cli/infer/saved_tokens.h"

#include "app/cli/train/train_options.h"
#include "core/base/error.h"

namespace fp8lab::cli {

std::shared_ptr<TokenModel> SavedTokens::model(int batches) const {
    return std::make_shared<TokenModel>(spec, checkpoint, batches);
}

SavedTokens read_tokens(const std::string& file, const std::string& where) {
    const auto metadata = index_safetensors(RandomFile(file)).metadata;
    const auto line = metadata.find("command_line");
    const std::string command = line == metadata.end() ? "" : line->second,
                      model = option_in(command, "--model");
    if (model.empty() || model == "mlp")
        throw usage_error(where, "is for models of tokens: " + file + " is none");
    SavedTokens out{parse_command_line(command, file), {}};
    out.spec.arms.resize(1);
    out.checkpoint = load_checkpoints(file, out.spec).arms.front();
    return out;
}

}  // namespace fp8lab::cli
