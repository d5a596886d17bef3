#include "core/inference/mixes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "core/base/error.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

// The tree of all mixes below a node: the input of a layer, and what was chosen before it.
class Tree {
  public:
    Tree(const TrainedMlp& network, const Reference& reference, AllMixes& out, const MixesTold& told,
         const StaticScales& scales)
        : network_(network), reference_(reference), out_(out), told_(told), scales_(scales) {
        for (const LinearLayer& layer : network.layers) {
            const auto share =
                static_cast<double>(layer.w.values.size()) / static_cast<double>(network.weights());
            for (const LowFormat* format : out.formats) {
                weights_.push_back(lowered_weights(layer.w, *format));
                bits_.push_back(share * bits_per_element(format->weights, layer.w.rows, layer.w.cols));
            }
        }
    }

    // The branches of the first layer, or of the first two, side by side.
    void grow(const Matrix<float>& x) {
        const std::size_t f = out_.formats.size();
        const bool two = network_.layers.size() > 1;
        parallel_for(two ? f * f : f, 1, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                const std::size_t first = two ? i / f : i;
                if (!two) {
                    branch(x, 0, first, 0, 0, std::nullopt);
                    continue;
                }
                branch(x, 0, first, 0, 0, i % f);
            }
        });
    }

  private:
    // Layer `l` in format `f`, with input `in`; `only`: the format of the next layer, none: all of them.
    void branch(const Matrix<float>& in, std::size_t l, std::size_t f, std::size_t index, double bits,
                std::optional<std::size_t> only) {
        const std::size_t formats = out_.formats.size(), at = l * formats + f;
        const LowFormat& input = out_.activations ? *out_.formats[f] : find_low_format("bf16", "format");
        Matrix<float> y;
        multiply_layer(lowered_input(in, input, scales_.amax(l)), weights_[at], network_.layers[l].b, y);
        index = index * formats + f;
        bits += bits_[at];
        if (l + 1 == network_.layers.size()) {
            out_.points[index] = {bits, divergence_of(reference_, y)};
            count();
            return;
        }
        activate_in_place(network_.activation, y);
        for (std::size_t next = only.value_or(0); next <= only.value_or(formats - 1); ++next)
            branch(y, l + 1, next, index, bits, std::nullopt);
    }

    void count() {
        const std::lock_guard lock{mutex_};
        ++done_;
        if (told_) told_(done_, out_.points.size());
    }

    const TrainedMlp& network_;
    const Reference& reference_;
    AllMixes& out_;
    const MixesTold& told_;
    const StaticScales& scales_;
    std::vector<Matrix<float>> weights_;  // layer by layer, format by format
    std::vector<double> bits_;            // of a mix: that layer's part
    std::mutex mutex_;
    std::size_t done_ = 0;  // mixes
};

}  // namespace

Mix AllMixes::mix(std::size_t index) const {
    Mix out;
    for (std::size_t l = 0; l < layers; ++l, index /= formats.size())
        out.weights.insert(out.weights.begin(), formats[index % formats.size()]);
    const LowFormat& kept = find_low_format("bf16", "format");
    out.activations = activations ? out.weights : std::vector(layers, &kept);
    return out;
}

std::optional<std::size_t> AllMixes::find(const Mix& mix) const {
    std::size_t index = 0;
    for (std::size_t l = 0; l < layers; ++l) {
        const auto at = std::ranges::find(formats, mix.weights[l]);
        if (at == formats.end()) return std::nullopt;
        index = index * formats.size() + static_cast<std::size_t>(at - formats.begin());
    }
    if (points.empty() || this->mix(index) != mix) return std::nullopt;
    return index;
}

AllMixes all_mixes(const TrainedMlp& network, const Matrix<float>& x, const Reference& reference,
                   std::span<const LowFormat* const> formats, bool activations, const MixesTold& told,
                   const StaticScales& scales) {
    if (network.layers.size() > kMostLayersOfAllMixes)
        throw usage_error("mixes", "every mix is tried for up to " + std::to_string(kMostLayersOfAllMixes) +
                                       " layers; this network has " + std::to_string(network.layers.size()));
    if (!scales.amaxes.empty() && scales.amaxes.size() != network.layers.size())
        throw usage_error("scales", "must have one amax per layer");
    AllMixes out{{formats.begin(), formats.end()}, network.layers.size(), activations, {}};
    std::size_t count = 1;
    for (std::size_t l = 0; l < out.layers; ++l) count *= formats.size();
    out.points.resize(count);
    Tree(network, reference, out, told, scales).grow(x);
    return out;
}

std::vector<std::size_t> frontier_of(std::span<const MixPoint> points) {
    std::vector<std::size_t> order(points.size()), out;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
        return std::pair(points[a].bits, points[a].divergence) <
               std::pair(points[b].bits, points[b].divergence);
    });
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t i : order)
        if (points[i].divergence < best) best = points[i].divergence, out.push_back(i);
    return out;
}

std::optional<std::size_t> best_within(std::span<const MixPoint> points, double bits) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < points.size(); ++i)
        if (points[i].bits <= bits && (!best || points[i].divergence < points[*best].divergence)) best = i;
    return best;
}

Neighbours neighbours_of(std::span<const MixPoint> points, double bits, double divergence, double reach) {
    Neighbours out;
    std::vector<std::size_t> near;
    constexpr double kRounding = 1e-9;  // bits of sums of shares
    for (std::size_t i = 0; i < points.size(); ++i)
        if (std::fabs(points[i].bits - bits) <= reach + kRounding) near.push_back(i);
    if (near.empty()) return out;
    std::ranges::sort(near, {}, [&](std::size_t i) { return points[i].divergence; });
    const auto value = [&](std::size_t i) { return points[near[i]].divergence; };
    const std::size_t n = near.size();
    out = {n, near.front(), near.back(), (value((n - 1) / 2) + value(n / 2)) / 2, 1};
    for (const std::size_t i : near) out.rank += points[i].divergence < divergence;
    return out;
}

std::vector<GreedyStep> greedy_path(std::span<const LayerSize> layers,
                                    const std::function<double(const Mix&)>& divergence,
                                    std::span<const LowFormat* const> formats, bool activations,
                                    const MixesTold& told) {
    const std::size_t n = layers.size(), steps = n * (formats.size() - 1);
    const auto mix_of = [&](const std::vector<std::size_t>& at) {
        Mix mix = uniform_mix(n, *formats.front(), activations);
        for (std::size_t l = 0; l < n; ++l) {
            mix.weights[l] = formats[at[l]];
            if (activations) mix.activations[l] = formats[at[l]];
        }
        return mix;
    };
    const auto step_of = [&](const Mix& mix) {
        return GreedyStep{mix, {bits_per_weight(layers, mix), divergence(mix)}};
    };
    std::vector<std::size_t> at(n, 0);
    std::vector<GreedyStep> path = {step_of(mix_of(at))};
    while (std::ranges::any_of(at, [&](std::size_t f) { return f + 1 < formats.size(); })) {
        std::optional<GreedyStep> best;
        std::size_t lowered = 0;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t l = 0; l < n; ++l) {
            if (at[l] + 1 == formats.size()) continue;
            ++at[l];
            GreedyStep step = step_of(mix_of(at));
            --at[l];
            const MixPoint& now = path.back().point;
            const double price = (step.point.divergence - now.divergence) / (now.bits - step.point.bits);
            if (best && price >= least) continue;
            least = price, lowered = l, best = std::move(step);
        }
        ++at[lowered];
        path.push_back(std::move(*best));
        if (told) told(path.size() - 1, steps);
    }
    return path;
}

std::vector<const LowFormat*> mix_formats() { return low_formats(RecipeList::mixes); }

std::vector<const LowFormat*> greedy_formats() { return low_formats(RecipeList::greedy); }

std::vector<double> sensitivities(const TrainedMlp& network, const Matrix<float>& x,
                                  const Reference& reference, const LowFormat& format, bool activations,
                                  const StaticScales& scales) {
    const std::size_t n = network.layers.size();
    std::vector<double> out;
    for (std::size_t l = 0; l < n; ++l)
        out.push_back(divergence_of(
            reference, run_lowered(network, x, single_mix(n, l, format, activations), scales).y));
    return out;
}

}  // namespace fp8lab
