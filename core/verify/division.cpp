#include "core/verify/division.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/formats/codec.h"
#include "core/tensors/dtype.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

// A scale of up to so many rows is in one band. Bands of whole blocks have a multiple of it.
constexpr std::size_t kMostRows = 128;

bool is_tall(const ScaleGrid& grid, std::size_t rows) {
    std::size_t run = 0, before = 0;
    for (std::size_t r = 0; r < rows; ++r) {
        const std::size_t row = grid.row_of(r);
        run = r > 0 && row == before ? run + 1 : 1;
        if (run > kMostRows || row < before) return true;
        before = row;
    }
    return false;
}

// Calls body(row of scales, block of that row, its values) for every row of the band and every block of it.
template <class Body>
void for_blocks(std::span<const float> rows, const ScaleGrid& grid, std::size_t first, const Body& body) {
    const std::size_t cols = grid.cols(), run = grid.extents.empty() ? 1 : grid.extents.back();
    for (std::size_t at = 0; at < rows.size(); at += cols, ++first) {
        const std::size_t row = grid.row_of(first);
        for (std::size_t c = 0, block = 0; c < cols; c += run, ++block)
            body(row, block, rows.subspan(at + c, std::min(run, cols - c)));
    }
}

// 2^(floor(log2 amax) - largest exponent of the format), not below 2^-127.
void to_floor(const FormatInfo& format, std::span<float> amaxes) {
    constexpr int kLeast = -127;
    for (float& each : amaxes)
        if (each > 0 && std::isfinite(each))
            each = std::ldexp(
                1.F, std::max(kLeast, std::ilogb(each) - std::ilogb(static_cast<float>(max_finite(format)))));
}

// What is added to an amax before floor, as a part of it: from 2 - 2^-(bits of mantissa + 1) on it is the next power.
float even_factor(const FormatInfo& format) {
    return 2 / (2 - std::exp2(-static_cast<float>(format.mantissa_bits + 1)));
}

}  // namespace

std::vector<float> Division::units(std::span<const float> amaxes, float tensor_amax) const {
    const auto max = static_cast<float>(max_finite(*format));
    std::vector<float> out(amaxes.begin(), amaxes.end());
    if (kind == ScaleKind::power_floor || kind == ScaleKind::power_even) {
        if (kind == ScaleKind::power_even)
            for (float& each : out) each *= even_factor(*format);
        to_floor(*format, out);
        return out;
    }
    for (float& unit : out) unit /= max;
    if (kind == ScaleKind::exact) return out;
    if (kind == ScaleKind::power) {
        quantize(find_format("e8m0"), out, out, {.rounding = Rounding::up});
        for (std::size_t i = 0; i < out.size(); ++i)  // E8M0 has no 0
            if (amaxes[i] == 0) out[i] = 0;
        return out;
    }
    const FormatInfo& e4m3 = find_format("e4m3");
    const float global =
        kind == ScaleKind::e4m3_under_global ? tensor_amax / (max * static_cast<float>(max_finite(e4m3))) : 1;
    if (global > 0)
        for (float& unit : out) unit /= global;
    quantize(e4m3, out, out);
    for (float& unit : out) unit *= global;
    return out;
}

Division division_of(const StoredTensor& tensor) {
    const StoredScales& scales = *tensor.scales;
    const ScaleKind kind = scales.element == "F8_E8M0"   ? ScaleKind::power
                           : scales.element != "F8_E4M3" ? ScaleKind::exact
                           : scales.global               ? ScaleKind::e4m3_under_global
                                                         : ScaleKind::e4m3;
    return {.grid = scales.grid,
            .format = &find_format(format_of_dtype(tensor.element)),
            .kind = kind,
            .tall = is_tall(scales.grid, tensor.matrix().rows)};
}

std::vector<Division> divisions_by_rule(const Division& division) {
    std::vector<Division> out = {division};
    if (division.kind == ScaleKind::power)
        for (const ScaleKind kind : {ScaleKind::power_floor, ScaleKind::power_even}) {
            out.push_back(division);
            out.back().kind = kind;
        }
    return out;
}

std::vector<Division> divisions_of_values(MatrixShape shape) {
    constexpr std::size_t kSquare = 128, kMx = 32;
    std::vector<Division> out;
    const auto add = [&](std::size_t height, std::size_t width, ScaleKind kind, bool tall) {
        const auto blocks = [](std::size_t n, std::size_t block) { return (n + block - 1) / block; };
        out.push_back({.grid = {.shape = {shape.rows, shape.cols},
                                .extents = {height, width},
                                .counts = {blocks(shape.rows, height), blocks(shape.cols, width)}},
                       .format = &find_format("e4m3"),
                       .kind = kind,
                       .tall = tall});
    };
    add(shape.rows, shape.cols, ScaleKind::exact, true);
    add(1, shape.cols, ScaleKind::exact, false);
    add(kSquare, kSquare, ScaleKind::exact, false);
    add(1, kMx, ScaleKind::power, false);
    return out;
}

std::vector<Band> bands_of(MatrixShape shape, std::span<const Division> divisions) {
    constexpr std::size_t kValues = std::size_t{1}
                                    << 17;  // of a band, unless the blocks of a scale are higher
    std::size_t most = std::max<std::size_t>(1, kValues / std::max<std::size_t>(shape.cols, 1));
    const bool in_blocks = std::ranges::any_of(divisions, [](const Division& each) {
        const std::vector<std::size_t>& extents = each.grid.extents;
        return !each.tall && extents.size() > 1 && extents[extents.size() - 2] > 1;
    });
    if (in_blocks) most = (most + kMostRows - 1) / kMostRows * kMostRows;
    std::vector<Band> out;
    for (std::size_t first = 0; first < shape.rows;) {
        std::size_t end = std::min(first + most, shape.rows);
        for (const Division& each : divisions)
            while (!each.tall && end < shape.rows && end > first + 1 &&
                   each.grid.row_of(end) == each.grid.row_of(end - 1))
                --end;
        out.push_back({first, end - first});
        first = end;
    }
    return out;
}

std::vector<float> band_amaxes(std::span<const float> rows, const ScaleGrid& grid, const Band& band) {
    const Band own = scale_rows_of(grid, band);
    std::vector<float> out(own.count * grid.across());
    for_blocks(rows, grid, band.first,
               [&](std::size_t row, std::size_t block, std::span<const float> values) {
                   float& largest = out[(row - own.first) * grid.across() + block];
                   largest = std::max(largest, amax(values));
               });
    return out;
}

std::vector<float> amaxes_of(const OriginalMatrix& original, std::size_t cols, const ScaleGrid& grid,
                             std::span<const Band> bands) {
    std::size_t count = 1;
    for (const std::size_t each : grid.counts) count *= each;
    std::vector<std::atomic<float>> out(count);
    parallel_for(bands.size(), 1, [&](std::size_t begin, std::size_t end) {
        std::vector<float> rows;
        for (std::size_t i = begin; i < end; ++i) {
            rows.resize(bands[i].count * cols);
            original.read(bands[i].first, rows);
            const std::vector<float> own = band_amaxes(rows, grid, bands[i]);
            const std::size_t first = scale_rows_of(grid, bands[i]).first * grid.across();
            for (std::size_t k = 0; k < own.size(); ++k) {
                std::atomic<float>& largest = out[first + k];
                for (float now = largest; now < own[k] && !largest.compare_exchange_weak(now, own[k]);) {
                }
            }
        }
    });
    return {out.begin(), out.end()};
}

void cast_row(const Division& division, std::span<const float> row, std::span<const float> units,
              std::span<float> out) {
    const std::size_t run = division.grid.extents.empty() ? 1 : division.grid.extents.back();
    const auto for_runs = [&](const auto& body) {
        for (std::size_t c = 0, block = 0; c < row.size(); c += run, ++block)
            body(c, std::min(row.size(), c + run), units[block]);
    };
    for_runs([&](std::size_t begin, std::size_t end, float unit) {
        const float scale = unit > 0 && std::isfinite(1 / unit) ? 1 / unit : 0;
        for (std::size_t c = begin; c < end; ++c) out[c] = row[c] * scale;
    });
    quantize(*division.format, out, out);
    for_runs([&](std::size_t begin, std::size_t end, float unit) {
        for (std::size_t c = begin; c < end; ++c) out[c] *= unit;
    });
}

}  // namespace fp8lab
