// fp8lab infer FILE: a checkpoint of train --save with its weights, and if wanted its activations, in narrower formats.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>

#include "app/cli/infer/infer_job.h"
#include "app/cli/infer/infer_kv.h"
#include "app/cli/infer/infer_report.h"
#include "app/cli/infer/infer_tokens.h"
#include "app/cli/option_values.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/files/console.h"
#include "core/inference/cascade.h"
#include "core/inference/mixes.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

nlohmann::json infer_layers(const InferJob& job, const Lowered& run, ProgressLine& progress) {
    nlohmann::json out = nlohmann::json::array();
    const std::size_t n = job.layers.size();
    std::size_t weights = 0;
    for (const LayerSize& layer : job.layers) weights += layer.out * layer.in;
    for (std::size_t l = 0; l < n; ++l) {
        progress.at(fmt::format("infer: layer {} of {} alone", l + 1, n));
        const LayerSize& layer = job.layers[l];
        const CastStats &w = run.layers[l].w, &a = run.layers[l].a;
        Mix alone = single_mix(n, l, *job.mix.weights[l], false);
        alone.activations[l] = job.both ? job.mix.activations[l] : alone.activations[(l + 1) % n];
        if (!job.both) alone.activations.assign(n, &find_low_format("fp32", "format"));
        const double sensitivity = divergence_of(job.reference, job.run(alone, false).y);
        out.push_back(
            {{"layer", l + 1},
             {"name", layer.name},
             {"outputs", layer.out},
             {"inputs", layer.in},
             {"share_pct", 100.0 * static_cast<double>(layer.out * layer.in) / static_cast<double>(weights)},
             {"weights", job.mix.weights[l]->id},
             {"activations", job.mix.activations[l]->id},
             {"sensitivity", finite_or_null(sensitivity)},
             {"underflow_pct_w", w.underflow_pct()},
             {"underflow_pct_a", a.underflow_pct()},
             {"sqnr_db_w", finite_or_null(w.sqnr_db())},
             {"sqnr_db_a", finite_or_null(a.sqnr_db())},
             {"saturated_pct_a", a.overflow_pct()},
             {"rel_l2_w", finite_or_null(std::sqrt(w.noise / w.signal))},
             {"rel_out", finite_or_null(run.layers[l].rel_out)}});
    }
    return out;
}

MixesTold told_by(ProgressLine& progress, const char* what) {
    return [&progress, what](std::size_t done, std::size_t of) {
        if (progress.due()) progress.at(fmt::format("infer: {} of {} {}", done, of, what));
    };
}

nlohmann::json cascade_json(const InferJob& job) {
    const CascadeNames& names = *job.cascade;
    const auto outputs = [&](const LowFormat& format) {
        return job.run(uniform_mix(job.layers.size(), format), false).y;
    };
    const Cascade c =
        cascade_of(job.reference, cascade_run(outputs(*names.low), outputs(*names.high)), names.tau);
    return {{"low", names.low->id},
            {"high", names.high->id},
            {"tau", names.tau},
            {"repeated_pct", c.repeated_pct},
            {"cost", c.cost},
            {"accuracy_pct", finite_or_null(c.accuracy_pct)},
            {"accuracy_low_pct", finite_or_null(c.accuracy_low_pct)},
            {"accuracy_high_pct", finite_or_null(c.accuracy_high_pct)},
            {"divergence", finite_or_null(c.divergence)}};
}

// What is said of the mix as a whole.
nlohmann::json mix_json(const InferOptions& options, const InferJob& job, const Score& score) {
    constexpr double kKB = 1000;
    nlohmann::json out = json_header(cpu_backend()->device());
    out["file"] = options.file;
    out["network"] = job.network;
    out["data"] = job.data;
    out["rows"] = job.reference.y.rows;
    out["divergence_is"] = job.reference.classifies ? "nats" : "relative squared error";
    out["bits"] = bits_per_weight(job.layers, job.mix);
    out["kb"] = weight_bytes(job.layers, job.mix) / kKB;
    out["divergence"] = finite_or_null(score.divergence);
    out["accuracy_pct"] = finite_or_null(score.accuracy_pct);
    out["accuracy_fp32_pct"] = finite_or_null(accuracy_pct_of(job.reference.answers, job.reference.right));
    out["changed"] = score.changed;
    out["mean_abs"] = finite_or_null(score.mean_abs);
    out["max_abs"] = finite_or_null(score.max_abs);
    out["relative_pct"] = finite_or_null(score.relative_pct);
    return out;
}

// There is nothing to keep before the end, so that a signal ends it at once.
void infer(InferOptions options) {
    if (!options.method.empty()) options.how.method = find_method(options.method, "--method");
    options.how.order = find_column_order(options.order, "--order");
    check_percentile(options.percentile, "--percentile");
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    const InferJob job = prepare_infer(options, progress);
    progress.at("infer: the mix");
    const Lowered run = job.run(job.mix, true);
    const Score score = score_of(job.reference, run.y);
    nlohmann::json out = mix_json(options, job, score);
    out["layers"] = infer_layers(job, run, progress);
    if (job.cascade) out["cascade"] = cascade_json(job);
    std::optional<AllMixes> all;
    if (options.all_mixes) {
        const auto formats = mix_formats();
        all = all_mixes(*job.mlp, job.mlp_rows, job.reference, formats, job.both,
                        told_by(progress, "mixes of --all-mixes"));
        out["mixes"] = mixes_json(*all, out["bits"].get<double>(), score.divergence);
    }
    if (options.greedy) {
        const auto divergence = [&](const Mix& mix) {
            return divergence_of(job.reference, job.run(mix, false).y);
        };
        out["greedy"] = greedy_json(greedy_path(job.layers, divergence, greedy_formats(), job.both,
                                                told_by(progress, "steps of --greedy")));
    }
    progress.erase();
    if (options.json)
        print_json(out);
    else
        write_stdout(options.csv ? infer_csv(out, all) : infer_table(out));
}

void add_method(CLI::App& verb, InferOptions& options, const std::vector<CLI::Option*>& others) {
    CLI::Option* method =
        verb.add_option("--method", options.method,
                        fmt::format("{}: how the weights are lowered",
                                    fmt::join(methods() | std::views::transform(&MethodInfo::name), ", ")));
    for (CLI::Option* other : others) method->excludes(other);
    verb.add_option("--rows", options.how.rows, "training rows that the method sees; left out: all")
        ->check(whole("--rows", 1, 1'000'000))
        ->needs(method);
    verb.add_option("--damp", options.how.damp, "GPTQ's damping, a part of the mean of H's diagonal; 0.01")
        ->check(CLI::PositiveNumber)
        ->needs(method);
    verb.add_option(
            "--order", options.order,
            fmt::format("{}: the column that GPTQ casts first, the left one or that of the largest "
                        "inputs; given",
                        fmt::join(kColumnOrders | std::views::transform(&Named<ColumnOrder>::name), ", ")))
        ->needs(method);
    verb.add_flag("!--no-awq-floor", options.how.awq_floor,
                  "AWQ also divides channels that are almost 0 in all training rows")
        ->needs(method);
    verb.add_option(
            "--amax", options.how.amax_factor,
            "the amax of which an input's scale is, times 2^-6 to 2^16; formats with a scale per tensor")
        ->check(CLI::Range(0x1p-6, 0x1p16))
        ->needs(method);
}

}  // namespace

void add_infer(CLI::App& app, Globals&) {
    const auto options = std::make_shared<InferOptions>();
    CLI::App* verb = app.add_subcommand("infer", "A trained network with a format per layer: what it costs");
    verb->add_option("file", options->file, "a checkpoint that train --save has written")->required();
    verb->add_option("--data", options->data,
                     "npy:X,Y, the test rows; left out: those of the task, where it has some");
    verb->add_option("--train", options->train,
                     "npy:X,Y, training rows, for --calibrate, --smooth and --method");
    CLI::Option* weights =
        verb->add_option("--weights", options->weights, "F[,F...]: one format, or one per layer; required");
    verb->add_option("--activations", options->activations, "F[,F...]; left out: BF16, weights only");
    verb->add_option(
        "--against", options->against,
        "a checkpoint of the same layers: its outputs in FP32 are the reference, not FILE's own");
    CLI::Option* calibrate =
        verb->add_option("--calibrate", options->calibrate,
                         "static scales of the activations: amaxes of that many batches of 32 training rows")
            ->check(whole("--calibrate", 1, 1'000'000));
    verb->add_option(
            "--percentile", options->percentile,
            "of the magnitudes that --calibrate has seen, instead of their amax; above 0, at most 100")
        ->needs(calibrate);
    verb->add_option("--margin", options->margin, "binades that calibrated scales leave free")
        ->check(whole("--margin", 0, 16))
        ->needs(calibrate);
    CLI::Option* smooth = verb->add_option("--smooth", options->smooth, "SmoothQuant's alpha, 0 to 1")
                              ->check(CLI::Range(0.0, 1.0));
    CLI::Option* cascade = verb->add_option(
        "--cascade", options->cascade, "LOW,HIGH,TAU: rows with p1 - p2 < TAU in LOW are run again in HIGH");
    CLI::Option* all_mixes =
        verb->add_flag("--all-mixes", options->all_mixes,
                       fmt::format("every mix of {} formats, networks of up to {} layers",
                                   mix_formats().size(), kMostLayersOfAllMixes));
    CLI::Option* greedy =
        verb->add_flag(
                "--greedy", options->greedy,
                "from all layers in MXFP8, one layer after the other in fewer bits, the cheapest step first")
            ->excludes(all_mixes);
    add_method(*verb, *options, {calibrate, smooth, cascade, all_mixes, greedy});
    CLI::Option* json = verb->add_flag("--json", options->json, "as JSON");
    verb->add_flag("--csv", options->csv,
                   "one row per layer, per mix with --all-mixes, or per step with --greedy")
        ->excludes(json);
    const std::vector<CLI::Option*> of_layers = verb->get_options([&](const CLI::Option* option) {
        return option->get_name().starts_with("--") && option != json && option->get_name() != "--help";
    });
    add_infer_tokens(*verb, *options, of_layers);
    const auto kv = std::make_shared<InferKvOptions>();
    add_infer_kv(*verb, *kv, of_layers);
    verb->get_option("--kv")->excludes(verb->get_option("--mixed-tokens"));
    verb->callback([options, kv, weights] {
        if (!kv->scheme.empty()) return infer_kv(*kv, options->file, options->json);
        if (!options->mixed_tokens.empty()) return infer_tokens(*options);
        if (weights->count() == 0) throw usage_error("infer", "--weights is required");
        infer(*options);
    });
}

}  // namespace fp8lab::cli
