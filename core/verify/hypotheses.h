// What may be wrong with stored codes and scales, as data: each row says how the bytes would have to be read for the
// values to be right. Read so, the tensor is compared with its original; the row that brings it below the threshold names
// the fault (verify.h).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace fp8lab {

enum class ScaleReading {
    as_is,
    inverse,
    squared,
    transposed,  // the scales lie column by column
    exponent,    // 2^(s - 127): the byte of an E8M0 scale was stored as a number
};
enum class GlobalReading {
    as_is,
    reciprocal,
    of_amax,  // amax of the original / (6 x 448), where the file has 1
};
// Rows of heads of q and k in the order of rotary embeddings: the halves one behind the other, as Hugging Face has them,
// or element by element, as Meta has them.
enum class RowOrder { as_is, transposed, to_pairs, to_halves };

struct Hypothesis {
    std::string_view fault;         // of faults()
    std::string_view from = {};     // only for codes of this dtype; empty: of any
    std::string_view element = {};  // the dtype that they are read as
    // Only where stored values are NaN. Without one, codes of FN and FNUZ differ by the factor 2 alone, which is said so.
    bool needs_nan = false;
    bool swaps_nibbles = false;  // of FP4 codes
    ScaleReading scale = ScaleReading::as_is;
    GlobalReading global = GlobalReading::as_is;
    RowOrder order = RowOrder::as_is;
    double slack = 1;  // times the threshold: a format with fewer bits of mantissa has a larger error

    bool concerns_values() const {
        return order != RowOrder::as_is && scale == ScaleReading::as_is;
    }  // applies to a file without codes too
};
std::span<const Hypothesis> hypotheses();

// The row of the stored matrix that stands in that order's row. `size`: rows of a head.
std::size_t source_row(RowOrder order, std::size_t size, std::size_t row);

}  // namespace fp8lab
