#include "core/verify/parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fp8lab {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::size_t kTile = 64;  // rows and columns

// The sums with 8 accumulators, which a compiler can keep in vectors.
SquaredError plain_squares(std::span<const float> w, std::span<const float> values) {
    constexpr std::size_t kLanes = 8;
    std::array<double, kLanes> error{}, signal{};
    std::size_t i = 0;
    for (; i + kLanes <= w.size(); i += kLanes)
        for (std::size_t k = 0; k < kLanes; ++k) {
            const auto x = static_cast<double>(w[i + k]), e = static_cast<double>(values[i + k]) - x;
            error[k] += e * e, signal[k] += x * x;
        }
    SquaredError out;
    for (std::size_t k = 0; k < kLanes; ++k) out += {error[k], signal[k]};
    for (; i < w.size(); ++i) {
        const auto x = static_cast<double>(w[i]), e = static_cast<double>(values[i]) - x;
        out += {e * e, x * x};
    }
    return out;
}

void add_to(PartTally& tally, const SquaredError& stored, double own, double slack, std::size_t values) {
    ++tally.all;
    if (stored.error == 0) return;
    const double bound = 2 * SquaredError{own, stored.signal}.relative() + slack;
    if (stored.signal > 0 && stored.relative() > bound)
        tally.above.push_back(stored.signal / static_cast<double>(values));
}

}  // namespace

double SquaredError::relative() const {
    if (error == 0) return 0;
    return signal > 0 ? std::sqrt(error / signal) : kInf;
}

SquaredError squared_error(std::span<const float> w, std::span<const float> values) {
    SquaredError out = plain_squares(w, values);
    if (std::isfinite(out.error) && std::isfinite(out.signal)) return out;
    out = {};
    for (std::size_t i = 0; i < w.size(); ++i) {
        if (!std::isfinite(w[i])) continue;
        const auto x = static_cast<double>(w[i]), e = static_cast<double>(values[i]) - x;
        out += {std::isfinite(values[i]) ? e * e : kInf, x * x};
    }
    return out;
}

PartTally& PartTally::operator+=(const PartTally& other) {
    all += other.all;
    above.insert(above.end(), other.above.begin(), other.above.end());
    return *this;
}

std::int64_t PartTally::off(double mean_square) const {
    constexpr double kLeast = 1.0 / (64 * 64);
    return std::ranges::count_if(above, [&](double each) { return each >= kLeast * mean_square; });
}

Parts& Parts::operator+=(const Parts& other) {
    rows += other.rows, tiles += other.tiles, scales += other.scales;
    return *this;
}

PartErrors::PartErrors(std::size_t rows, std::size_t cols, std::span<const Division> divisions)
    : rows_(rows), cols_(cols), width_(kTile) {
    constexpr double kSlack = 0.15, kSlackOf4 = 0.35;
    slack_ = kSlack;
    if (divisions.size() > 0) {
        const ScaleGrid& grid = divisions.front().grid;
        const std::size_t run = grid.extents.empty() ? 1 : grid.extents.back();
        const bool flat = grid.extents.size() > 1 && grid.extents[grid.extents.size() - 2] == 1;
        // Of a file without scales the divisions are several, and none is the file's.
        const bool same = std::ranges::all_of(
            divisions, [&](const Division& each) { return each.grid.extents == grid.extents; });
        if (same && flat && run > 1 && run < kTile && kTile % run == 0) width_ = run, scales_ = true;
        if (width_bits(*divisions.front().format) == 4) slack_ = kSlackOf4;
    }
    across_ = (cols + width_ - 1) / width_;
    stored_.resize(rows * across_);
    own_.resize(rows * across_);
}

SquaredError PartErrors::add_stored(std::size_t row, std::span<const float> w,
                                    std::span<const float> values) {
    SquaredError all;
    for (std::size_t k = 0, at = 0; k < across_; ++k, at += width_) {
        const std::size_t n = std::min(width_, cols_ - at);
        all += stored_[row * across_ + k] = squared_error(w.subspan(at, n), values.subspan(at, n));
    }
    return all;
}

SquaredError PartErrors::add_own(std::size_t row, std::span<const float> w, std::span<const float> own) {
    SquaredError all;
    for (std::size_t k = 0, at = 0; k < across_; ++k, at += width_) {
        const std::size_t n = std::min(width_, cols_ - at);
        const SquaredError each = squared_error(w.subspan(at, n), own.subspan(at, n));
        double& largest = own_[row * across_ + k];
        largest = std::max(largest, each.error);
        all += each;
    }
    return all;
}

Parts PartErrors::parts() const {
    Parts out;
    const std::size_t in_tile = kTile / width_, tiles = (across_ + in_tile - 1) / in_tile;
    std::vector<SquaredError> stored(tiles);
    std::vector<double> own(tiles);
    for (std::size_t row = 0, height = 0; row < rows_; ++row) {
        SquaredError of_row;
        double own_of_row = 0;
        for (std::size_t k = 0; k < across_; ++k) {
            const SquaredError& each = stored_[row * across_ + k];
            const double own_each = own_[row * across_ + k];
            if (scales_) add_to(out.scales, each, own_each, slack_, std::min(width_, cols_ - k * width_));
            of_row += each, own_of_row += own_each;
            stored[k / in_tile] += each, own[k / in_tile] += own_each;
        }
        add_to(out.rows, of_row, own_of_row, slack_, cols_);
        if (++height < kTile && row + 1 < rows_) continue;
        for (std::size_t tile = 0; tile < tiles; ++tile)
            add_to(out.tiles, stored[tile], own[tile], slack_,
                   height * std::min(kTile, cols_ - tile * kTile));
        std::ranges::fill(stored, SquaredError{});
        std::ranges::fill(own, 0.0);
        height = 0;
    }
    return out;
}

}  // namespace fp8lab
