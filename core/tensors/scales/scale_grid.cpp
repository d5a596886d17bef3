#include "core/tensors/scales/scale_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/names.h"

namespace fp8lab {
namespace {

constexpr std::array<std::size_t, 3> kBlocks = {16, 32, 128};

std::size_t blocks_of(std::size_t extent, std::size_t block) {
    return extent / block + (extent % block != 0);
}

// The extents with which `count` scales cover a dimension; two that mean the same are one.
std::vector<std::size_t> extents_of(std::size_t extent, std::size_t count,
                                    std::span<const std::size_t> more) {
    if (count == 1) return {std::max<std::size_t>(extent, 1)};
    std::vector<std::size_t> out;
    if (count == extent) out.push_back(1);
    const auto add = [&](std::size_t block) {
        if (block > 1 && count > 1 && blocks_of(extent, block) == count &&
            std::ranges::find(out, block) == out.end())
            out.push_back(block);
    };
    for (const std::size_t block : kBlocks) add(block);
    for (const std::size_t block : more) add(block);
    return out;
}

// As many dimensions as the codes have, or none where they do not fit. Scales of fewer dimensions are not in blocks: three
// scales of 384 rows are those of q, k and v, which need not have 128 rows each.
std::optional<std::vector<std::size_t>> same_rank(std::span<const std::size_t> codes,
                                                  std::span<const std::size_t> scales) {
    std::vector<std::size_t> out(scales.begin(), scales.end());
    if (codes.size() == 2 && out.size() == 4 && out[1] == 1 && out[3] == 1) out = {out[0], out[2]};
    if (out.size() > codes.size()) return std::nullopt;
    for (std::size_t d = 0; out.size() < codes.size() && d < out.size(); ++d)
        if (out[d] != 1 && out[d] != codes[d]) return std::nullopt;
    out.resize(codes.size(), 1);
    return out;
}

}  // namespace

std::vector<ScaleGrid> scale_grids(std::span<const std::size_t> codes, std::span<const std::size_t> scales,
                                   std::span<const std::size_t> blocks) {
    ScaleGrid one{.shape = {codes.begin(), codes.end()}};
    if (std::ranges::all_of(scales, [](std::size_t extent) { return extent == 1; })) {
        for (const std::size_t extent : codes) one.extents.push_back(std::max<std::size_t>(extent, 1));
        one.counts.assign(codes.size(), 1);
        return {one};
    }
    const auto counts = same_rank(codes, scales);
    if (!counts) return {};
    one.counts = *counts;
    std::vector<ScaleGrid> out = {one};
    for (std::size_t d = 0; d < codes.size(); ++d) {
        std::vector<ScaleGrid> longer;
        for (const ScaleGrid& grid : out)
            for (const std::size_t extent : extents_of(codes[d], (*counts)[d], blocks)) {
                longer.push_back(grid);
                longer.back().extents.push_back(extent);
            }
        out = std::move(longer);
    }
    return out;
}

ScaleGrid fused_grid(std::span<const std::size_t> codes, std::span<const std::size_t> rows) {
    ScaleGrid out{.shape = {codes.begin(), codes.end()}};
    for (const std::size_t extent : codes) out.extents.push_back(std::max<std::size_t>(extent, 1));
    out.counts.assign(codes.size(), 1);
    out.counts[0] = rows.size();
    for (const std::size_t part : rows) out.ends.push_back((out.ends.empty() ? 0 : out.ends.back()) + part);
    return out;
}

std::size_t ScaleGrid::row_of(std::size_t row) const {
    std::size_t out = 0, stride = 1;
    for (std::size_t d = shape.size() < 2 ? 0 : shape.size() - 1; d-- > 0;) {
        const std::size_t at = row % shape[d];
        row /= shape[d];
        const std::size_t block =
            d == 0 && !ends.empty()
                ? static_cast<std::size_t>(std::ranges::upper_bound(ends, at) - ends.begin())
                : at / extents[d];
        out += block * stride;
        stride *= counts[d];
    }
    return out;
}

std::string ScaleGrid::words() const {
    if (!ends.empty()) return "one scale per part";
    if (std::ranges::all_of(counts, [](std::size_t count) { return count == 1; })) return "one scale";
    std::vector<std::size_t> extent;
    for (std::size_t d = 0; d < shape.size(); ++d)
        extent.push_back(counts[d] == 1 ? std::max<std::size_t>(shape[d], 1) : extents[d]);
    // A matrix with fewer than 128 rows or columns has blocks of 128 x 128 all the same.
    constexpr std::size_t kSquare = 128;
    const std::size_t n = shape.size();
    for (std::size_t d = n < 2 ? n : n - 2; d < n; ++d) {
        const std::size_t other = d == n - 1 ? n - 2 : n - 1;
        if (counts[d] == 1 && counts[other] > 1 && extents[other] == kSquare)
            extent[d] = std::max(shape[d], kSquare);
    }
    if (shape.size() == 2 && extent[0] == 1 && counts[1] == 1) return "one scale per row";
    return fmt::format("one scale per {}", fmt::join(extent, " x "));
}

std::int64_t apply_scales(const ScaleGrid& grid, std::size_t first, std::span<float> rows,
                          std::span<const float> scales, std::size_t first_row,
                          const std::optional<GlobalScale>& global) {
    const auto infinite = [](std::span<const float> values) {
        return std::ranges::count_if(values, [](float value) { return std::isinf(value); });
    };
    const float factor = global ? global->value : 1;
    const bool divides = global && global->divides,
               usual = std::isfinite(factor) && !(divides && factor == 0);
    const std::size_t cols = grid.cols(), across = grid.across(),
                      run = grid.extents.empty() ? 1 : grid.extents.back();
    std::int64_t before = infinite(rows), by_scale = 0;  // by_scale: under a scale that is not finite
    for (std::size_t r = 0; r * cols < rows.size(); ++r) {
        const std::span<const float> own =
            scales.subspan((grid.row_of(first + r) - first_row) * across, across);
        for (std::size_t block = 0; block < across; ++block) {
            const std::size_t from = block * run;
            const std::span<float> values = rows.subspan(r * cols + from, std::min(run, cols - from));
            const float scale = own[block];
            const bool plain = usual && std::isfinite(scale);
            if (!plain) before -= infinite(values);
            for (float& value : values) value *= scale;
            if (divides)
                for (float& value : values) value /= factor;
            else if (global)
                for (float& value : values) value *= factor;
            if (!plain) by_scale += infinite(values);
        }
    }
    return std::max<std::int64_t>(0, infinite(rows) - by_scale - before);
}

void ScaleHealth::add(std::span<const float> values) {
    scales += static_cast<std::int64_t>(values.size());
    for (const float value : values) {
        nan += std::isnan(value);
        inf += std::isinf(value);
        zero += value == 0;
        subnormal += std::fpclassify(value) == FP_SUBNORMAL;
        negative += value < 0;
    }
}

ScaleHealth& ScaleHealth::operator+=(const ScaleHealth& other) {
    scales += other.scales;
    nan += other.nan;
    inf += other.inf;
    zero += other.zero;
    subnormal += other.subnormal;
    negative += other.negative;
    return *this;
}

std::string ScaleHealth::words() const {
    std::string out;
    for (const auto& [n, what] : {std::pair{nan, "NaN"},
                                  {inf, "Inf"},
                                  {zero, "zero"},
                                  {subnormal, "subnormal"},
                                  {negative, "negative"}})
        if (n > 0)
            out += fmt::format("{}{} {}", out.empty() ? "" : ", ", with_commas(static_cast<std::size_t>(n)),
                               what);
    return out;
}

}  // namespace fp8lab
