#include "core/verify/measure.h"

#include <algorithm>
#include <cmath>

#include "core/formats/codec.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

struct BandScratch {
    std::vector<float> w, values, row, rounded;
};
// Runs body(band, its result, scratch of the thread) for every band and returns the results in their order.
template <class Result, class Body>
std::vector<Result> over_bands(std::span<const Band> bands, const Body& body) {
    std::vector<Result> out(bands.size());
    parallel_for(bands.size(), 1, [&](std::size_t begin, std::size_t end) {
        static thread_local BandScratch scratch;  // keeps its memory: bands are many, and some MB each
        for (std::size_t i = begin; i < end; ++i) body(bands[i], out[i], scratch);
    });
    return out;
}

void count_rounded(std::span<const float> w, std::span<const float> values, std::span<const float> own,
                   std::vector<float>& scratch, Measured& out) {
    static const FormatInfo& e4m3 = find_format("e4m3");
    scratch.resize(w.size());
    quantize(e4m3, w, scratch);
    std::int64_t nonzero = 0, rounded = 0, own_rounded = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
        const int counts = w[i] != 0;
        nonzero += counts;
        rounded += counts & static_cast<int>(values[i] == scratch[i]);
    }
    if (rounded * 2 > nonzero)
        for (std::size_t i = 0; i < w.size(); ++i)
            own_rounded += static_cast<int>(w[i] != 0) & static_cast<int>(own[i] == scratch[i]);
    out.nonzero += nonzero, out.rounded += rounded, out.own_rounded += own_rounded;
}

// `values` become those of the original where they are not finite.
void count_not_finite(std::span<const float> w, std::span<float> values, Measured& out) {
    for (std::size_t i = 0; i < w.size(); ++i) {
        if (std::isfinite(w[i]) && std::isfinite(values[i])) continue;
        if (std::isfinite(w[i]))
            ++out.not_finite;
        else if (!(std::isnan(w[i]) && std::isnan(values[i])) && w[i] != values[i])
            ++out.original_not_finite;
        values[i] = w[i];
    }
}

}  // namespace

bool Measured::is_rounded() const {
    constexpr double kNearlyAll = 0.999;
    const double all = kNearlyAll * static_cast<double>(nonzero);
    return nonzero > 0 && static_cast<double>(rounded) >= all && static_cast<double>(own_rounded) < all;
}

Amaxes whole_amaxes(const OriginalMatrix& original, MatrixShape shape, std::span<const Division> divisions,
                    std::span<const Band> bands) {
    Amaxes out{.of_tall = std::vector<std::vector<float>>(divisions.size())};
    const ScaleGrid whole{
        .shape = {shape.rows, shape.cols}, .extents = {shape.rows, shape.cols}, .counts = {1, 1}};
    for (std::size_t d = 0; d < divisions.size(); ++d) {
        const Division& each = divisions[d];
        if (each.tall) out.of_tall[d] = amaxes_of(original, shape.cols, each.grid, bands);
        if (each.kind == ScaleKind::e4m3_under_global)
            out.tensor =
                each.tall ? amax(out.of_tall[d]) : amaxes_of(original, shape.cols, whole, bands).front();
    }
    return out;
}

Measured measure(const OriginalMatrix& original, const StoredMatrix& stored,
                 std::span<const Division> divisions, const Amaxes& amaxes, std::span<const Band> bands) {
    const std::size_t cols = stored.shape().cols;
    // Codes of 4 bits have too few values to be those of E4M3.
    const bool counts = !divisions.empty() && width_bits(*divisions[0].format) == 8;
    std::vector<std::vector<float>> tall_units(divisions.size());
    for (std::size_t d = 0; d < divisions.size(); ++d)
        if (divisions[d].tall) tall_units[d] = divisions[d].units(amaxes.of_tall[d], amaxes.tensor);
    const auto measure_band = [&](const Band& band, Measured& out, BandScratch& scratch) {
        auto& [w, values, own, rounded] = scratch;
        w.resize(band.count * cols), values.resize(w.size()), own.resize(cols);
        original.read(band.first, w);
        stored.read_values(band.first, values);
        PartErrors errors(band.count, cols, divisions);
        for (std::size_t r = 0; r < band.count; ++r)
            out.stored += errors.add_stored(r, std::span<const float>(w).subspan(r * cols, cols),
                                            std::span<const float>(values).subspan(r * cols, cols));
        out.own.resize(divisions.size());
        for (std::size_t d = 0; d < divisions.size(); ++d) {
            const Division& division = divisions[d];
            const std::size_t across = division.grid.across();
            std::vector<float> of_band;
            if (!division.tall) of_band = division.units(band_amaxes(w, division.grid, band), amaxes.tensor);
            const std::span<const float> units = division.tall ? tall_units[d] : of_band;
            const std::size_t first = division.tall ? 0 : scale_rows_of(division.grid, band).first;
            for (std::size_t r = 0; r < band.count; ++r) {
                const auto row = std::span<const float>(w).subspan(r * cols, cols);
                const std::size_t at = division.grid.row_of(band.first + r) - first;
                cast_row(division, row, units.subspan(at * across, across), own);
                out.own[d] += errors.add_own(r, row, own);
                if (d == 0 && counts)
                    count_rounded(row, std::span<const float>(values).subspan(r * cols, cols), own, rounded,
                                  out);
            }
        }
        out.parts = errors.parts();
        count_not_finite(w, values, out);
        out.finite = std::isfinite(out.stored.error) ? out.stored : squared_error(w, values);
    };
    Measured all{.stored = {}, .own = std::vector<SquaredError>(divisions.size())};
    for (const Measured& each : over_bands<Measured>(bands, measure_band)) {
        all.stored += each.stored, all.finite += each.finite, all.parts += each.parts;
        all.not_finite += each.not_finite, all.original_not_finite += each.original_not_finite;
        for (std::size_t d = 0; d < divisions.size(); ++d) all.own[d] += each.own[d];
        all.nonzero += each.nonzero, all.rounded += each.rounded, all.own_rounded += each.own_rounded;
    }
    return all;
}

SquaredError error_of(const OriginalMatrix& original, const StoredMatrix& stored, const Reader& reader,
                      std::span<const Band> bands) {
    const std::size_t cols = stored.shape().cols;
    const auto compare = [&](const Band& band, SquaredError& out, BandScratch& scratch) {
        scratch.w.resize(band.count * cols), scratch.values.resize(scratch.w.size());
        original.read(band.first, scratch.w);
        reader.read(band.first, scratch.values);
        out = squared_error(scratch.w, scratch.values);
    };
    SquaredError all;
    for (const SquaredError& each : over_bands<SquaredError>(bands, compare)) all += each;
    return all;
}

SquaredError error_transposed(const OriginalMatrix& original, const StoredMatrix& stored,
                              const Reader& reader, std::span<const Band> bands) {
    constexpr std::size_t kAtOnce = std::size_t{1} << 24;  // stored values that are held, 64 MB
    const std::size_t cols = stored.shape().cols;
    SquaredError all;
    std::vector<float> held;
    for (std::size_t begin = 0, end = 0; begin < bands.size(); begin = end) {
        std::vector<std::size_t> rows;  // of the stored matrix
        while (end < bands.size() && (end == begin || (rows.size() + bands[end].count) * cols <= kAtOnce)) {
            for (std::size_t r = 0; r < bands[end].count; ++r) rows.push_back(bands[end].first + r);
            ++end;
        }
        held.resize(rows.size() * cols);
        for (std::size_t r = 0; r < rows.size(); ++r)
            reader.read(rows[r], std::span(held).subspan(r * cols, cols));
        const auto compare = [&](const Band& band, SquaredError& out, BandScratch& scratch) {
            scratch.w.resize(band.count * cols);
            original.read(band.first, scratch.w);
            std::vector<float> x(rows.size()), w(rows.size());
            for (std::size_t r = 0; r < band.count; ++r) {
                for (std::size_t k = 0; k < rows.size(); ++k) {
                    x[k] = held[k * cols + band.first + r];
                    w[k] = scratch.w[r * cols + rows[k]];
                }
                out += squared_error(w, x);
            }
        };
        for (const SquaredError& each : over_bands<SquaredError>(bands, compare)) all += each;
    }
    return all;
}

Tiles tiles_above(const OriginalMatrix& original, const StoredMatrix& stored, std::span<const Band> bands,
                  double limit) {
    constexpr std::size_t kSmall = 256, kSmallTile = 16, kTile = 64;
    const MatrixShape shape = stored.shape();
    const std::size_t side = std::min(shape.rows, shape.cols) < kSmall ? kSmallTile : kTile;
    const std::size_t across = (shape.cols + side - 1) / side;
    const auto count = [&](const Band& band, Tiles& out, BandScratch& scratch) {
        scratch.w.resize(band.count * shape.cols), scratch.values.resize(scratch.w.size());
        original.read(band.first, scratch.w);
        stored.read_values(band.first, scratch.values);
        std::vector<SquaredError> tiles((band.count + side - 1) / side * across);
        for (std::size_t r = 0; r < band.count; ++r)
            for (std::size_t c = 0, tile = r / side * across; c < shape.cols; c += side, ++tile) {
                const std::size_t at = r * shape.cols + c, n = std::min(side, shape.cols - c);
                tiles[tile] += squared_error(std::span(scratch.w).subspan(at, n),
                                             std::span(scratch.values).subspan(at, n));
            }
        out.all = static_cast<std::int64_t>(tiles.size());
        out.above =
            std::ranges::count_if(tiles, [&](const SquaredError& each) { return each.relative() > limit; });
    };
    Tiles all;
    for (const Tiles& each : over_bands<Tiles>(bands, count)) all.all += each.all, all.above += each.above;
    return all;
}

std::vector<Band> sample_of(std::span<const Band> bands, std::size_t cols) {
    constexpr std::size_t kBands = 8, kValues = std::size_t{1} << 16;  // values: of a band
    if (bands.size() <= kBands) return {bands.begin(), bands.end()};
    std::vector<Band> out;
    for (std::size_t i = 0; i < kBands; ++i) {
        out.push_back(bands[(2 * i + 1) * bands.size() / (2 * kBands)]);
        out.back().count = std::clamp<std::size_t>(kValues / cols, 1, out.back().count);
    }
    return out;
}

}  // namespace fp8lab
