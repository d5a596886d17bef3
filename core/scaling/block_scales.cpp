#include "core/scaling/block_scales.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/scaling/delayed.h"
#include "core/scaling/nvfp4.h"
#include "core/threads/parallel.h"

namespace fp8lab {

namespace {

constexpr int kSmallestMxExponent = -127, kLargestMxExponent = 127;  // E8M0's

// The larger magnitude. A NaN is ignored, as CUDA's fmaxf does, or wins for good.
float larger(float best, float size, bool keep_nan) {
    if (keep_nan && (std::isnan(best) || std::isnan(size))) return std::numeric_limits<float>::quiet_NaN();
    return size > best ? size : best;
}

bool has_nan(std::span<const float> values) {
    bool found = false;
    for (const float value : values) found |= std::isnan(value);
    return found;
}

// Takes one row of the matrix into the amaxes of the blocks that it crosses.
void add_row(std::span<const float> row, std::size_t width, bool keep_nan, std::span<float> amaxes) {
    if (width == 1) {
        for (std::size_t c = 0; c < row.size(); ++c)
            amaxes[c] = larger(amaxes[c], std::fabs(row[c]), keep_nan);
        return;
    }
    for (float& best : amaxes) {
        const auto block = row.first(std::min(width, row.size()));
        best = larger(best, amax(block), keep_nan);
        if (keep_nan && has_nan(block)) best = std::numeric_limits<float>::quiet_NaN();
        row = row.subspan(block.size());
    }
}

}  // namespace

std::vector<float> block_amaxes(std::span<const float> matrix, std::size_t cols, const BlockGrid& grid,
                                bool keep_nan) {
    constexpr std::size_t kGrain = 16384;  // elements that are worth a thread
    std::vector<float> amaxes(grid.count());
    if (amaxes.empty()) return amaxes;
    const std::size_t rows = matrix.size() / cols;
    parallel_for(grid.down, 1 + kGrain / (grid.height * cols), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin * grid.height; r < std::min(rows, end * grid.height); ++r)
            add_row(matrix.subspan(r * cols, cols), grid.width, keep_nan,
                    std::span(amaxes).subspan(r / grid.height * grid.across, grid.across));
    });
    return amaxes;
}

namespace {

int exponent_of_max(const FormatInfo& format) { return std::ilogb(max_finite(format)); }

// FLOOR and EVEN of numerics.md 1.4: the exponent of the amax, in EVEN after its significand was rounded to
// the element's mantissa bits, less the element's own largest exponent.
float mx_scale_by_exponent(float amax, const FormatInfo& element, MxRule rule) {
    if (std::isnan(amax)) return amax;
    if (std::isinf(amax)) return std::ldexp(1.0F, kLargestMxExponent);
    if (amax == 0) return std::ldexp(1.0F, kSmallestMxExponent);
    int exponent = std::ilogb(amax);
    if (rule == MxRule::even) {
        // The significand reaches 2 from half a unit below on: a tie there goes up, all mantissa bits being
        // ones.
        const int mantissa = element.kind == Kind::integer ? exponent_of_max(element) : element.mantissa_bits;
        if (std::scalbn(amax, -exponent) >= 2 - std::ldexp(1.0F, -mantissa - 1)) ++exponent;
    }
    return std::ldexp(
        1.0F, std::clamp(exponent - exponent_of_max(element), kSmallestMxExponent, kLargestMxExponent));
}

// The scales of MX blocks, as the factors that multiply after the cast.
std::vector<float> mx_scales(std::vector<float> amaxes, const FormatInfo& element, MxRule rule) {
    if (rule == MxRule::up) {  // cuBLAS, "1D block quantization": amax / max, its exponent rounded up
        const auto max = static_cast<float>(max_finite(element));
        for (float& value : amaxes) value /= max;
        quantize(find_format("e8m0"), amaxes, amaxes, {.rounding = Rounding::up});
    } else {
        for (float& value : amaxes) value = mx_scale_by_exponent(value, element, rule);
    }
    return amaxes;
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
            length = 16, breadth = plan.square_blocks ? 16 : 1;
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
    return encode(find_format("e8m0"), mx_scales({block_amax}, element, rule)[0], Rounding::toward_zero);
}

namespace {

void mx_block_scales(const CastPlan& plan, const std::vector<float>& amaxes, BlockScales& scales) {
    scales.scale_inv = mx_scales(amaxes, *plan.format, plan.mx_rule);
    // Exact: powers of two from 2^-127 to 2^127, or NaN.
    for (const float inv : scales.scale_inv) scales.scale.push_back(1 / inv);
}

void fp32_block_scales(const CastPlan& plan, const std::vector<float>& amaxes, BlockScales& scales) {
    const auto max = static_cast<float>(max_finite(*plan.format));
    for (const float amax : amaxes) {
        const float scale = scale_from_amax(amax, max, plan.margin, 1, plan.pow2);
        scales.scale.push_back(scale);
        scales.scale_inv.push_back(1 / scale);
    }
}

}  // namespace

BlockScales block_scales(const CastPlan& plan, std::span<const float> matrix, std::size_t cols,
                         const BlockGrid& grid, const QuantizeRequest& request) {
    const bool is_mx = plan.granularity == Granularity::block32;
    const std::vector<float> amaxes = block_amaxes(matrix, cols, grid, is_mx);
    BlockScales scales;
    if (plan.granularity == Granularity::block16)
        nvfp4_block_scales(plan, amaxes, matrix, cols, grid, request, scales);
    else if (is_mx)
        mx_block_scales(plan, amaxes, scales);
    else
        fp32_block_scales(plan, amaxes, scales);
    return scales;
}

}  // namespace fp8lab
