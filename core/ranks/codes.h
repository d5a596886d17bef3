// Arrays as the codes that ranks send: 4, 2 or 1 byte for each element.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/formats/codec.h"

namespace fp8lab {

// The overflow is that of `options`; formats of 4 bytes are FP32 and are copied as they are. `codes` holds
// values.size() * storage_bytes(format) bytes.
void write_codes(const FormatInfo& format, std::span<const float> values, const CastOptions& options,
                 void* codes);
// Decoded values, without a scale.
void read_codes(const FormatInfo& format, const void* codes, std::span<float> values);

}  // namespace fp8lab
