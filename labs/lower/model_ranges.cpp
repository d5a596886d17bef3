#include "labs/lower/model_ranges.h"

#include <algorithm>
#include <cmath>

#include "core/inference/lowering.h"
#include "core/inference/rescale.h"

namespace fp8lab::lower {
namespace {

double value_of(const Reference& reference, const Matrix<float>& y) {
    const Score score = score_of(reference, y);
    return reference.classifies ? score.accuracy_pct : score.divergence;
}

Matrix<float> at_contrast(const Subject& subject, double contrast) {
    Matrix<float> x = subject.data.test.x;
    for (float& v : x.values) v *= static_cast<float>(contrast);
    return x;
}

// What each sweep depends on: the rest as by default.
RangesSpec of_outliers(RangesSpec spec) {
    spec.setup.smoothing = spec.dotted(), spec.setup.outlier_ratio = 1;
    if (!spec.scales.calibrated || !spec.both) spec.scales = {};
    return spec;
}
RangesSpec of_contrast(RangesSpec spec) {
    spec.setup.contrast = 1, spec.scales.calibrated = false;
    return spec;
}

void sweep_outliers(const Subject& subject, Ranges& out) {
    const Matrix<float> x = at_contrast(subject, out.spec.setup.contrast);
    for (int binade = 0; binade <= 10; ++binade) out.ratios.push_back(std::exp2(binade));
    for (const char* id : {"e4m3", "int8", "mxfp6-e2m3", "nvfp4", "mxfp4"})
        for (const bool second : {false, true})
            out.outliers.push_back({&find_low_format(id, "format"), second});
    const Reference reference =
        reference_of(forward(subject.network, x), subject.network.classifies, subject.data.test.y);
    constexpr std::size_t kChannels = 4;
    for (const double ratio : out.ratios) {
        const TrainedMlp plain =
            with_outliers(subject.network, subject.data.train_x, kChannels, static_cast<float>(ratio));
        const TrainedMlp smooth = smoothed(plain, subject.data.train_x, std::stod(out.spec.dotted()));
        const StaticScales of_plain = scales_of(out.spec.scales, plain, subject.data.train_x),
                           of_smooth = scales_of(out.spec.scales, smooth, subject.data.train_x);
        for (SweepLine& line : out.outliers) {
            const TrainedMlp& network = line.second ? smooth : plain;
            const Mix mix = uniform_mix(network.layers.size(), *line.format, out.spec.both);
            const StaticScales& scales = line.second ? of_smooth : of_plain;
            line.values.push_back(value_of(reference, run_lowered(network, x, mix, scales).y));
        }
    }
}

void sweep_contrast(const Subject& subject, Ranges& out) {
    for (int half = -6; half <= 6; ++half) out.contrasts.push_back(std::exp2(0.5 * half));
    for (const char* id : {"e4m3", "int8", "nvfp4"})
        for (const bool second : {false, true})
            out.contrast.push_back({&find_low_format(id, "format"), second});
    SetupSpec as_set = out.spec.setup;
    as_set.contrast = 1;
    const TrainedMlp network = make_setup(as_set, nullptr)->network;
    ScalesSpec calibrated = out.spec.scales;
    calibrated.calibrated = true;
    const StaticScales scales = scales_of(calibrated, network, subject.data.train_x);
    for (const double contrast : out.contrasts) {
        const Matrix<float> x = at_contrast(subject, contrast);
        const Reference reference =
            reference_of(forward(network, x), network.classifies, subject.data.test.y);
        for (SweepLine& line : out.contrast) {
            const Mix mix = uniform_mix(network.layers.size(), *line.format, out.spec.both);
            const bool losses = line.second && line.format->id == "e4m3";
            const Lowered run = run_lowered(network, x, mix, line.second ? scales : StaticScales{}, losses);
            line.values.push_back(value_of(reference, run.y));
            if (losses) out.saturated_pct.push_back(run.layers.front().a.overflow_pct());
        }
    }
}

}  // namespace

Ranges ranges_of(const RangesSpec& spec, Ranges before) {
    const Subject subject = make_subject(spec.setup.subject);
    Ranges out{.spec = spec, .classifies = subject.network.classifies};
    const bool known = before.known();
    if (known && of_outliers(before.spec) == of_outliers(spec)) {
        out.ratios = std::move(before.ratios), out.outliers = std::move(before.outliers);
    } else if (subject.network.activation == Activation::relu && subject.network.layers.size() > 1) {
        sweep_outliers(subject, out);
    }
    if (known && of_contrast(before.spec) == of_contrast(spec)) {
        out.contrasts = std::move(before.contrasts), out.contrast = std::move(before.contrast);
        out.saturated_pct = std::move(before.saturated_pct);
    } else {
        sweep_contrast(subject, out);
    }
    return out;
}

CascadeSweep cascade_sweep(const CascadeSpec& spec, std::shared_ptr<const Setup>& setup) {
    setup = make_setup(spec.setup, setup);
    CascadeSweep out{.spec = spec, .setup = setup};
    if (!setup->network.classifies) return out;
    const auto outputs = [&](const std::string& format) {
        const Mix mix = uniform_mix(setup->network.layers.size(), find_low_format(format, "format"));
        return run_lowered(setup->network, setup->x, mix).y;
    };
    out.run = cascade_run(outputs(spec.low), outputs(spec.high));
    constexpr int kPoints = 100;
    for (int i = 0; i <= kPoints; ++i) {
        out.taus.push_back(static_cast<double>(i) / kPoints);
        out.at.push_back(out.with(out.taus.back()));
    }
    return out;
}

const KvShape& KvSpec::shape() const { return std::ranges::find(kKvPresets, model, &KvPreset::id)->shape; }

double kv_bytes(const KvSpec& spec, std::string_view cache) {
    const char* format = cache == "bf16" ? "bf16" : cache == "fp8" ? "e4m3" : "nvfp4";
    return kv_bytes_per_token(spec.shape(), find_low_format(format, "format"));
}

KvErrors kv_errors(const KvCase& kv) {
    KvErrors out;
    for (std::size_t i = 0; i < out.size(); ++i)
        out.at(i) = kv_error(kv, find_low_format(kKvFormats.at(i), "format"));
    return out;
}

}  // namespace fp8lab::lower
