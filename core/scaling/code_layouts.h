// A matrix as published checkpoints store it: one code an element, scales, and for NVFP4 a global scale. The scales and
// the roundings are those of quantize() (quantizer.h), to nearest; only what is stored differs:
//
//   layout         codes  one scale per        stored as  value
//   e4m3-tensor    E4M3   matrix               F32        code x scale
//   e4m3-row       E4M3   row                  F32        code x scale
//   e4m3-block128  E4M3   128 x 128, ragged    F32        code x scale
//   mxfp8          E4M3   1 x 32               E8M0       code x scale
//   nvfp4          E2M1   1 x 16               E4M3       code x scale / global
//   mxfp4          E2M1   1 x 32               E8M0       code x scale
//
// FP32 scales are 1 / (448 / amax), and both they and NVFP4's global scale are stored with 21 significant bits: what a
// second cast of the decoded values finds is then the same scale to the bit. So it changes no value, unless an NVFP4
// block is so small that its scale is a subnormal of E4M3 (below 2^-6). MX scales are amax / max with the exponent rounded up (numerics.md 1.4); NVFP4's
// global scale is 2688 / amax of the matrix, or of all matrices that share it (numerics.md 1.5, step 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/scaling/quantizer.h"

namespace fp8lab {

struct CodeLayout {
    std::string_view name, format;
    Granularity granularity = Granularity::tensor;
    std::string_view
        scales;  // how they are stored, as decode_stored() names it (dtype.h): F32, F8_E8M0, F8_E4M3
    bool has_global = false;

    CastPlan plan() const;
    bool is_fp4() const { return format == "e2m1"; }
    std::size_t block() const;  // 16 or 32 columns, which K must be a multiple of; 1: any K
    // Scales of a (rows, cols) matrix: down, across.
    std::size_t scale_rows(std::size_t rows) const;
    std::size_t scale_cols(std::size_t cols) const;
};
std::span<const CodeLayout> code_layouts();
// Throws usage_error(where, ...) with the names.
const CodeLayout& find_code_layout(std::string_view name, std::string_view where = "layout");

struct CodedMatrix {
    std::vector<std::uint8_t> codes = {};        // one a byte, row-major; E2M1 in the low half
    std::vector<float> scales = {};              // scale_rows x scale_cols, as they multiply after the cast
    std::vector<std::uint8_t> scale_codes = {};  // the same in E8M0 or E4M3; empty: F32
    float global = 1;                            // divides; 1 where the layout has none
};
// The matrix, K along its columns; a last block may be partial. `tensor_amax`: for NVFP4's global scale and the scale of
// e4m3-tensor, of the whole of which the matrix is a part; below 0: of the matrix. NaN becomes E4M3's NaN, 6 in E2M1; an
// Inf saturates under scale 1 (numerics.md 3.3). Throws usage_error: not rows x cols elements.
CodedMatrix cast_to_layout(const CodeLayout& layout, std::span<const float> matrix, std::size_t rows,
                           std::size_t cols, float tensor_amax = -1);
// What a reader makes of it, in float32: (code x scale) / global. `out` has as many elements as there are codes.
void decode_layout(const CodeLayout& layout, const CodedMatrix& coded, std::size_t cols,
                   std::span<float> out);

// Two FP4 codes a byte, the first in the low half; an even number of them.
std::vector<std::uint8_t> pack_fp4(std::span<const std::uint8_t> codes);

}  // namespace fp8lab
