#include "labs/lower/model_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/files/files.h"
#include "core/inference/calibration.h"
#include "core/inference/rescale.h"
#include "core/tensors/file.h"

namespace fp8lab::lower {
namespace {

constexpr std::size_t kOutlierChannels = 4, kRandomRows = 64, kRandomTrainRows = 512;

void check_size(const TrainedMlp& network, const std::string& where) {
    if (network.weights() > kMostWeights)
        throw input_error(
            where, fmt::format("has {} weights; this lab takes up to {}", network.weights(), kMostWeights));
}

Matrix<float> random_rows(std::size_t rows, std::size_t cols, std::uint64_t stream) {
    Matrix<float> out(rows, cols);
    Rng(1, stream).fill_normal(out.values);
    return out;
}

// A file with a tensor's name is one linear layer.
Subject own_tensor(const std::string& file) {
    const Tensor tensor = read_tensor(file);
    Subject out;
    out.network.layers.push_back({Matrix<float>(tensor.rows, tensor.cols), std::vector<float>(tensor.rows)});
    out.network.layers.front().w.values = tensor.values;
    out.network.classifies = false;
    for (const float v : tensor.values)
        if (!std::isfinite(v)) throw input_error(file, "has values that are not finite");
    check_size(out.network, file);
    out.data = {{random_rows(kRandomRows, tensor.cols, 0), {}},
                random_rows(kRandomTrainRows, tensor.cols, 1),
                fmt::format("{} rows from N(0, 1)", kRandomRows)};
    out.name = fmt::format("{}, {} x {}", tensor.name, tensor.rows, tensor.cols);
    out.random_inputs = true;
    return out;
}

bool is_checkpoint(const std::string& file) {
    std::error_code ignored;
    if (!file.ends_with(".safetensors") || !std::filesystem::is_regular_file(file, ignored)) return false;
    return index_safetensors(RandomFile(file)).metadata.contains("command_line");
}

Subject own_network(const std::string& file) {
    if (file.empty())
        throw input_error("Own network", "no file is chosen: name a checkpoint of train --save");
    if (!is_checkpoint(file)) return own_tensor(file);
    Subject out;
    out.network = read_mlp(file);
    check_size(out.network, file);
    const std::string task = option_in(out.network.command_line, "--task");
    if (task == "digits" || task == "teacher") {
        out.data = data_of_task(out.network);
    } else if (task.starts_with("npy:")) {
        // The rows that it was trained on: nothing else is known of it. infer takes other rows.
        out.data = data_of_files(out.network, task, task);
        out.data.name = fmt::format("{} rows it was trained on", out.data.test.x.rows);
    } else {
        throw input_error(file,
                          fmt::format("no data: sensitivity needs inputs; fp8lab infer takes a data file "
                                      "with {} columns",
                                      out.network.inputs()));
    }
    out.name = fmt::format("own {}", fmt::join(out.network.sizes(), "-"));
    return out;
}

}  // namespace

Subject make_subject(const NetworkSpec& spec) {
    if (spec.network == "own") return own_network(spec.file);
    const bool teacher = spec.network == "teacher";
    const std::string seed = spec.network.ends_with("-2") ? "2" : spec.network.ends_with("-3") ? "3" : "1";
    Subject out;
    out.network =
        read_mlp(asset(fmt::format("models/{}-s{}.safetensors", teacher ? "teacher" : "digits", seed)));
    out.data = data_of_task(out.network);
    out.name = fmt::format("{} {}, seed {}", teacher ? "teacher" : "digits",
                           fmt::join(out.network.sizes(), "-"), seed);
    return out;
}

float exact_ratio(double ratio) {
    constexpr double kClose = 1e-3;  // binades
    const double exponent = std::log2(ratio);
    return static_cast<float>(
        std::fabs(exponent - std::round(exponent)) < kClose ? std::exp2(std::round(exponent)) : ratio);
}

StaticScales scales_of(const ScalesSpec& spec, const TrainedMlp& network, const Matrix<float>& train_x) {
    if (!spec.calibrated) return {};
    return {calibrated_amaxes(network, train_x, {static_cast<std::size_t>(spec.batches), spec.percentile}),
            spec.margin};
}

std::shared_ptr<const Setup> make_setup(const SetupSpec& spec, const std::shared_ptr<const Setup>& before) {
    if (before && before->spec == spec) return before;
    auto out = std::make_shared<Setup>();
    out->spec = spec;
    out->subject = before && before->spec.subject == spec.subject
                       ? before->subject
                       : std::make_shared<const Subject>(make_subject(spec.subject));
    const Subject& subject = *out->subject;
    out->network = subject.network;
    if (spec.outlier_ratio != 1)
        out->network = with_outliers(std::move(out->network), subject.data.train_x, kOutlierChannels,
                                     exact_ratio(spec.outlier_ratio));
    if (spec.smoothing != "off")
        out->network = smoothed(std::move(out->network), subject.data.train_x, std::stod(spec.smoothing));
    out->x = subject.data.test.x;
    for (float& v : out->x.values) v *= static_cast<float>(spec.contrast);
    out->reference =
        reference_of(forward(out->network, out->x), subject.network.classifies, subject.data.test.y);
    return out;
}

}  // namespace fp8lab::lower
