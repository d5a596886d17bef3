#include "labs/experts/model_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/files/files.h"
#include "labs/experts/model_casts.h"

namespace fp8lab::experts {
namespace {

// The rows of the figure, from the spread of the router alone to both.
const std::array<Pair, 7>& usual_rows() {
    static const std::array<Pair, 7> kUsual = {{{"bf16", "bf16"},
                                                {"bf16", "current"},
                                                {"bf16", "nvfp4"},
                                                {"mxfp8", "fp32"},
                                                {"mxfp8", "mxfp8"},
                                                {"nvfp4", "fp32"},
                                                {"nvfp4", "nvfp4"}}};
    return kUsual;
}

Recipe recipe_of(const Pair& pair) { return parse_recipe(routed_recipe(pair.layers, pair.router)); }

std::size_t bin_of(double margin) {
    if (!(margin > 0)) return 0;
    return static_cast<std::size_t>(std::clamp(std::ilogb(margin) - kFirstBin, 0, kBins - 1));
}

// The smallest power of two that at least `share` of the values are below.
double below(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const auto wanted = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1;
    return std::exp2(std::floor(std::log2(std::max(values[wanted], std::exp2(kFirstBin)))) + 1);
}

Margins margins_of(const RoutingStudy& study, const RoutingChange& change) {
    Margins out;
    std::vector<double> moved;
    for (std::size_t b = 0; b < study.shape().blocks; ++b) {
        const std::vector<float> margins = study.margins(b);
        for (std::size_t t = 0; t < margins.size(); ++t) {
            const auto margin = static_cast<double>(margins[t]);
            ++out.tokens[bin_of(margin)];
            if (!change.changed_blocks[b][t]) continue;
            ++out.moved[bin_of(margin)];
            moved.push_back(margin);
        }
    }
    constexpr double kMost = 0.95;
    if (!moved.empty()) out.largest_moved = *std::ranges::max_element(moved);
    out.all_below = below(moved, 1), out.most_below = below(moved, kMost);
    return out;
}

}  // namespace

double PairRow::mean() const {
    return std::accumulate(changed_pct.begin(), changed_pct.end(), 0.0) /
           static_cast<double>(changed_pct.size());
}
double PairRow::least() const { return *std::ranges::min_element(changed_pct); }
double PairRow::most() const { return *std::ranges::max_element(changed_pct); }

RoutingStudy& Studies::of(int seed) {
    std::unique_ptr<RoutingStudy>& study = all_[seed];
    if (!study) {
        TrainOptions options;
        options.model = "moe", options.recipes = "bf16", options.seed = static_cast<std::uint64_t>(seed);
        const TrainSpec spec = make_train_spec(options);
        const auto file = asset(fmt::format("models/moe-{}.safetensors", seed));
        study = std::make_unique<RoutingStudy>(spec, load_weights("seed", file, spec));
    }
    return *study;
}

Routed RoutingMaker::operator()(const RoutedSpec& spec) {
    RoutingStudy& study = studies_.of(spec.seed);
    Routed out{.spec = spec, .tokens = study.tokens()};
    out.change = study.change(recipe_of({spec.layers, spec.router}));
    out.margins = margins_of(study, out.change);
    constexpr double kClose = 0.01;
    out.margin_below_1_100_pct = study.margin_below_pct(kClose);
    return out;
}

Pairs PairsMaker::operator()(const Pair& chosen, const table::Told<Pairs>& told) {
    std::vector<Pair> wanted(usual_rows().begin(), usual_rows().end());
    const bool reference = chosen == Pair{"bf16", "fp32"};  // nothing changes there
    if (!reference && std::ranges::find(wanted, chosen) == wanted.end()) wanted.push_back(chosen);
    Pairs out{.chosen = chosen, .rows = {}};
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        auto known = std::ranges::find(known_, wanted[i], &PairRow::pair);
        if (known == known_.end()) known = known_.insert(known, {.pair = wanted[i]});
        while (known->changed_pct.size() < kSeeds) {
            const std::size_t seed = known->changed_pct.size();
            told.share(i * kSeeds + seed, wanted.size() * kSeeds);
            known->changed_pct.push_back(
                studies_.of(static_cast<int>(seed) + 1).change(recipe_of(wanted[i])).changed_pct());
        }
        out.rows.push_back(*known);
        told.so_far(out);
    }
    return out;
}

std::string pair_words(const Pair& pair) {
    return fmt::format("{} layers, router in {}", label_of(pair.layers), label_of(pair.router));
}

// Of this program, 2026-11-28: means of the shipped models, and their least and most.
Pairs usual_pairs() {
    constexpr std::array<std::array<double, 3>, 7> kRecorded = {{{0.256, 0.18, 0.32},
                                                                 {3.75, 3.56, 3.91},
                                                                 {12.2, 11.3, 13.7},
                                                                 {4.01, 3.58, 4.55},
                                                                 {5.68, 5.08, 6.30},
                                                                 {12.9, 11.9, 14.0},
                                                                 {17.6, 16.6, 18.8}}};
    Pairs out;
    for (std::size_t i = 0; i < kRecorded.size(); ++i) {
        const auto [mean, least, most] = kRecorded[i];
        out.rows.push_back({usual_rows()[i], {least, mean, most}});
    }
    return out;
}

}  // namespace fp8lab::experts
