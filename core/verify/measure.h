// The passes over a matrix and its original: errors, our own cast beside them, and hypotheses. In parallel over bands; sums
// are taken in the order of the bands, so that no result depends on the number of threads. Values of the original that are
// not finite are passed over.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/verify/division.h"
#include "core/verify/parts.h"
#include "core/verify/readings.h"

namespace fp8lab {

// What the scale of each division is made from, where the band alone does not say it.
struct Amaxes {
    std::vector<std::vector<float>> of_tall;  // one per division; empty: not tall
    float tensor = 0;
};
// Reads the original once where a division needs it, else not at all.
Amaxes whole_amaxes(const OriginalMatrix& original, MatrixShape shape, std::span<const Division> divisions,
                    std::span<const Band> bands);

struct Measured {
    SquaredError stored;
    std::vector<SquaredError> own = {};  // of our own cast onto each division
    Parts parts = {};
    // Stored values that are NaN or Inf where the original is not, and the error of all others.
    std::int64_t not_finite = 0;
    SquaredError finite = {};
    std::int64_t original_not_finite =
        0;  // values of the original that are, and the stored ones are not the same
    // Of the values that are not 0 in the original: how many are, and in how many the stored value, or that of our own
    // cast onto the first division, is e4m3(W), rounded with scale 1.
    std::int64_t nonzero = 0, rounded = 0, own_rounded = 0;
    bool is_rounded() const;  // 99.9 % of the stored values, and not because that is the scale anyway
};
Measured measure(const OriginalMatrix& original, const StoredMatrix& stored,
                 std::span<const Division> divisions, const Amaxes& amaxes, std::span<const Band> bands);

// The error of the stored values as the reader has them, over those bands.
SquaredError error_of(const OriginalMatrix& original, const StoredMatrix& stored, const Reader& reader,
                      std::span<const Band> bands);
// The same of the transposed stored matrix, which is square, in the rows and columns of those bands.
SquaredError error_transposed(const OriginalMatrix& original, const StoredMatrix& stored,
                              const Reader& reader, std::span<const Band> bands);

// Tiles of 64 x 64, or 16 x 16 of a small matrix, whose relative error is above the limit.
struct Tiles {
    std::int64_t all = 0, above = 0;
};
Tiles tiles_above(const OriginalMatrix& original, const StoredMatrix& stored, std::span<const Band> bands,
                  double limit);

// Up to eight bands, evenly spread, with some 64 K values each; of small matrices all.
std::vector<Band> sample_of(std::span<const Band> bands, std::size_t cols);

}  // namespace fp8lab
