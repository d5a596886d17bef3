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
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/formats/codec_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fp8lab::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
template <bool kStream>
HWY_INLINE void store_bytes(IntVec a, IntVec b, IntVec c, IntVec d, std::uint8_t* out) {
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
// kStream: around the caches, to an aligned address.
template <bool kStream>
HWY_INLINE void store_bytes(IntVec a, IntVec b, IntVec c, IntVec d, std::uint8_t* out) {
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
    if constexpr (kStream) {
        hn::Stream(hn::BitCast(d8, ordered), d8, out);
    } else {
        hn::StoreU(hn::BitCast(d8, ordered), d8, out);
    }
}

#endif

// One block is four vectors. Each kind of work is an object whose members are copies, so that what it stores
// cannot alias them and the constants stay in registers.
constexpr std::size_t kBlock = 4 * kLanes;

template <Kernel K, bool kSignMagnitude, bool kStream, class Code>
struct EncodeBlock {
    static constexpr Kernel kKernel = K;
    CodecRow row;
    float scale;
    const std::uint32_t* random;

    HWY_INLINE IntVec codes(const float* in, std::size_t index) const {
        const FloatVec value = hn::Mul(hn::LoadU(Floats(), in), hn::Set(Floats(), scale));
        return encode_lanes<K, kSignMagnitude>(row, value, random, index);
    }
    HWY_INLINE void operator()(const float* in, std::size_t index, Code* out) const {
        const IntVec a = codes(in, index), b = codes(in + kLanes, index + kLanes);
        const IntVec c = codes(in + 2 * kLanes, index + 2 * kLanes),
                     d = codes(in + 3 * kLanes, index + 3 * kLanes);
        if constexpr (sizeof(Code) == 1) {
            store_bytes<kStream>(a, b, c, d, out);
        } else {
            store(a, out);
            store(b, out + kLanes);
            store(c, out + 2 * kLanes);
            store(d, out + 3 * kLanes);
        }
    }
    HWY_INLINE void store(IntVec code, std::uint16_t* out) const {
        const hn::Rebind<std::uint16_t, Ints> d16;
        hn::StoreU(hn::TruncateTo(d16, hn::BitCast(Bits(), code)), d16, out);
    }
    HWY_INLINE void store(IntVec code, std::uint32_t* out) const {
        hn::StoreU(hn::BitCast(Bits(), hn::ShiftLeftSame(code, row.align)), Bits(), out);
    }
};

template <bool kSignMagnitude>
struct DecodeBlock {
    CodecRow row;

    template <class Code>
    HWY_INLINE void operator()(const Code* in, std::size_t, float* out) const {
        for (std::size_t k = 0; k < kBlock; k += kLanes) {
            hn::StoreU(decode_lanes<kSignMagnitude>(row, load(in + k)), Floats(), out + k);
        }
    }
    template <class Code>
    HWY_INLINE IntVec load(const Code* in) const {
        return hn::PromoteTo(Ints(), hn::LoadU(hn::Rebind<Code, Ints>(), in));
    }
    HWY_INLINE IntVec load(const std::uint32_t* in) const {
        return shift_right(hn::BitCast(Ints(), hn::LoadU(Bits(), in)), row.align);
    }
};

template <Kernel K, bool kSignMagnitude>
struct QuantizeBlock {
    static constexpr Kernel kKernel = K;
    CodecRow row;
    float scale, scale_inv;
    const std::uint32_t* random;

    HWY_INLINE void operator()(const float* in, std::size_t index, float* out) const {
        for (std::size_t k = 0; k < kBlock; k += kLanes) {
            const FloatVec value = hn::Mul(hn::LoadU(Floats(), in + k), hn::Set(Floats(), scale));
            const FloatVec grid = decode_lanes<kSignMagnitude>(
                row, encode_lanes<K, kSignMagnitude>(row, value, random, index + k));
            hn::StoreU(hn::Mul(grid, hn::Set(Floats(), scale_inv)), Floats(), out + k);
        }
    }
};

// Calls work(in, index, out) for each whole block; the rest goes through buffers of that size.
template <class In, class Out, class Work>
HWY_INLINE void for_blocks(const In* in, std::size_t count, Out* out, const Work work) {
    std::size_t i = 0;
    for (; i + kBlock <= count; i += kBlock) work(in + i, i, out + i);
    if (i == count) return;
    alignas(64) In rest_in[kBlock] = {};
    alignas(64) Out rest_out[kBlock];
    std::memcpy(rest_in, in + i, (count - i) * sizeof(In));
    work(rest_in, i, rest_out);
    std::memcpy(out + i, rest_out, (count - i) * sizeof(Out));
}

// The same with random numbers, a buffer of them at a time, where the rounding needs them.
template <class Out, class Work>
void for_rounded_blocks(const CastOptions& options, const float* in, std::size_t count, Out* out, Work work) {
    if constexpr (Work::kKernel != Kernel::stochastic) {
        for_blocks(in, count, out, work);
    } else {
        alignas(64) RandomBuffer buffer{};
        for (std::size_t begin = 0; begin < count; begin += kChunk) {
            const std::size_t size = std::min(kChunk, count - begin);
            work.random = fill_random(options, options.first + begin, size, buffer);
            for_blocks(in + begin, size, out + begin, work);
        }
    }
}

// Calls run.operator()<kernel, sign and magnitude>() with what the row says.
template <class Run>
void with_constants(const CodecRow& row, const Run& run) {
    const auto with_sign = [&]<Kernel K>() {
        if (row.sign_rule == SignRule::sign_magnitude) return run.template operator()<K, true>();
        return run.template operator()<K, false>();
    };
    switch (row.kernel) {
        case Kernel::nearest_narrow:
            return with_sign.template operator()<Kernel::nearest_narrow>();
        case Kernel::nearest:
            return with_sign.template operator()<Kernel::nearest>();
        case Kernel::toward_zero:
            return with_sign.template operator()<Kernel::toward_zero>();
        case Kernel::stochastic:
            return with_sign.template operator()<Kernel::stochastic>();
        case Kernel::up:
            return run.template operator()<Kernel::up, false>();
    }
}

// The same in another order, for arrays beyond the caches: a cache line of codes from each of several pages in
// turn, and the next pages on their way. A processor fetches ahead within a page only, so that one page at a time
// keeps few loads in flight. One thread of an Intel Xeon (family 6, model 143, AVX-512; 2026-11-22), against a memcpy
// of as many bytes: reading 4 bytes and writing 1 takes 1.5 times as long page by page, 1.2 times with two pages in
// turn, as long with 4 or 8; the cast to E4M3 2.1 times page by page, 1.3 with 8, 1.2 with the next 8 fetched.
constexpr std::size_t kLine = 64, kPage = 4096 / sizeof(float), kPages = 8;
static_assert(kLine % kBlock == 0);

template <class Work>
HWY_INLINE void for_pages(const float* in, std::size_t count, std::uint8_t* out, const Work work) {
    constexpr std::size_t kGroup = kPages * kPage;
    std::size_t begin = 0;
    for (; begin + kGroup <= count; begin += kGroup)
        for (std::size_t line = begin; line < begin + kPage; line += kLine)
            for (std::size_t page = line; page < line + kGroup; page += kPage) {
                for (std::size_t i = 0; i < kLine; i += 64 / sizeof(float))
                    hwy::Prefetch(in + page + kGroup + i);  // a hint: it may be beyond the end
                for (std::size_t i = page; i < page + kLine; i += kBlock) work(in + i, i, out + i);
            }
    for_blocks(in + begin, count - begin, out + begin, work);
}

// From this many bytes of output on, bytes are stored around the caches: they would not stay there, and the
// memory would be read before it is written. memcpy of the C library does the same.
constexpr std::size_t kStreamFrom = std::size_t{8} << 20;

template <class Code>
void encode_span(const CodecRow& row, const CastOptions& options, const float* in, std::size_t count,
                 Code* out) {
    with_constants(row, [&]<Kernel K, bool kSignMagnitude>() {
        for_rounded_blocks(options, in, count, out,
                           EncodeBlock<K, kSignMagnitude, false, Code>{row, options.scale, nullptr});
    });
}

// Only for casts without random numbers, since those take longer than the stores.
void stream_bytes(const CodecRow& row, const CastOptions& options, const float* in, std::size_t count,
                  std::uint8_t* out) {
    const std::size_t head = -reinterpret_cast<std::uintptr_t>(out) % kLine;
    const std::size_t body = (count - head) / kLine * kLine;
    encode_span(row, options, in, head, out);
    with_constants(row, [&]<Kernel K, bool kSignMagnitude>() {
        if constexpr (K != Kernel::stochastic) {
            for_pages(in + head, body, out + head,
                      EncodeBlock<K, kSignMagnitude, true, std::uint8_t>{row, options.scale, nullptr});
        }
    });
    hwy::FlushStream();
    encode_span(row, options, in + head + body, count - head - body, out + head + body);
}

template <class Code>
void decode_span(const CodecRow& row, const Code* in, std::size_t count, float* out) {
    if (row.sign_rule == SignRule::sign_magnitude) {
        for_blocks(in, count, out, DecodeBlock<true>{row});
    } else {
        for_blocks(in, count, out, DecodeBlock<false>{row});
    }
}

void quantize_span(const CodecRow& row, const CastOptions& options, const float* in, std::size_t count,
                   float* out) {
    with_constants(row, [&]<Kernel K, bool kSignMagnitude>() {
        for_rounded_blocks(
            options, in, count, out,
            QuantizeBlock<K, kSignMagnitude>{row, options.scale, 1.0F / options.scale, nullptr});
    });
}

// What a cast reads and writes, without its arithmetic.
struct MoveBlock {
    HWY_INLINE void operator()(const float* in, std::size_t, std::uint8_t* out) const {
        const auto at = [&](std::size_t i) HWY_ATTR {
            return hn::LoadU(Ints(), reinterpret_cast<const std::int32_t*>(in + i * kLanes));
        };
#if HWY_TARGET == HWY_SCALAR
        store_bytes<true>(at(0), at(1), at(2), at(3), out);
#else
        const hn::Repartition<std::uint8_t, Ints> d8;
        hn::Stream(hn::BitCast(d8, hn::Or(hn::Or(at(0), at(1)), hn::Or(at(2), at(3)))), d8, out);
#endif
    }
};

void read_4_write_1_span(const float* in, std::size_t count, std::uint8_t* out) {
    for_pages(in, count, out, MoveBlock());
    hwy::FlushStream();
}

HWY_INLINE IntVec magnitude(const float* from) {
    const IntVec pattern = hn::And(hn::BitCast(Ints(), hn::LoadU(Floats(), from)), constant(0x7FFFFFFF));
    return hn::IfThenZeroElse(hn::Gt(pattern, constant(0x7F800000)), pattern);
}

// Four chains of maxima, so that none waits for the other.
float amax_span(const float* in, std::size_t count) {
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
    if (count >= kStreamFrom && row.kernel != Kernel::stochastic)
        return stream_bytes(row, options, in, count, out);
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
HWY_EXPORT(read_4_write_1_span);

void check(const FormatInfo& format, std::size_t values, std::size_t codes, std::size_t code_bytes) {
    if (static_cast<std::size_t>(storage_bytes(format)) != code_bytes) {
        throw usage_error("cast", std::string(format.name) + " codes take " +
                                      std::to_string(storage_bytes(format)) + " byte(s) each, not " +
                                      std::to_string(code_bytes));
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
    (make_row(format, options.rounding, options.overflow), options, values.data(), values.size(),
     codes.data());
}
void encode(const FormatInfo& format, std::span<const float> values, std::span<std::uint16_t> codes,
            const CastOptions& options) {
    check(format, values.size(), codes.size(), sizeof codes[0]);
    HWY_DYNAMIC_DISPATCH(encode_16)
    (make_row(format, options.rounding, options.overflow), options, values.data(), values.size(),
     codes.data());
}
void encode(const FormatInfo& format, std::span<const float> values, std::span<std::uint32_t> codes,
            const CastOptions& options) {
    check(format, values.size(), codes.size(), sizeof codes[0]);
    HWY_DYNAMIC_DISPATCH(encode_32)
    (make_row(format, options.rounding, options.overflow), options, values.data(), values.size(),
     codes.data());
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
    (make_row(format, options.rounding, options.overflow), options, in.data(), in.size(), out.data());
}

float amax(std::span<const float> values) {
    return HWY_DYNAMIC_DISPATCH(amax_span)(values.data(), values.size());
}

void read_4_write_1(std::span<const float> in, std::span<std::uint8_t> out) {
    if (in.size() != out.size() || reinterpret_cast<std::uintptr_t>(out.data()) % 64 != 0)
        throw usage_error("read_4_write_1",
                          "in and out are of one size, and out is on a boundary of 64 bytes");
    HWY_DYNAMIC_DISPATCH(read_4_write_1_span)(in.data(), in.size(), out.data());
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
