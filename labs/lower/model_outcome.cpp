#include "labs/lower/model_outcome.h"

#include <algorithm>
#include <cmath>

namespace fp8lab::lower {
namespace {

OutputRow output_row(const Setup& setup, const Mix& mix, const LowFormat* format, const Matrix<float>& y) {
    constexpr double kKB = 1000;
    return {format, bits_per_weight(setup.network, mix), weight_bytes(setup.network, mix) / kKB,
            score_of(setup.reference, y)};
}

std::vector<LayerRow> layer_rows(const Setup& setup, const Lowered& run,
                                 const std::vector<double>& sensitivity) {
    std::vector<LayerRow> out;
    const auto all = static_cast<double>(setup.network.weights());
    for (std::size_t l = 0; l < run.layers.size(); ++l) {
        const Matrix<float>& w = setup.network.layers[l].w;
        const CastStats &of_w = run.layers[l].w, &of_a = run.layers[l].a;
        out.push_back({.outputs = w.rows,
                       .inputs = w.cols,
                       .share_pct = 100 * static_cast<double>(w.values.size()) / all,
                       .sensitivity = sensitivity[l],
                       .underflow_pct_w = of_w.underflow_pct(),
                       .underflow_pct_a = of_a.underflow_pct(),
                       .sqnr_db_w = of_w.sqnr_db(),
                       .sqnr_db_a = of_a.sqnr_db(),
                       .saturated_pct_a = of_a.overflow_pct(),
                       .rel_l2_w = std::sqrt(of_w.noise / of_w.signal)});
    }
    return out;
}

// The parts of a state that the uniform formats and the sensitivities depend on.
MixSpec without_chips(MixSpec spec) {
    spec.w = spec.a = {};
    spec.w_more = spec.a_more = {};
    spec.uniform = "mix", spec.budget = kMostBits;
    return spec;
}

}  // namespace

std::vector<const LowFormat*> uniform_formats() {
    std::vector<const LowFormat*> out = low_formats(RecipeList::weights);
    std::erase_if(out, [](const LowFormat* format) {
        return format->id == "fp32" || !meet(format->in, RecipeList::activations);
    });
    return out;
}

std::shared_ptr<const Cloud> make_cloud(const CloudSpec& spec, std::shared_ptr<const Setup>& setup) {
    setup = make_setup(spec.setup, setup);
    auto out = std::make_shared<Cloud>();
    out->spec = spec;
    const auto known = mix_formats();
    const StaticScales scales = scales_of(spec.scales, setup->network, setup->subject->data.train_x);
    if (setup->network.layers.size() <= kMostLayersOfAllMixes) {
        out->all = all_mixes(setup->network, setup->x, setup->reference, known, spec.both, {}, scales);
        out->frontier = frontier_of(out->all.points);
        return out;
    }
    const auto divergence = [&](const Mix& mix) {
        return divergence_of(setup->reference, run_lowered(setup->network, setup->x, mix, scales).y);
    };
    out->greedy = greedy_path(layer_sizes(setup->network), divergence, greedy_formats(), spec.both);
    return out;
}

std::optional<Mix> best_under(const Cloud& cloud, double bits) {
    if (const auto best = best_within(cloud.all.points, bits)) return cloud.all.mix(*best);
    for (const GreedyStep& step : cloud.greedy)
        if (step.point.bits <= bits) return step.mix;
    return std::nullopt;
}

std::string format_of_layer(const std::array<std::string, kLayerFields>& fields, const std::string& more,
                            std::size_t layer) {
    if (layer < kLayerFields) return fields.at(layer);
    std::size_t begin = 0;
    for (std::size_t skip = layer - kLayerFields; skip > 0; --skip) {
        const std::size_t comma = more.find(',', begin);
        if (comma == more.npos) break;
        begin = comma + 1;
    }
    return more.substr(begin, more.find(',', begin) - begin);
}

void set_format_of_layer(std::array<std::string, kLayerFields>& fields, std::string& more, std::size_t layer,
                         std::size_t layers, std::string_view format) {
    if (layer < kLayerFields) {
        fields.at(layer) = format;
        return;
    }
    std::string list;
    for (std::size_t l = kLayerFields; l < layers; ++l)
        list += (l > kLayerFields ? "," : "") +
                (l == layer ? std::string(format) : format_of_layer(fields, more, l));
    more = std::move(list);
}

Mix mix_of(const MixSpec& spec, std::size_t layers) {
    const LowFormat& kept = find_low_format("bf16", "format");
    Mix mix;
    for (std::size_t l = 0; l < layers; ++l) {
        const bool all_alike = spec.uniform != "mix";
        const std::string in_w = all_alike ? spec.uniform : format_of_layer(spec.w, spec.w_more, l),
                          in_a = all_alike ? "w" : format_of_layer(spec.a, spec.a_more, l);
        const LowFormat& w = find_low_format(in_w, "format");
        mix.weights.push_back(&w);
        mix.activations.push_back(!spec.both ? &kept : in_a == "w" ? &w : &find_low_format(in_a, "format"));
    }
    return mix;
}

Outcome MixMaker::operator()(const MixRequest& request) {
    const auto& [spec, cloud] = request;
    setup_ = make_setup(spec.setup, setup_);
    const std::size_t n = setup_->network.layers.size();
    const MixSpec key = without_chips(spec);
    if (uniforms_.empty() || key != of_uniforms_) {
        scales_ = scales_of(spec.scales, setup_->network, setup_->subject->data.train_x);
        uniforms_.clear();
        for (const LowFormat* format : uniform_formats()) {
            const Mix mix = uniform_mix(n, *format, spec.both);
            uniforms_.push_back(
                output_row(*setup_, mix, format, run_lowered(setup_->network, setup_->x, mix, scales_).y));
        }
        sensitivity_ = sensitivities(setup_->network, setup_->x, setup_->reference,
                                     find_low_format(spec.probe, "probe"), spec.both, scales_);
        of_uniforms_ = key;
    }
    Outcome out{.spec = spec, .setup = setup_, .mix = mix_of(spec, n), .uniforms = uniforms_};
    if (spec.budget < kMostBits && cloud)
        if (auto best = best_under(*cloud, spec.budget)) out.mix = std::move(*best);
    const Lowered run = run_lowered(setup_->network, setup_->x, out.mix, scales_, true);
    out.own = output_row(*setup_, out.mix, nullptr, run.y);
    out.layers = layer_rows(*setup_, run, sensitivity_);
    out.accuracy_fp32_pct = accuracy_pct_of(setup_->reference.answers, setup_->reference.right);
    return out;
}

const LowFormat* uniform_of(const Mix& mix) {
    const LowFormat* first = mix.weights.front();
    const bool same =
        std::ranges::all_of(mix.weights, [&](const LowFormat* f) { return f == first; }) &&
        (mix.activations == mix.weights ||
         std::ranges::all_of(mix.activations, [](const LowFormat* f) { return f->id == "bf16"; }));
    return same ? first : nullptr;
}

std::string mix_words(const Mix& mix) {
    if (const LowFormat* one = uniform_of(mix)) return std::string(one->label) + " everywhere";
    std::string out;
    for (const LowFormat* format : mix.weights) out += (out.empty() ? "" : ", ") + std::string(format->label);
    return out;
}

}  // namespace fp8lab::lower
