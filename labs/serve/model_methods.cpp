#include "labs/serve/model_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/inference/methods/lowered_mlp.h"
#include "core/inference/methods/lowered_tokens.h"
#include "core/threads/parallel.h"

namespace fp8lab::serve {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

const LowFormat& scheme_of(const std::string& id) {
    return find_low_format(id, "scheme", RecipeList::weights);
}

std::vector<LayerErrors> errors_of(const std::vector<LayerSize>& sizes,
                                   const std::vector<LoweredLayer>& layers) {
    std::vector<LayerErrors> out;
    for (std::size_t l = 0; l < layers.size(); ++l)
        out.push_back({.size = sizes[l], .w = layers[l].rel_l2_w(), .out = layers[l].rel_out});
    return out;
}

Evaluation evaluate(const Served& served, const Mix& mix, const MethodOptions& options) {
    Evaluation out;
    out.bits = bits_per_weight(served.layers, mix);
    if (served.mlp) {
        const LoweredMlp lowered = lower_mlp(*served.mlp, served.data.train_x, mix, options);
        out.score = score_of(served.reference, run_lowered(*served.mlp, lowered, served.data.test.x));
        out.layers = errors_of(served.layers, lowered.layers);
    } else {
        LoweredTokens lowered(served.tokens, mix, options);
        out.score = score_of(served.reference, lowered.run());
        out.layers = errors_of(served.layers, lowered.layers());
    }
    return out;
}

bool is_offered(const LowFormat& scheme, bool both) {
    return !both || meet(scheme.in, RecipeList::activations);
}

}  // namespace

const LowFormat& Chosen::scheme() const { return scheme_of(spec.scheme); }

double Chosen::mean(double LayerErrors::*error) const {
    double sum = 0;
    for (const LayerErrors& layer : layers) sum += layer.*error;
    return sum / static_cast<double>(layers.size());
}

double Stem::of(Method method) const {
    return divergence.at(
        static_cast<std::size_t>(std::ranges::find(kStemMethods, method) - kStemMethods.begin()));
}

bool has_amax(const std::string& scheme, bool both) { return both && scheme_of(scheme).has_static_scale; }

const Served& Evaluator::served(const NetworkSpec& spec) {
    if (!served_ || served_->spec != spec) served_ = make_served(spec), known_.clear();
    return *served_;
}

Evaluator::Plan Evaluator::plan(const CommonSpec& common, const Asked& asked) {
    const Served& network = served(common.network);
    if (!is_offered(*asked.scheme, common.both))
        throw usage_error(
            "scheme", fmt::format("{} is for weights only: no GEMM reads inputs in it", asked.scheme->label));
    MethodOptions options{.method = asked.method, .amax_factor = static_cast<float>(asked.amax)};
    if (has_gptq(asked.method)) options.damp = common.damp, options.order = common.order;
    Plan out{uniform_mix(network.layers.size(), *asked.scheme, common.both), options, {}};
    check_effect(options, out.mix);
    // Every method's errors of outputs are those on the same rows, also of one that is not calibrated.
    options.rows = static_cast<std::size_t>(common.rows);
    out.options = options;
    out.key =
        fmt::format("{} {} {} {} {} {} {}", asked.scheme->id, to_string(asked.method), common.both,
                    options.rows, options.damp, name_in(kColumnOrders, options.order), options.amax_factor);
    return out;
}

const Evaluation& Evaluator::operator()(const CommonSpec& common, const LowFormat& scheme, Method method,
                                        double amax) {
    const Plan asked = plan(common, {&scheme, method, amax});
    if (const auto known = known_.find(asked.key); known != known_.end()) return known->second;
    return known_[asked.key] = evaluate(served(common.network), asked.mix, asked.options);
}

void Evaluator::prepare(const CommonSpec& common, std::span<const Asked> asked) {
    const Served& network = served(common.network);
    if (network.tokens) return;  // it is used by one thread
    std::vector<Plan> plans;
    for (const Asked& one : asked) {
        try {
            if (Plan next = plan(common, one); !known_.contains(next.key)) plans.push_back(std::move(next));
        } catch (const Error&) {
            continue;
        }
    }
    std::vector<std::optional<Evaluation>> done(plans.size());
    parallel_for(plans.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) try {
                done[i] = evaluate(network, plans[i].mix, plans[i].options);
            } catch (const Error&) {
                continue;
            }
    });
    for (std::size_t i = 0; i < plans.size(); ++i)
        if (done[i]) known_[plans[i].key] = std::move(*done[i]);
}

// A mark that is left out; of the method chosen, the same error says why.
double Evaluator::divergence(const CommonSpec& common, const LowFormat& scheme, Method method) {
    try {
        return (*this)(common, scheme, method).score.divergence;
    } catch (const Error&) {
        return kNone;
    }
}

bool is_stem(std::string_view scheme) { return std::ranges::find(kStems, scheme) != kStems.end(); }

bool takes_inputs(const std::string& scheme) { return is_offered(scheme_of(scheme), true); }

Chosen chosen_of(const ChosenSpec& spec, Evaluator& evaluator) {
    const Served& served = evaluator.served(spec.common.network);
    const LowFormat& scheme = scheme_of(spec.scheme);
    const double amax = has_amax(spec.scheme, spec.common.both) ? spec.amax : 1;
    const Evaluation& nearest = evaluator(spec.common, scheme, Method::nearest, amax);
    const Evaluation& own = evaluator(spec.common, scheme, find_method(spec.method, "method"), amax);
    Chosen out{.spec = spec,
               .name = served.name,
               .data = served.data_name(),
               .rows = served.rows(),
               .seen = std::min(served.train_rows(), static_cast<std::size_t>(spec.common.rows)),
               .tokens = served.tokens != nullptr,
               .classifies = served.reference.classifies,
               .bits = own.bits,
               .nearest = nearest.score,
               .score = own.score,
               .layers = own.layers};
    for (std::size_t l = 0; l < out.layers.size(); ++l)
        out.layers[l].w_nearest = nearest.layers[l].w, out.layers[l].out_nearest = nearest.layers[l].out;
    return out;
}

Stems stems_of(const StemsSpec& spec, Evaluator& evaluator, const table::Told<Stems>& told) {
    const CommonSpec& common = spec.common;
    const Served& served = evaluator.served(common.network);
    Stems out{.spec = spec, .stems = {}, .classifies = served.reference.classifies};
    const auto add = [&](const std::string& id) {
        const LowFormat& scheme = scheme_of(id);
        if (!is_offered(scheme, common.both)) return;
        const Mix mix = uniform_mix(served.layers.size(), scheme, common.both);
        out.stems.push_back({.scheme = &scheme, .bits = bits_per_weight(served.layers, mix)});
        out.stems.back().divergence.fill(kNone);
    };
    for (const char* id : kStems) add(id);
    if (!spec.also.empty()) add(spec.also);
    std::ranges::stable_sort(out.stems, {}, &Stem::bits);
    std::size_t done = 0;
    for (std::size_t m = 0; m < kStemMethods.size(); ++m) {
        std::vector<Evaluator::Asked> all;
        for (const Stem& stem : out.stems) all.push_back({stem.scheme, kStemMethods.at(m)});
        evaluator.prepare(common, all);
        for (Stem& stem : out.stems) {
            stem.divergence.at(m) = evaluator.divergence(common, *stem.scheme, kStemMethods.at(m));
            told.share(++done, out.stems.size() * kStemMethods.size());
            told.so_far(out);
        }
    }
    return out;
}

Gains gains_of(const GainsSpec& spec, Evaluator& evaluator) {
    Gains out{.spec = spec, .rows = {}};
    CommonSpec common = spec.common;
    for (const bool both : {false, true}) {
        common.both = both;
        const auto of = [&](Method method) {
            return evaluator.divergence(common, scheme_of(spec.scheme), method);
        };
        out.rows.push_back({of(Method::nearest), of(Method::awq), of(Method::gptq)});
    }
    return out;
}

AmaxSweep amax_sweep(const AmaxSpec& spec, Evaluator& evaluator, const table::Told<AmaxSweep>& told) {
    constexpr int kLeast = -6, kMost = 16;
    AmaxSweep out{.spec = spec,
                  .classifies = evaluator.served(spec.common.network).reference.classifies,
                  .factors = {},
                  .nvfp4 = {},
                  .e4m3 = {}};
    const Method method = find_method(spec.method, "method");
    const LowFormat &nvfp4 = scheme_of("nvfp4"), &e4m3 = scheme_of("e4m3");
    // 4or6 is NVFP4's alone.
    const Method of_e4m3 = method == Method::four_or_six ? Method::nearest : method;
    constexpr int kAtOnce = 4;
    for (int first = kLeast; first <= kMost; first += kAtOnce) {
        std::vector<Evaluator::Asked> asked;
        const int last = std::min(first + kAtOnce - 1, kMost);
        for (int e = first; e <= last; ++e)
            asked.push_back({&nvfp4, method, std::exp2(e)}), asked.push_back({&e4m3, of_e4m3, std::exp2(e)});
        evaluator.prepare(spec.common, asked);
        for (int e = first; e <= last; ++e) {
            const double factor = std::exp2(e);
            out.nvfp4.push_back(evaluator(spec.common, nvfp4, method, factor).score.divergence);
            out.e4m3.push_back(evaluator(spec.common, e4m3, of_e4m3, factor).score.divergence);
            out.factors.push_back(factor);
            told.share(out.factors.size(), kMost - kLeast + 1);
            told.so_far(out);
        }
    }
    return out;
}

}  // namespace fp8lab::serve
