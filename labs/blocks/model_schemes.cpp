#include "labs/blocks/model_schemes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fp8lab::blocks {

namespace {

double worst_row(const Tensor& tensor, const std::vector<float>& values) {
    double worst = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r < tensor.rows; ++r) {
        double signal = 0, noise = 0;
        for (std::size_t i = r * tensor.cols; i < (r + 1) * tensor.cols; ++i) {
            const double x = static_cast<double>(tensor.values[i]), e = x - static_cast<double>(values[i]);
            signal += x * x;
            noise += e * e;
        }
        if (signal > 0) worst = std::min(worst, 10 * std::log10(signal / noise));
    }
    return worst;
}

}  // namespace

std::vector<Scheme> schemes(const FormatInfo& element, bool pow2) {
    const auto plan = [&](Granularity granularity) {
        CastPlan out;
        out.format = &element;
        out.granularity = granularity;
        out.scaled = true;
        return out;
    };
    const auto fp32_scales = [&](Granularity granularity, bool square = false) {
        CastPlan out = plan(granularity);
        out.pow2 = pow2;
        out.square_blocks = square;
        return out;
    };
    const auto mx = [&](MxRule rule) {
        CastPlan out = plan(Granularity::block32);
        out.mx_rule = rule;
        return out;
    };
    CastPlan nvfp4 = plan(Granularity::block16);
    nvfp4.format = &find_format("e2m1");
    return {{"tensor", "One per tensor", fp32_scales(Granularity::tensor)},
            {"row", "One per row", fp32_scales(Granularity::row)},
            {"1x128", "Blocks 1×128", fp32_scales(Granularity::block128)},
            {"128x128", "Blocks 128×128", fp32_scales(Granularity::block128, true)},
            {"mx32-up", "MX 32, up", mx(MxRule::up)},
            {"mx32-floor", "MX 32, floor", mx(MxRule::floor)},
            {"mx32-even", "MX 32, even", mx(MxRule::even)},
            {"nvfp4", "NVFP4, 16", nvfp4}};
}

Copy quantized_copy(const CastPlan& plan, const Tensor& tensor, Along along) {
    Copy out;
    out.grid = block_grid(plan, tensor.rows, tensor.cols, along);
    out.values.resize(tensor.values.size());
    QuantizeResult result =
        quantize(plan, tensor.values, out.values, {.rows = tensor.rows, .cols = tensor.cols, .along = along});
    out.stats = result.stats;
    out.multipliers = result.scales.empty() ? std::vector{result.scale} : std::move(result.scales);
    return out;
}

Score score(const CastPlan& plan, const Tensor& tensor, const Copy& by_cols, const Copy& by_rows) {
    Score out;
    out.scales = static_cast<double>(by_cols.grid.count());
    out.bits_per_element = bits_per_element(plan, tensor.rows, tensor.cols);
    out.sqnr_db = by_cols.stats.sqnr_db();
    out.underflow_pct = by_cols.stats.underflow_pct();
    out.overflow_pct = by_cols.stats.overflow_pct();
    out.worst_row_db = worst_row(tensor, by_cols.values);
    std::size_t differ = 0;
    for (std::size_t i = 0; i < by_cols.values.size(); ++i) {
        const double difference =
            std::fabs(static_cast<double>(by_cols.values[i]) - static_cast<double>(by_rows.values[i]));
        differ += difference > 0;
        out.max_difference = std::max(out.max_difference, difference);
    }
    out.differ_pct = 100.0 * static_cast<double>(differ) / static_cast<double>(by_cols.values.size());
    return out;
}

}  // namespace fp8lab::blocks
