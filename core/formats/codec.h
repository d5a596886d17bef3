// The codec: one integer algorithm on float32 bits for every format, and vectorised versions for spans with the same
// bits as result (tests and `validate --full` compare them; numerics.md 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/formats/format.h"

namespace fp8lab {

// nearest: ties to even. stochastic: up with probability (x - lo) / (hi - lo) on the format's own grid.
// up: away from zero to the next value, e8m0 only (CUDA's cudaRoundPosInf).
enum class Rounding { nearest, toward_zero, stochastic, up };

// numerics.md 1.3. saturate: finite overflow and Inf become the largest finite value of that sign, in every format.
// nonsaturate: Inf where the format has one, else NaN, else (fp6, fp4, int8) the largest finite value.
enum class Overflow { saturate, nonsaturate };

Rounding parse_rounding(std::string_view text, std::string_view where = "--round");  // "toward-zero"
Overflow parse_overflow(std::string_view text, std::string_view where = "--overflow");
std::string_view to_string(Rounding);
std::string_view to_string(Overflow);
Overflow default_overflow(const FormatInfo& format);  // saturate up to 8 bits, nonsaturate above
Rounding default_rounding(const FormatInfo& format);  // nearest; up for e8m0
// The roundings that the format supports, the default first.
std::span<const Rounding> roundings(const FormatInfo& format);

// `random_bits`: 32 uniform bits for stochastic rounding, ignored otherwise. Throws usage_error when the format does not
// support the rounding (E8M0 has up and toward_zero, the others all but up). Stochastic rounding adds a uniform
// integer to the bits of the float32 significand that the format discards, then truncates (numerics.md 2). Below
// the smallest normal value more bits are discarded; of `random_bits` the highest are used, up to all 32.
// E8M0 takes |x|. NaN becomes the canonical NaN, the largest value in fp6/fp4, 0 in int8.
std::uint32_t encode(const FormatInfo& format, float value, Rounding rounding = Rounding::nearest,
                     Overflow overflow = Overflow::saturate, std::uint32_t random_bits = 0);
float decode(const FormatInfo& format, std::uint32_t code);

struct CastOptions {
    Rounding rounding = Rounding::nearest;
    Overflow overflow = Overflow::saturate;
    float scale = 1.0F;      // multiplies before the cast, in float32
    std::uint64_t seed = 0;  // stochastic: element i uses random_bits(seed, stream, first + i)
    std::uint64_t stream = 0, first = 0;
};

// Span versions. `codes` has as many elements as `values`; its type has storage_bytes(format) bytes. They run in the
// calling thread. Throw usage_error when the sizes differ or the type is not the format's.
void encode(const FormatInfo& format, std::span<const float> values, std::span<std::uint8_t> codes,
            const CastOptions& = {});
void encode(const FormatInfo& format, std::span<const float> values, std::span<std::uint16_t> codes,
            const CastOptions& = {});
void encode(const FormatInfo& format, std::span<const float> values, std::span<std::uint32_t> codes,
            const CastOptions& = {});
void decode(const FormatInfo& format, std::span<const std::uint8_t> codes, std::span<float> values);
void decode(const FormatInfo& format, std::span<const std::uint16_t> codes, std::span<float> values);
void decode(const FormatInfo& format, std::span<const std::uint32_t> codes, std::span<float> values);

// How often stochastic rounding takes the upper of the two codes next to a value. fraction[i] is (|x| - lower) / (upper -
// lower) of element i in units of 2^-32: counts[i] += 1 where fraction[i] + random[i] carries. The spans have one size.
void count_rounded_up(std::span<const std::uint32_t> fraction, std::span<const std::uint32_t> random,
                      std::span<std::uint32_t> counts);

// Quantises and dequantises in one pass: out[i] = decode(encode(in[i] * scale)) * scale_inv, scale_inv = 1 / scale rounded
// to float32 (numerics.md 3.3: one fixed order of operations). in and out may be the same memory.
void quantize(const FormatInfo& format, std::span<const float> in, std::span<float> out,
              const CastOptions& = {});

// The memory's ceiling for a cast of large arrays to one byte: what encode() reads and writes, in its order, without
// its arithmetic. `bench cast` measures it. out: as long as in, on a boundary of 64 bytes; else throws usage_error.
void read_4_write_1(std::span<const float> in, std::span<std::uint8_t> out);

// max |x|, NaN ignored as CUDA's fmaxf does; 0 for an empty span.
float amax(std::span<const float> values);

// The vector targets of this machine ("AVX3", "AVX2", ..., "SCALAR"), best first. Benches and tests can force one; an
// empty name selects the best again. force_vector_target() throws usage_error with the valid names.
std::span<const char* const> vector_targets();
void force_vector_target(std::string_view name);

}  // namespace fp8lab
