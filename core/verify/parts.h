// The errors of the parts of a matrix: its rows, its tiles of 64 x 64, and its scales where a scale has fewer than 64 values
// of one row. A fault of few parts is lost in the error of the whole matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/verify/division.h"

namespace fp8lab {

struct SquaredError {
    double error = 0, signal = 0;  // error: Inf where a value is not finite and the original's is
    SquaredError& operator+=(const SquaredError& other) {
        error += other.error, signal += other.signal;
        return *this;
    }
    double relative() const;  // L2; 0 where both are 0, Inf where only the signal is
};
SquaredError squared_error(std::span<const float> w, std::span<const float> values);

// Parts of one kind, and the mean square of the original in each of those whose relative L2 is above
// 2 x that of our own cast + 0.15, or + 0.35 of 4-bit codes, where a healthy file that was made with GPTQ may have twice our
// error and more in a block of 16. Twice a scale is above, another rule of scales is not.
struct PartTally {
    std::int64_t all = 0;
    std::vector<double> above = {};
    PartTally& operator+=(const PartTally& other);
    // Those of at least 1/64 of the root mean square of the whole: the scales of smaller parts are coarse.
    std::int64_t off(double mean_square) const;
};
struct Parts {
    PartTally rows = {}, tiles = {}, scales = {};
    Parts& operator+=(const Parts& other);
};

// Collects the errors of a band row by row. Our own casts may be several: the largest error counts.
class PartErrors {
  public:
    // `divisions`: those of our own casts; none: the values should be those of the original.
    PartErrors(std::size_t rows, std::size_t cols, std::span<const Division> divisions);
    // Both return the sum of the row.
    SquaredError add_stored(std::size_t row, std::span<const float> w, std::span<const float> values);
    SquaredError add_own(std::size_t row, std::span<const float> w, std::span<const float> own);
    Parts parts() const;

  private:
    std::size_t rows_, cols_, width_, across_;
    bool scales_ = false;  // a segment is a scale
    double slack_ = 0;
    std::vector<SquaredError> stored_;  // of each segment of each row
    std::vector<double> own_;           // the largest error
};

}  // namespace fp8lab
