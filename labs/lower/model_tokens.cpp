#include "labs/lower/model_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/files/files.h"
#include "core/nn/train_spec.h"
#include "core/trainer/checkpoint.h"

namespace fp8lab::lower {
namespace {

TokenMix make_mix(const TokensSpec& spec) {
    TrainOptions options;
    options.model = "transformer";
    options.recipes = "bf16";
    options.seed = static_cast<std::uint64_t>(std::stoi(spec.model));
    const TrainSpec trained = make_train_spec(options);
    const auto file = asset(fmt::format("models/transformer-s{}.safetensors", spec.model));
    const ArmCheckpoint checkpoint = load_checkpoints(file, trained).arms.front();
    return {std::make_shared<TokenModel>(trained, checkpoint, kTokenBatches),
            find_low_format(spec.high, "format"), find_low_format(spec.low, "format")};
}

// The divergence of each draw at a share, 0 to 1.
std::vector<double> random_draws(TokenMix& mix, double share, int seed) {
    std::vector<double> out;
    for (int draw = 0; draw < TokenMix::kRandomDraws; ++draw)
        out.push_back(mix.divergence(Importance::random, share, static_cast<std::uint64_t>(seed), draw));
    return out;
}
double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v;
    return sum / static_cast<double>(values.size());
}

void add_lines(TokenMix& mix, TokensSweep& out) {
    const double low = mix.all_low(), high = mix.all_high();
    for (const ImportanceInfo& info : importances()) out.lines.push_back({info.id, {}});
    for (const double share_pct : kShares) {
        const bool end = share_pct == kShares.front() || share_pct == kShares.back();
        const double at_end = share_pct == kShares.front() ? low : high;
        for (ImportanceLine& line : out.lines) {
            const bool random = line.id == Importance::random;
            std::vector<double> values = {at_end};
            if (!end)
                values = random ? random_draws(mix, share_pct / 100, out.spec.seed)
                                : std::vector{mix.divergence(line.id, share_pct / 100, 0)};
            line.values.push_back(mean(values));
            if (!random) continue;
            out.least_random.push_back(*std::ranges::min_element(values));
            out.most_random.push_back(*std::ranges::max_element(values));
        }
    }
}

void add_subsets(TokenMix& mix, TokensSweep& out) {
    out.subsets = mix.layer_subsets();
    for (std::uint32_t high = 0; high < out.subsets.size(); ++high)
        out.subset_shares.push_back(100 * mix.share_of_layers(high));
}

}  // namespace

std::uint32_t WideSpec::mask() const {
    std::uint32_t out = 0;
    for (std::size_t l = 0; l < high.size(); ++l)
        if (high.at(l)) out |= std::uint32_t{1} << l;
    return out;
}

const ImportanceLine& TokensSweep::line(Importance id) const {
    return *std::ranges::find(lines, id, &ImportanceLine::id);
}

double Tokens::best_layers() const {
    double best = std::numeric_limits<double>::infinity();
    constexpr double kRounding = 1e-9;  // of sums of shares
    for (std::size_t i = 0; i < sweep->subsets.size(); ++i)
        if (sweep->subset_shares[i] <= share_pct + kRounding) best = std::min(best, sweep->subsets[i]);
    return std::isfinite(best) ? best : std::numeric_limits<double>::quiet_NaN();
}

Tokens TokensMaker::operator()(const TokensRequest& request) {
    const auto& [spec, wide] = request;
    TokensSpec known = sweep_ ? sweep_->spec : TokensSpec{.model = {}};
    const bool has_subsets = known.subsets;
    known.subsets = spec.subsets;
    if (known != spec) {
        mix_ = std::make_shared<TokenMix>(make_mix(spec));
        auto sweep = std::make_shared<TokensSweep>();
        sweep->spec = spec, sweep->tokens = mix_->tokens();
        add_lines(*mix_, *sweep);
        if (spec.subsets) add_subsets(*mix_, *sweep);
        sweep_ = std::move(sweep);
    } else if (has_subsets != spec.subsets) {
        auto sweep = std::make_shared<TokensSweep>(*sweep_);
        sweep->spec = spec;
        sweep->subsets.clear(), sweep->subset_shares.clear();
        if (spec.subsets) add_subsets(*mix_, *sweep);
        sweep_ = std::move(sweep);
    }
    Tokens out{.request = request, .sweep = sweep_};
    const std::uint32_t high = wide.mask();
    const double share = wide.layers ? mix_->share_of_layers(high) : wide.share_pct / 100;
    const std::vector<double> draws = random_draws(*mix_, share, spec.seed);
    const Importance importance = find_importance(wide.important, "important");
    out.share_pct = 100 * share;
    out.random = mean(draws);
    out.divergence = wide.layers                        ? mix_->divergence_of_layers(high)
                     : importance == Importance::random ? out.random
                                                        : mix_->divergence(importance, share, 0);
    out.activation_bits = wide.layers ? mix_->activation_bits_of_layers(high) : mix_->activation_bits(share);
    out.weight_bits = wide.layers ? mix_->weight_bits_of_layers(high) : mix_->weight_bits();
    return out;
}

}  // namespace fp8lab::lower
