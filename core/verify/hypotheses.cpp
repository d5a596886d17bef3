#include "core/verify/hypotheses.h"

#include <array>

namespace fp8lab {
namespace {

constexpr std::array kHypotheses = {
    Hypothesis{.fault = "scale-inverse", .scale = ScaleReading::inverse},
    Hypothesis{.fault = "scale-squared", .scale = ScaleReading::squared},
    Hypothesis{.fault = "scale-transposed", .scale = ScaleReading::transposed},
    Hypothesis{.fault = "e8m0-number", .scale = ScaleReading::exponent},
    Hypothesis{.fault = "global-reciprocal", .global = GlobalReading::reciprocal},
    Hypothesis{.fault = "global-lost", .global = GlobalReading::of_amax},
    Hypothesis{.fault = "nibbles", .from = "F4", .swaps_nibbles = true},
    Hypothesis{.fault = "fnuz-as-fn", .from = "F8_E4M3", .element = "F8_E4M3FNUZ", .needs_nan = true},
    Hypothesis{.fault = "fn-as-fnuz", .from = "F8_E4M3FNUZ", .element = "F8_E4M3", .needs_nan = true},
    Hypothesis{.fault = "e5m2-as-e4m3", .from = "F8_E4M3", .element = "F8_E5M2", .slack = 2},
    Hypothesis{.fault = "e4m3-as-e5m2", .from = "F8_E5M2", .element = "F8_E4M3"},
    Hypothesis{.fault = "weight-transposed", .order = RowOrder::transposed},
    Hypothesis{.fault = "codes-transposed", .scale = ScaleReading::transposed, .order = RowOrder::transposed},
    Hypothesis{.fault = "rotary", .order = RowOrder::to_pairs},
    Hypothesis{.fault = "rotary", .order = RowOrder::to_halves},
};

}  // namespace

std::span<const Hypothesis> hypotheses() { return kHypotheses; }

std::size_t source_row(RowOrder order, std::size_t size, std::size_t row) {
    const std::size_t half = size / 2, head = row - row % size, at = row % size;
    if (order == RowOrder::to_pairs) return head + at % 2 * half + at / 2;
    if (order == RowOrder::to_halves) return head + at % half * 2 + at / half;
    return row;
}

}  // namespace fp8lab
