#include "labs/blocks/model_schemes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/threads/parallel.h"

namespace fp8lab::blocks {

namespace {

constexpr std::size_t kGrain = 16384;  // elements that are worth a thread

// The sums of one row: signal and noise of the copy along columns, and where the two copies differ.
struct RowSums {
    double signal = 0, noise = 0, max_difference = 0;
    std::size_t differ = 0;
};
RowSums sums_of(std::span<const float> x, std::span<const float> q, std::span<const float> other) {
    RowSums out;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double value = static_cast<double>(x[i]), e = value - static_cast<double>(q[i]);
        out.signal += value * value;
        out.noise += e * e;
        const double difference = std::fabs(static_cast<double>(q[i]) - static_cast<double>(other[i]));
        out.differ += difference > 0;
        out.max_difference = std::max(out.max_difference, difference);
    }
    return out;
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
    out.scales = result.scales.empty() ? std::vector{result.scale} : std::move(result.scales);
    return out;
}

Score score(const CastPlan& plan, const Tensor& tensor, const Copy& by_cols, const Copy& by_rows) {
    Score out;
    out.scales = static_cast<double>(by_cols.grid.count());
    out.bits_per_element = bits_per_element(plan, tensor.rows, tensor.cols);
    out.sqnr_db = by_cols.stats.sqnr_db();
    out.underflow_pct = by_cols.stats.underflow_pct();
    out.overflow_pct = by_cols.stats.overflow_pct();
    out.lost_l1_pct = by_cols.stats.lost_l1_pct();
    out.lost_energy_pct = by_cols.stats.lost_energy_pct();
    std::vector<RowSums> rows(tensor.rows);
    parallel_for(tensor.rows, 1 + kGrain / std::max<std::size_t>(tensor.cols, 1),
                 [&](std::size_t begin, std::size_t end) {
                     const auto row = [&](const std::vector<float>& values, std::size_t r) {
                         return std::span(values).subspan(r * tensor.cols, tensor.cols);
                     };
                     for (std::size_t r = begin; r < end; ++r)
                         rows[r] =
                             sums_of(row(tensor.values, r), row(by_cols.values, r), row(by_rows.values, r));
                 });
    std::size_t differ = 0;
    out.worst_row_db = std::numeric_limits<double>::infinity();
    for (const RowSums& row : rows) {
        if (row.signal > 0)
            out.worst_row_db = std::min(out.worst_row_db, 10 * std::log10(row.signal / row.noise));
        differ += row.differ;
        out.max_difference = std::max(out.max_difference, row.max_difference);
    }
    out.differ_pct = 100.0 * static_cast<double>(differ) / static_cast<double>(by_cols.values.size());
    return out;
}

}  // namespace fp8lab::blocks
