// fp8lab infer FILE: a checkpoint of train --save with its weights, and if wanted its activations, in narrower formats.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/infer/infer_report.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/console.h"
#include "core/inference/cascade.h"
#include "core/inference/data.h"
#include "core/inference/mixes.h"
#include "core/inference/rescale.h"

namespace fp8lab::cli {
namespace {

struct InferOptions {
    std::string file, data, train, weights, activations, cascade;
    int calibrate = 0, margin = 0;
    std::optional<double> smooth;
    bool all_mixes = false, json = false, csv = false;
};

struct CascadeNames {
    const LowFormat *low = nullptr, *high = nullptr;
    double tau = 0;
};

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

// One format for all layers, or one per layer.
std::vector<const LowFormat*> formats_of(const std::string& text, const char* option, std::size_t layers) {
    std::vector<const LowFormat*> out;
    for (const std::string& id : parts_of(text)) out.push_back(&find_low_format(id, option));
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
    CascadeNames out{&find_low_format(parts[0], "--cascade"), &find_low_format(parts[1], "--cascade"), 0};
    std::size_t read = 0;
    try {
        out.tau = std::stod(parts[2], &read);
    } catch (const std::exception&) {
        throw wrong();
    }
    if (read != parts[2].size() || !(out.tau >= 0 && out.tau <= 1)) throw wrong();
    return out;
}

// What the verb works on, when everything that it was given has been read.
struct InferJob {
    TrainedMlp network;
    InferenceData data;
    Mix mix;
    bool both = false;  // activations are lowered too
    StaticScales scales;
    Reference reference;
    std::optional<CascadeNames> cascade;
};

InferJob prepare_infer(const InferOptions& options) {
    InferJob job;
    job.cascade = cascade_names(options.cascade);
    job.network = read_mlp(options.file);
    const std::size_t n = job.network.layers.size();
    job.both = !options.activations.empty();
    job.mix.weights = formats_of(options.weights, "--weights", n);
    job.mix.activations = formats_of(job.both ? options.activations : "bf16", "--activations", n);
    if (options.all_mixes && n > kMostLayersOfAllMixes)
        throw usage_error(
            "--all-mixes",
            fmt::format("tries every mix of up to {} layers; this network has {}", kMostLayersOfAllMixes, n));
    if (job.cascade && !job.network.classifies)
        throw usage_error("--cascade", "needs a network that classifies");
    if (options.data.empty() && !options.train.empty()) throw usage_error("--train", "belongs to --data");
    job.data = options.data.empty() ? data_of_task(job.network)
                                    : data_of_files(job.network, options.data, options.train);
    if ((options.calibrate > 0 || options.smooth) && job.data.train_x.rows == 0)
        throw usage_error(options.calibrate > 0 ? "--calibrate" : "--smooth",
                          "takes amaxes from training rows: name them with --train npy:X,Y");
    if (options.smooth) job.network = smoothed(std::move(job.network), job.data.train_x, *options.smooth);
    if (options.calibrate > 0)
        job.scales = {
            calibrated_amaxes(job.network, job.data.train_x, static_cast<std::size_t>(options.calibrate)),
            options.margin};
    job.reference =
        reference_of(forward(job.network, job.data.test.x), job.network.classifies, job.data.test.y);
    return job;
}

nlohmann::json infer_layers(const InferJob& job, const Lowered& run) {
    nlohmann::json out = nlohmann::json::array();
    const std::size_t n = job.network.layers.size();
    for (std::size_t l = 0; l < n; ++l) {
        const LinearLayer& layer = job.network.layers[l];
        const CastStats &w = run.layers[l].w, &a = run.layers[l].a;
        Mix alone = single_mix(n, l, *job.mix.weights[l], false);
        alone.activations[l] = job.both ? job.mix.activations[l] : alone.activations[(l + 1) % n];
        if (!job.both) alone.activations.assign(n, &find_low_format("fp32", "format"));
        const double sensitivity =
            divergence_of(job.reference, run_lowered(job.network, job.data.test.x, alone, job.scales).y);
        out.push_back({{"layer", l + 1},
                       {"outputs", layer.w.rows},
                       {"inputs", layer.w.cols},
                       {"share_pct", 100.0 * static_cast<double>(layer.w.values.size()) /
                                         static_cast<double>(job.network.weights())},
                       {"weights", job.mix.weights[l]->id},
                       {"activations", job.mix.activations[l]->id},
                       {"sensitivity", finite_or_null(sensitivity)},
                       {"underflow_pct_w", w.underflow_pct()},
                       {"underflow_pct_a", a.underflow_pct()},
                       {"sqnr_db_w", finite_or_null(w.sqnr_db())},
                       {"sqnr_db_a", finite_or_null(a.sqnr_db())},
                       {"saturated_pct_a", a.overflow_pct()},
                       {"rel_l2_w", finite_or_null(std::sqrt(w.noise / w.signal))}});
    }
    return out;
}

// The formats that every mix is tried with, from wide to narrow.
std::vector<const LowFormat*> mixed_formats() {
    std::vector<const LowFormat*> out;
    for (const char* id : {"bf16", "int8", "e4m3", "mxfp8", "mxfp6-e2m3", "nvfp4", "mxfp4", "e2m1"})
        out.push_back(&find_low_format(id, "format"));
    return out;
}

void infer(const InferOptions& options) {
    const Interruptible keeps;
    const InferJob job = prepare_infer(options);
    const Lowered run = run_lowered(job.network, job.data.test.x, job.mix, job.scales, true);
    const Score score = score_of(job.reference, run.y);
    constexpr double kKB = 1000;
    nlohmann::json out = json_header(cpu_backend()->device());
    out["file"] = options.file;
    out["network"] = fmt::format("{}", fmt::join(job.network.sizes(), "-"));
    out["data"] = job.data.name;
    out["rows"] = job.data.test.x.rows;
    out["divergence_is"] = job.network.classifies ? "nats" : "relative squared error";
    out["bits"] = bits_per_weight(job.network, job.mix);
    out["kb"] = weight_bytes(job.network, job.mix) / kKB;
    out["divergence"] = finite_or_null(score.divergence);
    out["accuracy_pct"] = finite_or_null(score.accuracy_pct);
    out["accuracy_fp32_pct"] = finite_or_null(accuracy_pct_of(job.reference.answers, job.reference.right));
    out["changed"] = score.changed;
    out["mean_abs"] = finite_or_null(score.mean_abs);
    out["max_abs"] = finite_or_null(score.max_abs);
    out["relative_pct"] = finite_or_null(score.relative_pct);
    out["layers"] = infer_layers(job, run);
    if (job.cascade) {
        const auto outputs = [&](const LowFormat& format) {
            return run_lowered(job.network, job.data.test.x, uniform_mix(job.network.layers.size(), format),
                               job.scales)
                .y;
        };
        const Cascade c =
            cascade_of(job.reference, cascade_run(outputs(*job.cascade->low), outputs(*job.cascade->high)),
                       job.cascade->tau);
        out["cascade"] = {{"low", job.cascade->low->id},
                          {"high", job.cascade->high->id},
                          {"tau", job.cascade->tau},
                          {"repeated_pct", c.repeated_pct},
                          {"cost", c.cost},
                          {"accuracy_pct", finite_or_null(c.accuracy_pct)},
                          {"accuracy_low_pct", finite_or_null(c.accuracy_low_pct)},
                          {"accuracy_high_pct", finite_or_null(c.accuracy_high_pct)},
                          {"divergence", finite_or_null(c.divergence)}};
    }
    std::optional<AllMixes> all;
    if (options.all_mixes) {
        const auto formats = mixed_formats();
        all = all_mixes(job.network, job.data.test.x, job.reference, formats, job.both, interrupted);
        end_if_interrupted("before all mixes were tried");
        out["mixes"] = mixes_json(*all, out["bits"].get<double>(), score.divergence);
    }
    end_if_interrupted();
    if (options.json)
        print_json(out);
    else
        write_stdout(options.csv ? infer_csv(out, all) : infer_table(out));
}

}  // namespace

void add_infer(CLI::App& app, Globals&) {
    const auto options = std::make_shared<InferOptions>();
    CLI::App* verb = app.add_subcommand("infer", "A trained network with a format per layer: what it costs");
    verb->add_option("file", options->file, "a checkpoint that train --save has written")->required();
    verb->add_option("--data", options->data,
                     "npy:X,Y, the test rows; left out: those of the task, where it has some");
    verb->add_option("--train", options->train, "npy:X,Y, training rows, for --calibrate and --smooth");
    verb->add_option("--weights", options->weights, "F[,F...]: one format, or one per layer")->required();
    verb->add_option("--activations", options->activations, "F[,F...]; left out: BF16, weights only");
    CLI::Option* calibrate =
        verb->add_option("--calibrate", options->calibrate,
                         "static scales of the activations: amaxes of that many batches of 32 training rows")
            ->check(CLI::Range(1, 1'000'000));
    verb->add_option("--margin", options->margin, "binades that calibrated scales leave free")
        ->check(CLI::Range(0, 16))
        ->needs(calibrate);
    verb->add_option("--smooth", options->smooth, "SmoothQuant's alpha, 0 to 1")->check(CLI::Range(0.0, 1.0));
    verb->add_option("--cascade", options->cascade,
                     "LOW,HIGH,TAU: rows with p1 - p2 < TAU in LOW are run again in HIGH");
    verb->add_flag("--all-mixes", options->all_mixes, "every mix of 8 formats, networks of up to 5 layers");
    CLI::Option* json = verb->add_flag("--json", options->json, "as JSON");
    verb->add_flag("--csv", options->csv, "one row per layer, or per mix with --all-mixes")->excludes(json);
    verb->callback([options] { infer(*options); });
}

}  // namespace fp8lab::cli
