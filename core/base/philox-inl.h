// Internal to the files of vector kernels: Philox4x32-10 (rng.h), one block per 64-bit lane. Included once for every
// vector target.
#include <cstdint>

#include "core/base/rng.h"

#if defined(FP8LAB_PHILOX_LANES) == defined(HWY_TARGET_TOGGLE)  // Highway's include guard per target
#ifdef FP8LAB_PHILOX_LANES
#undef FP8LAB_PHILOX_LANES
#else
#define FP8LAB_PHILOX_LANES
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fp8lab::HWY_NAMESPACE {

using PhiloxWords = hwy::HWY_NAMESPACE::ScalableTag<std::uint64_t>;
using PhiloxVec = hwy::HWY_NAMESPACE::Vec<PhiloxWords>;

struct PhiloxBlock {
    PhiloxVec w0, w1, w2,
        w3;  // the words are the lower halves; the upper ones carry rubbish, which MulEven does not see
};

// Blocks `first`, first + 1, ... of the stream.
HWY_INLINE PhiloxBlock philox_lanes(std::uint64_t seed, std::uint64_t stream, std::uint64_t first) {
    namespace hn = hwy::HWY_NAMESPACE;
    const PhiloxWords d64;
#if HWY_TARGET == HWY_SCALAR  // one lane is no room for the two halves of a product
    const auto word = [&](std::uint64_t i) HWY_ATTR {
        return hn::Set(d64, std::uint64_t{random_bits(seed, stream, 4 * first + i)});
    };
    return {word(0), word(1), word(2), word(3)};
#else
    const hn::Repartition<std::uint32_t, PhiloxWords> d32;
    const auto multiply = [&](PhiloxVec v, std::uint32_t by)
                              HWY_ATTR { return hn::MulEven(hn::BitCast(d32, v), hn::Set(d32, by)); };
    PhiloxVec c0 = hn::Iota(d64, first), c1 = hn::ShiftRight<32>(c0);
    PhiloxVec c2 = hn::Set(d64, stream), c3 = hn::Set(d64, stream >> 32);
    auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const PhiloxVec a = multiply(c0, 0xD2511F53), b = multiply(c2, 0xCD9E8D57);
        c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), c1), hn::Set(d64, k0));
        c1 = b;
        c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), c3), hn::Set(d64, k1));
        c3 = a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    return {c0, c1, c2, c3};
#endif
}

// The numbers of `blocks` blocks from `first` on, in order. Writes whole vectors: `out` has room for
// kPhiloxExcess numbers more.
constexpr std::size_t kPhiloxExcess = 4 * hwy::HWY_NAMESPACE::MaxLanes(PhiloxWords());
HWY_INLINE void philox_numbers(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                               std::size_t blocks, std::uint32_t* out) {
#if HWY_TARGET == HWY_SCALAR
    for (std::size_t i = 0; i < 4 * blocks; ++i) out[i] = random_bits(seed, stream, 4 * first + i);
#else
    namespace hn = hwy::HWY_NAMESPACE;
    const PhiloxWords d64;
    const std::size_t step = hn::Lanes(d64);
    auto* to = reinterpret_cast<std::uint64_t*>(out);
    const auto low = hn::Set(d64, 0xFFFFFFFF);
    for (std::uint64_t block = 0; block < blocks; block += step, to += 2 * step) {
        const PhiloxBlock words = philox_lanes(seed, stream, first + block);
        hn::StoreInterleaved2(hn::Or(hn::And(words.w0, low), hn::ShiftLeft<32>(words.w1)),
                              hn::Or(hn::And(words.w2, low), hn::ShiftLeft<32>(words.w3)), d64, to);
    }
#endif
}

}  // namespace fp8lab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
