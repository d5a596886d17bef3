// Four over six with stochastic rounding (arXiv 2512.02010) against its exact distribution.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "core/scaling/block_scales.h"
#include "core/scaling/quantizer.h"
#include "core/scaling/recipe.h"

using namespace fp8lab;

namespace {

constexpr std::size_t kBlocks = 96, kWidth = 16, kUsed = 5;  // elements of a block that are not 0

// v = |x| / unit between two codes of E2M1; above 6 it becomes 6 whatever is drawn.
struct Rounding2 {
    double lo = 0, hi = 0, up = 0;  // up: the probability of hi
};
Rounding2 around(double v) {
    constexpr std::array kCodes = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
    if (v >= kCodes.back()) return {kCodes.back(), kCodes.back(), 0};
    std::size_t i = 0;
    while (kCodes[i + 1] <= v) ++i;
    return {kCodes[i], kCodes[i + 1], (v - kCodes[i]) / (kCodes[i + 1] - kCodes[i])};
}

// Of a block: how often it keeps 4, and the first two moments of <x, q>.
struct Exact {
    double four = 0, product = 0, square = 0;
};

// An element is drawn once for both scales: with the same number it is rounded up in both, in the one where that
// is likelier, or in none. So an element has three outcomes and a block 3^5.
Exact exact_of(const std::array<double, kUsed>& x, double unit_six, double unit_four) {
    struct Outcome {
        double probability, six, four;
    };
    std::vector<std::vector<Outcome>> elements;
    for (const double value : x) {
        const Rounding2 six = around(std::fabs(value) / unit_six),
                        four = around(std::fabs(value) / unit_four);
        const double both = std::min(six.up, four.up), either = std::max(six.up, four.up);
        elements.push_back({{both, six.hi * unit_six, four.hi * unit_four},
                            {either - both, (six.up > four.up ? six.hi : six.lo) * unit_six,
                             (six.up > four.up ? four.lo : four.hi) * unit_four},
                            {1 - either, six.lo * unit_six, four.lo * unit_four}});
    }
    Exact out;
    std::size_t count = 1;
    for (std::size_t i = 0; i < kUsed; ++i) count *= 3;
    for (std::size_t index = 0; index < count; ++index) {
        double probability = 1, error_six = 0, error_four = 0, product_six = 0, product_four = 0;
        std::size_t rest = index;
        for (std::size_t i = 0; i < kUsed; ++i, rest /= 3) {
            const Outcome& o = elements[i][rest % 3];
            const double size = std::fabs(x[i]);
            probability *= o.probability;
            error_six += (size - o.six) * (size - o.six), error_four += (size - o.four) * (size - o.four);
            product_six += size * o.six, product_four += size * o.four;
        }
        const bool four = error_four < error_six;
        const double product = four ? product_four : product_six;
        out.four += probability * four;
        out.product += probability * product;
        out.square += probability * product * product;
    }
    return out;
}

}  // namespace

TEST_CASE(
    "4or6 with stochastic rounding: how often a block keeps 4, and gain and variance, are those of theory") {
    constexpr int kDraws = 400;
    CastPlan plan = cast_plan(parse_recipe("nvfp4:target=4or6"), TensorClass::x);
    plan.rounding = Rounding::stochastic;
    for (const unsigned seed : {1U, 2U, 3U}) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        std::vector<float> x(kBlocks * kWidth, 0.0F);
        float tensor_amax = 0;
        for (std::size_t b = 0; b < kBlocks; ++b)
            for (std::size_t i = 0; i < kUsed; ++i) {
                x[b * kWidth + 3 * i] = normal(random);
                tensor_amax = std::max(tensor_amax, std::fabs(x[b * kWidth + 3 * i]));
            }
        std::vector<Exact> theory;
        for (std::size_t b = 0; b < kBlocks; ++b) {
            std::array<double, kUsed> values{};
            float amax = 0;
            for (std::size_t i = 0; i < kUsed; ++i) {
                values[i] = static_cast<double>(x[b * kWidth + 3 * i]);
                amax = std::max(amax, std::fabs(x[b * kWidth + 3 * i]));
            }
            const auto unit = [&](int target) {
                return 1 /
                       static_cast<double>(
                           nvfp4_scales(tensor_amax, amax, Nvfp4Target::four_or_six, target).block_factor);
            };
            theory.push_back(exact_of(values, unit(6), unit(4)));
        }
        double kept = 0, kept_expected = 0, kept_variance = 0, product = 0, expected = 0, variance = 0,
               square = 0, square_variance = 0;
        for (const Exact& t : theory) {
            kept_expected += t.four, kept_variance += t.four * (1 - t.four);
            expected += t.product, variance += t.square - t.product * t.product;
        }
        std::vector<double> sums;
        std::vector<float> out(x.size());
        for (int draw = 0; draw < kDraws; ++draw) {
            const QuantizeRequest request{.rows = kBlocks,
                                          .cols = kWidth,
                                          .seed = seed,
                                          .stream = static_cast<std::uint64_t>(draw) + 1,
                                          .with_stats = false};
            for (const std::uint8_t target : nvfp4_blocks(plan, x, request).targets) kept += target == 4;
            quantize(plan, x, out, request);
            double sum = 0;
            for (std::size_t i = 0; i < x.size(); ++i)
                sum += static_cast<double>(x[i]) * static_cast<double>(out[i]);
            sums.push_back(sum);
            product += sum;
        }
        constexpr double n = kDraws;
        CHECK(std::fabs(kept / n - kept_expected) <= 3 * std::sqrt(kept_variance / n));
        CHECK(std::fabs(product / n - expected) <= 3 * std::sqrt(variance / n));
        // The sum over the blocks is nearly normal: the variance of a variance is 2 sigma^4 / n.
        for (const double sum : sums) square += (sum - expected) * (sum - expected) / n;
        square_variance = 2 * variance * variance / n;
        CHECK(std::fabs(square - variance) <= 3 * std::sqrt(square_variance));
        // Both are kept, and the choice follows the draw.
        CHECK(kept_expected > 0.1 * kBlocks);
        CHECK(kept_expected < 0.9 * kBlocks);
        CHECK(kept_variance > 1);
    }
}
