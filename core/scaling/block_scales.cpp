#include "core/scaling/block_scales.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/parallel.h"
#include "core/scaling/delayed.h"

namespace fp8lab {

namespace {

constexpr std::uint32_t kMagnitude = 0x7FFF'FFFF, kInfinity = 0x7F80'0000;  // of float32 bits

// max |x| as float32 bits, whose order is that of the magnitudes; a NaN is above everything, or ignored.
std::uint32_t larger(std::uint32_t best, float value, bool keep_nan) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & kMagnitude;
    return std::max(best, bits > kInfinity && !keep_nan ? 0 : bits);
}

std::vector<float> block_amaxes(std::span<const float> matrix, std::size_t cols, const BlockGrid& grid,
                                bool keep_nan) {
    const std::size_t rows = cols ? matrix.size() / cols : 0;
    std::vector<float> amaxes(grid.count());
    parallel_for(
        grid.down, 1 + 16384 / std::max<std::size_t>(grid.height * cols, 1),
        [&](std::size_t begin, std::size_t end) {
            std::vector<std::uint32_t> best(grid.across);
            for (std::size_t band = begin; band < end; ++band) {
                std::fill(best.begin(), best.end(), 0U);
                for (std::size_t r = band * grid.height; r < std::min(rows, (band + 1) * grid.height); ++r) {
                    const float* const row = matrix.data() + r * cols;
                    if (grid.width == 1) {
                        for (std::size_t c = 0; c < cols; ++c) best[c] = larger(best[c], row[c], keep_nan);
                        continue;
                    }
                    for (std::size_t b = 0; b < grid.across; ++b) {
                        std::uint32_t block = best[b];
                        for (std::size_t c = b * grid.width; c < std::min(cols, (b + 1) * grid.width); ++c)
                            block = larger(block, row[c], keep_nan);
                        best[b] = block;
                    }
                }
                for (std::size_t b = 0; b < grid.across; ++b)
                    amaxes[band * grid.across + b] = std::bit_cast<float>(best[b]);
            }
        });
    return amaxes;
}

int exponent_of_max(const FormatInfo& format) { return std::ilogb(max_finite(format)); }

// numerics 1.4, EVEN: the significand rounded to the element's mantissa bits first. Only whether it rounds up
// to the next power of two matters, which a tie always does (all mantissa bits are ones: odd).
std::uint32_t round_significand(std::uint32_t bits, const FormatInfo& element) {
    const int mantissa = element.kind == Kind::integer ? exponent_of_max(element) : element.mantissa_bits;
    return bits + (1U << (22 - mantissa));
}

}  // namespace

BlockGrid block_grid(const CastPlan& plan, std::size_t rows, std::size_t cols, Along along) {
    const bool by_cols = along == Along::cols;
    const std::size_t contracted = by_cols ? cols : rows;
    std::size_t length = contracted, breadth = 1;
    switch (plan.granularity) {
        case Granularity::tensor:
            breadth = by_cols ? rows : cols;
            break;
        case Granularity::row:
            break;
        case Granularity::block128:
            length = 128, breadth = plan.square_blocks ? 128 : 1;
            break;
        case Granularity::block32:
            length = 32;
            break;
        case Granularity::block16:
            length = 16;
            break;
    }
    BlockGrid grid;
    grid.height = std::max<std::size_t>(by_cols ? breadth : length, 1);
    grid.width = std::max<std::size_t>(by_cols ? length : breadth, 1);
    grid.down = (rows + grid.height - 1) / grid.height;
    grid.across = (cols + grid.width - 1) / grid.width;
    return grid;
}

std::uint32_t mx_scale_code(float block_amax, const FormatInfo& element, MxRule rule) {
    static const FormatInfo& e8m0 = find_format("e8m0");
    if (rule == MxRule::up)  // cuBLAS, "1D block quantization": the exponent of amax / max, rounded up
        return encode(e8m0, block_amax / static_cast<float>(max_finite(element)), Rounding::up,
                      Overflow::saturate);
    if (!std::isfinite(block_amax) || block_amax == 0)
        return encode(e8m0, block_amax, Rounding::toward_zero, Overflow::saturate);
    float amax = block_amax;
    int exponent = 0;
    if (rule == MxRule::even) {
        // A subnormal amax is brought into the normal range, where its significand has all its bits.
        amax = std::frexp(amax, &exponent);
        amax = std::bit_cast<float>(round_significand(std::bit_cast<std::uint32_t>(amax), element));
    }
    const int code = std::ilogb(amax) + exponent - exponent_of_max(element) + 127;
    return static_cast<std::uint32_t>(std::clamp(code, 0, 254));
}

Nvfp4Scales nvfp4_scales(float tensor_amax, float block_amax) {
    static const FormatInfo& e4m3 = find_format("e4m3");
    constexpr float kMax = std::numeric_limits<float>::max();
    constexpr float kElementMax = 6, kScaleMax = 448;
    Nvfp4Scales scales{};
    scales.encode_scale = std::min(kScaleMax * kElementMax / tensor_amax, kMax);  // Inf for an amax of 0
    if (tensor_amax == 0 || scales.encode_scale == 0) scales.encode_scale = 1;
    scales.block_code = encode(e4m3, block_amax * (scales.encode_scale * (1 / kElementMax)));
    const float block_scale = decode(e4m3, scales.block_code);
    if (block_scale != 0) scales.block_factor = std::min(1 / (block_scale * (1 / scales.encode_scale)), kMax);
    return scales;
}

BlockScales block_scales(const CastPlan& plan, std::span<const float> matrix, std::size_t cols,
                         const BlockGrid& grid) {
    const bool is_mx = plan.granularity == Granularity::block32;
    const std::vector<float> amaxes = block_amaxes(matrix, cols, grid, is_mx);
    BlockScales scales;
    scales.multipliers.resize(amaxes.size());
    scales.inverses.resize(amaxes.size());
    if (plan.granularity == Granularity::block16) {
        const float amax = amaxes.empty() ? 0 : *std::max_element(amaxes.begin(), amaxes.end());
        for (std::size_t i = 0; i < amaxes.size(); ++i) {
            const Nvfp4Scales s = nvfp4_scales(amax, amaxes[i]);
            scales.tensor_scale = s.encode_scale;
            scales.multipliers[i] = s.block_factor;
            scales.inverses[i] = decode(find_format("e4m3"), s.block_code) * (amax / (448.0F * 6.0F));
        }
    } else if (is_mx) {
        for (std::size_t i = 0; i < amaxes.size(); ++i) {
            scales.inverses[i] =
                decode(find_format("e8m0"), mx_scale_code(amaxes[i], *plan.format, plan.mx_rule));
            scales.multipliers[i] =
                1 / scales.inverses[i];  // exact: a power of two from 2^-127 to 2^127, or NaN
        }
    } else {
        const auto max = static_cast<float>(max_finite(*plan.format));
        for (std::size_t i = 0; i < amaxes.size(); ++i) {
            scales.multipliers[i] = scale_from_amax(amaxes[i], max, 0, 1, plan.pow2);
            scales.inverses[i] = 1 / scales.multipliers[i];
        }
    }
    return scales;
}

}  // namespace fp8lab
