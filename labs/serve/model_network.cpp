#include "labs/serve/model_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/base/read_number.h"
#include "core/files/files.h"
#include "core/inference/lowering.h"
#include "core/nn/model.h"
#include "core/tensors/safetensors.h"
#include "core/trainer/checkpoint.h"

namespace fp8lab::serve {
namespace {

// Of a multilayer perceptron --model is not in the line.
bool is_tokens(const std::string& command_line) {
    const std::string model = option_in(command_line, "--model");
    return !model.empty() && model != "mlp";
}

template <class T>
T number_in(const std::string& command_line, const std::string& option, const std::string& where) {
    const std::string text = option_in(command_line, option);
    T value{};
    if (!read_number(text, value))
        throw input_error(where, fmt::format("its command line has no number for {}: '{}'", option, text));
    return value;
}

bool is_of_files(const std::string& task) { return task.starts_with("npy:"); }

InferenceData data_of(const TrainedMlp& network, const std::string& where) {
    const std::string task = option_in(network.command_line, "--task");
    if (task == "digits" || task == "teacher") return data_of_task(network);
    if (!is_of_files(task))
        throw input_error(where,
                          fmt::format("was trained on {}, which has no held-out rows here; fp8lab infer "
                                      "takes files with {} columns",
                                      task, network.inputs()));
    // The rows that it was trained on: nothing else is known of it.
    InferenceData out = data_of_files(network, task, task);
    out.name = fmt::format("{} rows it was trained on", out.test.x.rows);
    return out;
}

std::shared_ptr<TokenModel> read_tokens(const std::filesystem::path& file, const std::string& command_line) {
    TrainSpec spec = token_spec(command_line, file.string());
    ArmCheckpoint checkpoint = load_weights("path", file, spec);
    return std::make_shared<TokenModel>(spec, checkpoint);
}

}  // namespace

std::string version_of(const std::string& path) {
    std::error_code none;
    const std::uintmax_t size = std::filesystem::file_size(path, none);
    if (none) return {};
    const auto changed = std::filesystem::last_write_time(path, none).time_since_epoch().count();
    return none ? std::string() : fmt::format("{} {}", size, changed);
}

std::filesystem::path file_of(const NetworkSpec& spec) {
    if (spec.network == "transformer") return asset("models/transformer-600.safetensors");
    if (spec.network != "own") return asset(fmt::format("models/{}.safetensors", spec.network));
    if (spec.path.empty())
        throw input_error("Own network", "no file is chosen: name a checkpoint of train --save");
    return spec.path;
}

TrainSpec token_spec(const std::string& command_line, const std::string& where) {
    TrainOptions options;
    options.model = option_in(command_line, "--model");
    options.task = option_in(command_line, "--task");
    options.recipes = "fp32";
    for (const ModelOption& option : find_model(options.model).options) {
        const std::string name = "--" + std::string(option.name);
        if (!option_in(command_line, name).empty())
            options.sizes[std::string(option.name)] = option.read(option_in(command_line, name));
    }
    options.batch = number_in<int>(command_line, "--batch", where);
    options.steps = number_in<int>(command_line, "--steps", where);
    options.seed = number_in<std::uint64_t>(command_line, "--seed", where);
    return make_train_spec(options);
}

std::size_t Served::train_rows() const {
    if (mlp) return data.train_x.rows;
    return static_cast<std::size_t>(TokenModel::kTrainSequences * tokens->spec().sizes.at("context"));
}

std::shared_ptr<const Served> make_served(const NetworkSpec& spec) {
    const std::filesystem::path file = file_of(spec);
    const std::string command_line = command_line_of(file);
    auto out = std::make_shared<Served>();
    out->spec = spec;
    if (is_tokens(command_line)) {
        out->tokens = read_tokens(file, command_line);
        out->layers = out->tokens->layers();
        out->reference = reference_of(out->tokens->forward(), true, out->tokens->data().targets);
    } else {
        auto mlp = std::make_shared<TrainedMlp>(read_mlp(file));
        out->data = data_of(*mlp, file.string());
        out->held_out = !is_of_files(option_in(mlp->command_line, "--task"));
        out->layers = layer_sizes(*mlp);
        out->reference = reference_of(forward(*mlp, out->data.test.x), mlp->classifies, out->data.test.y);
        out->mlp = std::move(mlp);
    }
    out->name = spec.network == "own" ? file.filename().string() : spec.network;
    return out;
}

std::shared_ptr<TokenModel> make_tokens(const NetworkSpec& spec) {
    const std::filesystem::path file = file_of(spec);
    const std::string command_line = command_line_of(file);
    if (!is_tokens(command_line))
        throw usage_error(file.filename().string(),
                          "is a multilayer perceptron: it has neither tokens nor a cache");
    return read_tokens(file, command_line);
}

std::shared_ptr<const Served> make_digits(const NetworkSpec& spec) {
    auto out = make_served(spec);
    if (!out->mlp)
        throw usage_error(out->name, "is a model of tokens; this part takes the networks of digits");
    return out;
}

}  // namespace fp8lab::serve
