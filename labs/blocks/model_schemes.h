// The ways to share scales, and what each of them does to a matrix.
#pragma once

#include <string>
#include <vector>

#include "core/figure/palette.h"
#include "core/scaling/block_scales.h"
#include "core/scaling/quantizer.h"
#include "core/tensors/tensor.h"

namespace fp8lab::blocks {

struct Scheme {
    std::string id, label;  // "mx32-floor", "MX, 32, floor"
    CastPlan plan;
};

// tensor row 1x128 128x128 mx32-up mx32-floor mx32-even nvfp4, in this order. `element` is the format of all
// but nvfp4, whose elements are E2M1; `pow2` rounds the FP32 scales of the first four down to powers of two.
std::vector<Scheme> schemes(const FormatInfo& element, bool pow2);

// One quantised copy of a matrix: along its columns, as fprop reads x, or along its rows, as wgrad does.
struct Copy {
    BlockGrid grid;
    std::vector<float> values;  // dequantised
    std::vector<float> scales;  // one per block
    CastStats stats;
};
Copy quantized_copy(const CastPlan& plan, const Tensor& tensor, Along along);

struct Score {
    double scales = 0, bits_per_element = 0;
    double sqnr_db = 0, underflow_pct = 0, overflow_pct = 0;
    double lost_l1_pct = 0, lost_energy_pct = 0;
    double worst_row_db = 0;  // the lowest SQNR of a row that is not all 0
    double differ_pct = 0;    // elements whose two copies are not the same number
    double max_difference = 0;
};
Score score(const CastPlan& plan, const Tensor& tensor, const Copy& by_cols, const Copy& by_rows);

}  // namespace fp8lab::blocks
