#include "core/verify/factors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/names.h"
#include "core/base/units.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

struct BlockSums {
    double wc = 0, cc = 0, ww = 0;
    float amax = 0;
    void add(std::span<const float> w, std::span<const float> codes) {
        for (std::size_t i = 0; i < w.size(); ++i) {
            if (!std::isfinite(w[i])) continue;
            const auto x = static_cast<double>(w[i]);
            const double c = std::isfinite(codes[i]) ? static_cast<double>(codes[i]) : 0;
            wc += x * c, cc += c * c, ww += x * x;
            amax = std::max(amax, std::fabs(w[i]));
        }
    }
    void add(const BlockSums& other) {
        wc += other.wc, cc += other.cc, ww += other.ww, amax = std::max(amax, other.amax);
    }
};

bool is_power(float scale) {
    int exponent = 0;
    return scale > 0 && std::isfinite(scale) && std::frexp(scale, &exponent) == 0.5F;
}

// Of the rows of scales from `first` on, as a band has them.
class FactorPass {
  public:
    FactorPass(const OriginalMatrix& original, const StoredMatrix& stored, const Division& division)
        : original_(original), stored_(stored), division_(division) {
        if (const auto global = stored.global())
            global_ =
                global->divides ? 1 / static_cast<double>(global->value) : static_cast<double>(global->value);
    }

    std::vector<BlockSums> sums(const Band& band) const {
        const ScaleGrid& grid = division_.grid;
        const std::size_t cols = grid.cols(), across = grid.across(),
                          run = grid.extents.empty() ? 1 : grid.extents.back();
        std::vector<float> w(band.count * cols), codes(w.size());
        original_.read(band.first, w);
        stored_.read_codes(band.first, codes);
        const Band own = scale_rows_of(grid, band);
        std::vector<BlockSums> out(own.count * across);
        for (std::size_t r = 0; r < band.count; ++r) {
            BlockSums* const row = out.data() + (grid.row_of(band.first + r) - own.first) * across;
            for (std::size_t c = 0, block = 0; c < cols; c += run, ++block) {
                const std::size_t n = std::min(run, cols - c), at = r * cols + c;
                row[block].add(std::span(w).subspan(at, n), std::span(codes).subspan(at, n));
            }
        }
        return out;
    }

    // `first`: the row of scales of the first sums.
    FactorTally tally(std::span<const BlockSums> sums, std::size_t first) const {
        std::vector<float> scales(sums.size(), 1.F);
        if (stored_.scales()) stored_.read_scales(first * division_.grid.across(), scales);
        FactorTally out;
        for (std::size_t i = 0; i < sums.size(); ++i) add(sums[i], scales[i], i == 0, out);
        return out;
    }

  private:
    void add(const BlockSums& sums, float scale, bool is_first, FactorTally& out) const {
        const double factor = sums.cc > 0 ? sums.wc / sums.cc : 0;
        out.rest += std::max(0.0, sums.ww - factor * sums.wc);
        out.signal += sums.ww;
        out.powers = out.powers && is_power(scale);
        if (is_first)
            out.least = out.largest = scale;
        else
            out.least = std::min(out.least, scale), out.largest = std::max(out.largest, scale);
        if (sums.ww == 0 && sums.cc == 0) return;
        ++out.blocks;
        const double stored = static_cast<double>(scale) * global_;
        if (factor == 0 || stored == 0 || !std::isfinite(stored) || sums.amax == 0) {
            ++out.off;
            return;
        }
        constexpr double kBelow = -0.12, kAbove = 1.05, kOff = 0.1, kOffOfFew = 0.3;
        constexpr int kManyBits = 8;
        const bool few = division_.kind != ScaleKind::exact || width_bits(*division_.format) < kManyBits;
        const double r = std::log2(std::fabs(stored / factor));
        const bool negated = (stored < 0) != (factor < 0);
        ++out.used;
        out.sum_r += r, out.sum_r2 += r * r;
        out.above_by_less_than_2 += !negated && r > kBelow && r < kAbove;
        out.off += negated || std::fabs(r) > (few ? kOffOfFew : kOff);
        out.negated += negated;
        if (negated) return;
        const double x = std::log2(static_cast<double>(sums.amax) / max_finite(*division_.format));
        for (std::size_t k = 0; k < out.slopes.size(); ++k)
            for (std::size_t rounded = 0; rounded < 2; ++rounded) {
                const double off = std::fabs(-r - FactorTally::kSlopes[k] * (rounded ? std::ceil(x) : x));
                out.slopes[k][rounded].add(off);
            }
        out.inverse.add(std::fabs(std::log2(factor * static_cast<double>(scale) / global_)));
    }

    const OriginalMatrix& original_;
    const StoredMatrix& stored_;
    const Division& division_;
    double global_ = 1;
};

}  // namespace

void FactorTally::Near::add(double binades) {
    constexpr double kClose = 0.6, kNear = 1.1;
    close += binades < kClose, near += binades < kNear;
}
FactorTally::Near& FactorTally::Near::operator+=(const Near& other) {
    close += other.close, near += other.near;
    return *this;
}

bool FactorTally::Near::holds_for(std::int64_t all) const {
    constexpr double kMost = 0.95;
    return all > 0 && 2 * close > all && static_cast<double>(near) >= kMost * static_cast<double>(all);
}

FactorTally& FactorTally::operator+=(const FactorTally& other) {
    rest += other.rest, signal += other.signal;
    blocks += other.blocks, used += other.used, negated += other.negated;
    sum_r += other.sum_r, sum_r2 += other.sum_r2;
    above_by_less_than_2 += other.above_by_less_than_2, off += other.off;
    powers = powers && other.powers;
    least = std::min(least, other.least), largest = std::max(largest, other.largest);
    for (std::size_t k = 0; k < slopes.size(); ++k)
        for (std::size_t rounded = 0; rounded < 2; ++rounded) {
            slopes[k][rounded] += other.slopes[k][rounded];
        }
    inverse += other.inverse;
    return *this;
}

double FactorTally::relative() const { return signal > 0 ? std::sqrt(rest / signal) : 0; }

double FactorTally::sigma_r() const {
    if (used == 0) return 0;
    const double mean = mean_r();
    return std::sqrt(std::max(0.0, sum_r2 / static_cast<double>(used) - mean * mean));
}

FactorTally factors_of(const OriginalMatrix& original, const StoredMatrix& stored, const Division& division,
                       std::span<const Band> bands) {
    const FactorPass pass(original, stored, division);
    // A band has all of a scale, or only a part: then sums are kept, which are few.
    std::vector<FactorTally> tallies(bands.size());
    std::vector<std::vector<BlockSums>> parts(division.tall ? bands.size() : 0);
    parallel_for(bands.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::vector<BlockSums> sums = pass.sums(bands[i]);
            if (division.tall)
                parts[i] = std::move(sums);
            else
                tallies[i] = pass.tally(sums, scale_rows_of(division.grid, bands[i]).first);
        }
    });
    if (division.tall) {
        std::size_t count = 1;
        for (const std::size_t each : division.grid.counts) count *= each;
        std::vector<BlockSums> sums(count);
        for (std::size_t i = 0; i < bands.size(); ++i) {
            const std::size_t first = scale_rows_of(division.grid, bands[i]).first * division.grid.across();
            for (std::size_t k = 0; k < parts[i].size(); ++k) sums[first + k].add(parts[i][k]);
        }
        return pass.tally(sums, 0);
    }
    FactorTally out = tallies.empty() ? FactorTally{} : tallies.front();
    for (std::size_t i = 1; i < tallies.size(); ++i) out += tallies[i];
    return out;
}

namespace {

// One factor: none where it is 1.
FactorFault one_factor(const FactorTally& tally) {
    constexpr double kAlmostOne = 0.02;  // binades
    const bool negated = tally.negated > 0;
    if (std::fabs(tally.mean_r()) < kAlmostOne)
        return negated ? FactorFault{"one-factor", "all values are negated"} : FactorFault{};
    return {"one-factor", fmt::format("all values are {}{} times the right ones", negated ? "-" : "",
                                      format_number(std::exp2(tally.mean_r()), 3))};
}

FactorFault no_scale_used(const FactorTally& tally) {
    if (tally.blocks > 1) return {"odd-scales"};
    return {"odd-scales", std::isnan(tally.least)   ? "scale is NaN"
                          : std::isinf(tally.least) ? "scale is Inf"
                                                    : "scale is 0"};
}

}  // namespace

FactorFault fault_of(const FactorTally& tally, bool has_scales) {
    constexpr double kNearlyAll = 0.97, kConstant = 0.05, kLocal = 0.25;
    const auto share = [&](std::int64_t n) {
        return tally.blocks > 0 ? static_cast<double>(n) / static_cast<double>(tally.blocks) : 0;
    };
    const bool local = has_scales && tally.off > 0 && share(tally.off) <= kLocal;
    const bool constant = !local && tally.used == tally.blocks && tally.sigma_r() < kConstant &&
                          (tally.negated == 0 || tally.negated == tally.blocks);
    if (has_scales && tally.used == 0) return no_scale_used(tally);
    if (local)
        return {"local-scales",
                fmt::format("local: {} of {} scales", with_commas(static_cast<std::size_t>(tally.off)),
                            with_commas(static_cast<std::size_t>(tally.blocks)))};
    if (has_scales) {
        if (share(tally.above_by_less_than_2) > kNearlyAll && tally.powers && !constant)
            return {"scale-rounded-later"};
        if (tally.least == tally.largest && (tally.blocks > 1 || tally.least == 1)) return {"scale-lost"};
    }
    const auto slope = [&]() -> std::string_view {
        constexpr std::array<std::string_view, 3> kOfSlopes = {"scale-lost", "scale-twice", "scale-divides"};
        for (std::size_t k = 0; k < kOfSlopes.size(); ++k)
            for (const FactorTally::Near& near : tally.slopes[k])
                if (near.holds_for(tally.blocks)) return kOfSlopes[k];
        return {};
    };
    if (!has_scales)
        if (const auto fault = slope(); !fault.empty()) return {fault};
    if (constant) return one_factor(tally);
    if (has_scales && tally.inverse.holds_for(tally.blocks)) return {"scale-inverse"};
    if (has_scales)
        if (const auto fault = slope(); !fault.empty()) return {fault};
    return {kNoRule};
}

}  // namespace fp8lab
