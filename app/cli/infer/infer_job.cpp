// Reads what infer was given: the network, its test rows, the formats.
#include "app/cli/infer/infer_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>

#include "app/cli/train/train_options.h"
#include "core/base/error.h"
#include "core/files/files.h"
#include "core/files/memory.h"
#include "core/inference/methods/lowered_mlp.h"
#include "core/inference/methods/lowered_tokens.h"
#include "core/inference/mixes.h"
#include "core/inference/rescale.h"
#include "core/inference/token_model.h"

namespace fp8lab::cli {
namespace {

// One format for all layers, or one per layer.
std::vector<const LowFormat*> formats_of(const std::string& text, const char* option, RecipeList list,
                                         std::size_t layers) {
    std::vector<const LowFormat*> out;
    for (const std::string& id : parts_of(text)) out.push_back(&find_low_format(id, option, list));
    if (out.size() == 1) out.assign(layers, out.front());
    if (out.size() != layers)
        throw usage_error(option,
                          fmt::format("names {} formats, the network has {} layers", out.size(), layers));
    return out;
}

std::optional<CascadeNames> cascade_names(const std::string& text) {
    if (text.empty()) return std::nullopt;
    const std::vector<std::string> parts = parts_of(text);
    const auto wrong = [&] {
        return usage_error("--cascade", "takes LOW,HIGH,TAU with tau from 0 to 1; got '" + text + "'");
    };
    if (parts.size() != 3) throw wrong();
    constexpr RecipeList kBoth = RecipeList::activations;  // every one of them is for weights too
    CascadeNames out{&find_low_format(parts[0], "--cascade", kBoth),
                     &find_low_format(parts[1], "--cascade", kBoth), 0};
    std::size_t read = 0;
    try {
        out.tau = std::stod(parts[2], &read);
    } catch (const std::exception&) {
        throw wrong();
    }
    if (read != parts[2].size() || !(out.tau >= 0 && out.tau <= 1)) throw wrong();
    return out;
}

void take_formats(const InferOptions& options, InferJob& job) {
    const std::size_t n = job.layers.size();
    job.both = !options.activations.empty();
    job.mix.weights = formats_of(options.weights, "--weights", RecipeList::weights, n);
    job.mix.activations =
        formats_of(job.both ? options.activations : "bf16", "--activations", RecipeList::activations, n);
    if (!options.method.empty()) check_effect(options.how, job.mix);
    if (options.all_mixes && n > kMostLayersOfAllMixes)
        throw usage_error(
            "--all-mixes",
            fmt::format("tries every mix of up to {} layers; this network has {}", kMostLayersOfAllMixes, n));
}

// With the layers as a method left them.
Lowered with_losses_of(Matrix<float> y, const std::vector<LoweredLayer>& layers,
                       const std::vector<CastStats>& inputs) {
    Lowered out{std::move(y), {}};
    for (std::size_t l = 0; l < inputs.size(); ++l)
        out.layers.push_back({layers[l].stats, inputs[l], layers[l].rel_out});
    return out;
}

TrainedMlp against_mlp(const InferOptions& options, const TrainedMlp& network) {
    TrainedMlp out = read_mlp(options.against);
    if (out.sizes() != network.sizes() || out.activation != network.activation)
        throw usage_error("--against", options.against + " is a network of other layers");
    return out;
}

void prepare_mlp(const InferOptions& options, ProgressLine& progress, InferJob& job) {
    TrainedMlp network = read_mlp(options.file);
    // The weights as they are, smoothed, in a narrower format, and where a cascade needs them.
    require_memory("infer", 4 * sizeof(float) * static_cast<double>(network.weights()));
    job.network = fmt::format("{}", fmt::join(network.sizes(), "-"));
    job.layers = layer_sizes(network);
    take_formats(options, job);
    if (job.cascade && !network.classifies) throw usage_error("--cascade", "needs a network that classifies");
    if (options.data.empty() && !options.train.empty()) throw usage_error("--train", "belongs to --data");
    const InferenceData data =
        options.data.empty() ? data_of_task(network) : data_of_files(network, options.data, options.train);
    job.data = data.name;
    const char* const sees_rows = options.calibrate > 0 ? "--calibrate"
                                  : options.smooth      ? "--smooth"
                                  : !options.method.empty() && fp8lab::sees_rows(options.how.method)
                                      ? "--method"
                                      : nullptr;
    if (sees_rows && data.train_x.rows == 0)
        throw usage_error(sees_rows, "needs training rows: name them with --train npy:X,Y");
    if (options.smooth) network = smoothed(std::move(network), data.train_x, *options.smooth);
    StaticScales scales;
    if (options.calibrate > 0) {
        progress.at("infer: calibration");
        scales = {calibrated_amaxes(network, data.train_x, options.calibration(progress)), options.margin};
    }
    progress.at("infer: the reference in FP32");
    const TrainedMlp original = options.against.empty() ? network : against_mlp(options, network);
    job.reference = reference_of(forward(original, data.test.x), network.classifies, data.test.y);
    if (!options.method.empty())
        job.run = [network, data, how = options.how](const Mix& mix, bool with_losses) {
            const LoweredMlp lowered = lower_mlp(network, data.train_x, mix, how);
            std::vector<CastStats> inputs;
            Matrix<float> y = run_lowered(network, lowered, data.test.x, with_losses ? &inputs : nullptr);
            return with_losses_of(std::move(y), lowered.layers, inputs);
        };
    else
        job.run = [network, rows = data.test.x, scales](const Mix& mix, bool with_losses) {
            return run_lowered(network, rows, mix, scales, with_losses);
        };
    job.mlp = std::move(network), job.mlp_rows = data.test.x;
}

void prepare_tokens(const InferOptions& options, TrainSpec spec, ProgressLine& progress, InferJob& job) {
    if (!options.data.empty() || !options.train.empty())
        throw usage_error(
            options.data.empty() ? "--train" : "--data",
            "is for multilayer perceptrons; a model of tokens is tested on its task's held-out tokens");
    if (options.all_mixes)
        throw usage_error("--all-mixes", "is for multilayer perceptrons; --greedy takes a model of tokens");
    spec.arms.resize(1);
    const auto model = std::make_shared<TokenModel>(spec, load_checkpoints(options.file, spec).arms.front());
    job.network = fmt::format("{}, {} layers", spec.model, model->layers().size());
    job.layers = model->layers();
    job.data = model->data().name;
    take_formats(options, job);
    constexpr std::size_t kSmoothBatches = 4;
    if (options.smooth) model->smooth(*options.smooth, kSmoothBatches);
    StaticScales scales;
    if (options.calibrate > 0)
        scales = {model->calibrated_amaxes(options.calibration(progress)), options.margin};
    progress.at("infer: the reference in FP32");
    if (options.against.empty())
        job.reference = reference_of(model->forward(), true, model->data().targets);
    else
        job.reference =
            reference_of(TokenModel(spec, load_weights("--against", options.against, spec)).forward(), true,
                         model->data().targets);
    if (!options.method.empty())
        job.run = [model, how = options.how](const Mix& mix, bool with_losses) {
            LoweredTokens lowered(model, mix, how);
            std::vector<CastStats> inputs;
            Matrix<float> y = lowered.run(with_losses ? &inputs : nullptr);
            return with_losses_of(std::move(y), lowered.layers(), inputs);
        };
    else
        job.run = [model, scales](const Mix& mix, bool with_losses) {
            return model->run(mix, scales, with_losses);
        };
}

}  // namespace

std::vector<std::string> parts_of(const std::string& text) {
    std::vector<std::string> out(1);
    for (const char c : text) {
        if (c == ',')
            out.emplace_back();
        else
            out.back() += c;
    }
    return out;
}

InferJob prepare_infer(const InferOptions& options, ProgressLine& progress) {
    InferJob job;
    progress.at("infer: reading " + options.file);
    job.cascade = cascade_names(options.cascade);
    const auto metadata = index_safetensors(RandomFile(options.file)).metadata;
    const auto line = metadata.find("command_line");
    const std::string command = line == metadata.end() ? "" : line->second,
                      model = option_in(command, "--model");
    if (model.empty() || model == "mlp")
        prepare_mlp(options, progress, job);
    else
        prepare_tokens(options, parse_command_line(command, options.file), progress, job);
    return job;
}

}  // namespace fp8lab::cli
