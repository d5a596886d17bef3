// The vector kernels: the algorithm of codec.cpp over spans, compiled once for every vector target of the
// machine family (this file is included again by foreach_target.h) and chosen at run time.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/formats/codec_row.h"

// Vectors whose size is known at compile time only.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/formats/codec_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/formats/codec_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fp8lab::HWY_NAMESPACE {
// ---- Whole spans
// --------------------------------------------------------------------------------------------------

#if HWY_TARGET == HWY_SCALAR
void store_bytes(IntVec a, IntVec b, IntVec c, IntVec d, std::uint8_t* out) {
    for (const IntVec code : {a, b, c, d}) *out++ = static_cast<std::uint8_t>(hn::GetLane(code));
}
#else
// The order of the 32-bit lanes after store_bytes has transposed each 128-bit block.
constexpr std::array<std::int32_t, kLanes> lane_order() {
    std::array<std::int32_t, kLanes> order{};
    constexpr std::size_t kBlocks = kLanes / 4;
    for (std::size_t i = 0; i < kLanes; ++i)
        order[i] = static_cast<std::int32_t>(4 * (i % kBlocks) + i / kBlocks);
    return order;
}

// Four vectors of codes below 256 as bytes in order. Shifted together, byte k of lane i is element k * N + i;
// a 4x4 transposition of bytes within each 128-bit block and one permutation of lanes put them in order.
void store_bytes(IntVec a, IntVec b, IntVec c, IntVec d, std::uint8_t* out) {
    const hn::Repartition<std::uint8_t, Ints> d8;
    alignas(16) static constexpr std::uint8_t kTranspose[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                                2, 6, 10, 14, 3, 7, 11, 15};
    alignas(64) static constexpr std::array<std::int32_t, kLanes> kOrder = lane_order();
    const IntVec low = hn::Or(a, hn::ShiftLeft<8>(b)),
                 high = hn::Or(hn::ShiftLeft<16>(c), hn::ShiftLeft<24>(d));
    const auto transposed =
        hn::TableLookupBytes(hn::BitCast(d8, hn::Or(low, high)), hn::LoadDup128(d8, kTranspose));
    const IntVec ordered =
        hn::TableLookupLanes(hn::BitCast(Ints(), transposed), hn::SetTableIndices(Ints(), kOrder.data()));
    hn::StoreU(hn::BitCast(d8, ordered), d8, out);
}

#endif

template <Rounding R, class Code>
void encode_block(const CodecRow& row, float scale, const float* in, const std::uint32_t* random,
                  std::size_t index, Code* out) {
    const auto codes = [&](std::size_t k) {
        const FloatVec value = hn::Mul(hn::LoadU(Floats(), in + k * kLanes), hn::Set(Floats(), scale));
        return encode_lanes<R>(row, value, random, index + k * kLanes);
    };
    if constexpr (sizeof(Code) == 1) {
        store_bytes(codes(0), codes(1), codes(2), codes(3), out);
        return;
    }
    for (std::size_t k = 0; k < 4; ++k) {
        if constexpr (sizeof(Code) == 2) {
            const hn::Rebind<std::uint16_t, Ints> d16;
            hn::StoreU(hn::TruncateTo(d16, hn::BitCast(Bits(), codes(k))), d16, out + k * kLanes);
        }
        if constexpr (sizeof(Code) == 4) {
            hn::StoreU(hn::BitCast(Bits(), hn::ShiftLeftSame(codes(k), row.align)), Bits(), out + k * kLanes);
        }
    }
}

template <class Code>
void decode_block(const CodecRow& row, const Code* in, float* out) {
    for (std::size_t k = 0; k < 4; ++k) {
        const hn::Rebind<Code, Ints> d_code;
        const auto loaded = hn::LoadU(d_code, in + k * kLanes);
        IntVec code;
        if constexpr (sizeof(Code) == 4) {
            code = shift_right(hn::BitCast(Ints(), loaded), row.align);
        } else {
            code = hn::PromoteTo(Ints(), loaded);
        }
        hn::StoreU(decode_lanes(row, code), Floats(), out + k * kLanes);
    }
}

template <Rounding R>
void quantize_block(const CodecRow& row, float scale, float scale_inv, const float* in,
                    const std::uint32_t* random, std::size_t index, float* out) {
    for (std::size_t k = 0; k < 4; ++k) {
        const FloatVec value = hn::Mul(hn::LoadU(Floats(), in + k * kLanes), hn::Set(Floats(), scale));
        const FloatVec grid = decode_lanes(row, encode_lanes<R>(row, value, random, index + k * kLanes));
        hn::StoreU(hn::Mul(grid, hn::Set(Floats(), scale_inv)), Floats(), out + k * kLanes);
    }
}

// Calls block(in, index, out) for each whole block of four vectors; the rest goes through buffers of that
// size.
template <class In, class Out, class Block>
void for_blocks(const In* in, std::size_t count, Out* out, const Block& block) {
    constexpr std::size_t kStep = 4 * kLanes;
    std::size_t i = 0;
    for (; i + kStep <= count; i += kStep) block(in + i, i, out + i);
    if (i == count) return;
    alignas(64) In rest_in[kStep] = {};
    alignas(64) Out rest_out[kStep];
    std::memcpy(rest_in, in + i, (count - i) * sizeof(In));
    block(rest_in, i, rest_out);
    std::memcpy(out + i, rest_out, (count - i) * sizeof(Out));
}

// Runs chunk(begin, count, random) over the span, with random numbers where the rounding needs them.
template <Rounding R, class Chunk>
void for_chunks(const CastOptions& options, std::size_t count, const Chunk& chunk) {
    if constexpr (R != Rounding::stochastic) {
        chunk(0, count, nullptr);
        return;
    }
    alignas(64) RandomBuffer buffer{};
    for (std::size_t begin = 0; begin < count; begin += kChunk) {
        const std::size_t size = std::min(kChunk, count - begin);
        chunk(begin, size, fill_random(options, options.first + begin, size, buffer));
    }
}

// The rounding of the row as a template argument.
template <class Run>
void with_rounding(Rounding rounding, const Run& run) {
    switch (rounding) {
        case Rounding::nearest:
            return run(std::integral_constant<Rounding, Rounding::nearest>());
        case Rounding::toward_zero:
            return run(std::integral_constant<Rounding, Rounding::toward_zero>());
        case Rounding::stochastic:
            return run(std::integral_constant<Rounding, Rounding::stochastic>());
        case Rounding::up:
            return run(std::integral_constant<Rounding, Rounding::up>());
    }
}

// The row is copied so that the stores cannot alias it and its constants stay in registers.
template <class Code>
void encode_span(const CodecRow& format_row, const CastOptions& options, const float* in, std::size_t count,
                 Code* out) {
    with_rounding(format_row.rounding, [&](auto rounding) {
        const CodecRow row = format_row;
        const float scale = options.scale;
        for_chunks<rounding()>(
            options, count, [&](std::size_t begin, std::size_t size, const std::uint32_t* random) {
                for_blocks(in + begin, size, out + begin,
                           [&](const float* from, std::size_t index, Code* to) {
                               encode_block<rounding()>(row, scale, from, random, index, to);
                           });
            });
    });
}

template <class Code>
void decode_span(const CodecRow& format_row, const Code* in, std::size_t count, float* out) {
    const CodecRow row = format_row;
    for_blocks(in, count, out,
               [&](const Code* from, std::size_t, float* to) { decode_block(row, from, to); });
}

void quantize_span(const CodecRow& format_row, const CastOptions& options, const float* in, std::size_t count,
                   float* out) {
    with_rounding(format_row.rounding, [&](auto rounding) {
        const CodecRow row = format_row;
        const float scale = options.scale, scale_inv = 1.0F / options.scale;
        for_chunks<rounding()>(
            options, count, [&](std::size_t begin, std::size_t size, const std::uint32_t* random) {
                for_blocks(in + begin, size, out + begin,
                           [&](const float* from, std::size_t index, float* to) {
                               quantize_block<rounding()>(row, scale, scale_inv, from, random, index, to);
                           });
            });
    });
}

// Four chains of maxima, so that none waits for the other.
float amax_span(const float* in, std::size_t count) {
    const auto magnitude = [&](const float* from) {
        const IntVec pattern = hn::And(hn::BitCast(Ints(), hn::LoadU(Floats(), from)), constant(0x7FFFFFFF));
        return hn::IfThenZeroElse(hn::Gt(pattern, constant(0x7F800000)), pattern);
    };
    IntVec a = hn::Zero(Ints()), b = a, c = a, d = a;
    std::size_t i = 0;
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
        a = hn::Max(a, magnitude(in + i));
        b = hn::Max(b, magnitude(in + i + kLanes));
        c = hn::Max(c, magnitude(in + i + 2 * kLanes));
        d = hn::Max(d, magnitude(in + i + 3 * kLanes));
    }
    alignas(64) float rest[kLanes];
    for (; i < count; i += kLanes) {
        std::fill(std::begin(rest), std::end(rest), 0.0F);
        std::memcpy(rest, in + i, std::min(kLanes, count - i) * sizeof(float));
        a = hn::Max(a, magnitude(rest));
    }
    const IntVec most = hn::MaxOfLanes(Ints(), hn::Max(hn::Max(a, b), hn::Max(c, d)));
    return hn::GetLane(hn::BitCast(Floats(), most));
}

void encode_8(const CodecRow& row, const CastOptions& options, const float* in, std::size_t count,
              std::uint8_t* out) {
    encode_span(row, options, in, count, out);
}
void encode_16(const CodecRow& row, const CastOptions& options, const float* in, std::size_t count,
               std::uint16_t* out) {
    encode_span(row, options, in, count, out);
}
void encode_32(const CodecRow& row, const CastOptions& options, const float* in, std::size_t count,
               std::uint32_t* out) {
    encode_span(row, options, in, count, out);
}
void decode_8(const CodecRow& row, const std::uint8_t* in, std::size_t count, float* out) {
    decode_span(row, in, count, out);
}
void decode_16(const CodecRow& row, const std::uint16_t* in, std::size_t count, float* out) {
    decode_span(row, in, count, out);
}
void decode_32(const CodecRow& row, const std::uint32_t* in, std::size_t count, float* out) {
    decode_span(row, in, count, out);
}

}  // namespace fp8lab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fp8lab {
namespace {

HWY_EXPORT(encode_8);
HWY_EXPORT(encode_16);
HWY_EXPORT(encode_32);
HWY_EXPORT(decode_8);
HWY_EXPORT(decode_16);
HWY_EXPORT(decode_32);
HWY_EXPORT(quantize_span);
HWY_EXPORT(amax_span);

// A format that discards nothing (FP32) has nothing to round, and the nearest kernel has no half to add.
CodecRow vector_row(const FormatInfo& format, const CastOptions& options) {
    CodecRow row = make_row(format, options.rounding, options.overflow);
    if (row.discard == 0) row.rounding = Rounding::toward_zero;
    return row;
}

void check(const FormatInfo& format, std::size_t values, std::size_t codes, std::size_t code_bytes) {
    const auto name = std::string(format.name);
    if (static_cast<std::size_t>(storage_bytes(format)) != code_bytes) {
        throw usage_error("cast", name + " codes are stored in " + std::to_string(storage_bytes(format)) +
                                      " bytes, not " + std::to_string(code_bytes));
    }
    if (values != codes) {
        throw usage_error(
            "cast", std::to_string(values) + " values but room for " + std::to_string(codes) + " codes");
    }
}

}  // namespace

void encode(const FormatInfo& format, std::span<const float> values, std::span<std::uint8_t> codes,
            const CastOptions& options) {
    check(format, values.size(), codes.size(), sizeof codes[0]);
    HWY_DYNAMIC_DISPATCH(encode_8)
    (vector_row(format, options), options, values.data(), values.size(), codes.data());
}
void encode(const FormatInfo& format, std::span<const float> values, std::span<std::uint16_t> codes,
            const CastOptions& options) {
    check(format, values.size(), codes.size(), sizeof codes[0]);
    HWY_DYNAMIC_DISPATCH(encode_16)
    (vector_row(format, options), options, values.data(), values.size(), codes.data());
}
void encode(const FormatInfo& format, std::span<const float> values, std::span<std::uint32_t> codes,
            const CastOptions& options) {
    check(format, values.size(), codes.size(), sizeof codes[0]);
    HWY_DYNAMIC_DISPATCH(encode_32)
    (vector_row(format, options), options, values.data(), values.size(), codes.data());
}

void decode(const FormatInfo& format, std::span<const std::uint8_t> codes, std::span<float> values) {
    check(format, values.size(), codes.size(), sizeof codes[0]);
    HWY_DYNAMIC_DISPATCH(decode_8)
    (make_row(format, default_rounding(format), Overflow::saturate), codes.data(), codes.size(),
     values.data());
}
void decode(const FormatInfo& format, std::span<const std::uint16_t> codes, std::span<float> values) {
    check(format, values.size(), codes.size(), sizeof codes[0]);
    HWY_DYNAMIC_DISPATCH(decode_16)
    (make_row(format, default_rounding(format), Overflow::saturate), codes.data(), codes.size(),
     values.data());
}
void decode(const FormatInfo& format, std::span<const std::uint32_t> codes, std::span<float> values) {
    check(format, values.size(), codes.size(), sizeof codes[0]);
    HWY_DYNAMIC_DISPATCH(decode_32)
    (make_row(format, default_rounding(format), Overflow::saturate), codes.data(), codes.size(),
     values.data());
}

void quantize(const FormatInfo& format, std::span<const float> in, std::span<float> out,
              const CastOptions& options) {
    if (in.size() != out.size()) throw usage_error("quantize", "in and out differ in size");
    HWY_DYNAMIC_DISPATCH(quantize_span)
    (vector_row(format, options), options, in.data(), in.size(), out.data());
}

float amax(std::span<const float> values) {
    return HWY_DYNAMIC_DISPATCH(amax_span)(values.data(), values.size());
}

std::span<const char* const> vector_targets() {
    static const std::vector<const char*> names = [] {
        std::vector<const char*> found;
        for (const std::int64_t target : hwy::SupportedAndGeneratedTargets())
            found.push_back(hwy::TargetName(target));
        return found;
    }();
    return names;
}

void force_vector_target(std::string_view name) {
    vector_targets();  // the machine's own list, before it is restricted
    hwy::SetSupportedTargetsForTest(0);
    std::int64_t chosen = 0;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        if (name == hwy::TargetName(target)) chosen = target;
    }
    if (!name.empty() && chosen == 0) {
        throw unknown_name("vector target", "target", name, vector_targets(),
                           [](const char* n) { return n; });
    }
    hwy::SetSupportedTargetsForTest(chosen);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace fp8lab
#endif  // HWY_ONCE
