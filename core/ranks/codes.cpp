#include "core/ranks/codes.h"

#include <cstdint>
#include <cstring>

namespace fp8lab {

void write_codes(const FormatInfo& format, std::span<const float> values, const CastOptions& options,
                 void* codes) {
    const std::size_t n = values.size();
    if (storage_bytes(format) == 1)
        encode(format, values, std::span(static_cast<std::uint8_t*>(codes), n), options);
    else if (storage_bytes(format) == 2)
        encode(format, values, std::span(static_cast<std::uint16_t*>(codes), n), options);
    else
        std::memcpy(codes, values.data(), values.size_bytes());
}

void read_codes(const FormatInfo& format, const void* codes, std::span<float> values) {
    const std::size_t n = values.size();
    if (storage_bytes(format) == 1)
        decode(format, std::span(static_cast<const std::uint8_t*>(codes), n), values);
    else if (storage_bytes(format) == 2)
        decode(format, std::span(static_cast<const std::uint16_t*>(codes), n), values);
    else
        std::memcpy(values.data(), codes, values.size_bytes());
}

}  // namespace fp8lab
