// random_bits() of rng.h, and normals.h. Compiled once for every vector target of the machine family (this file is
// included again by foreach_target.h) and chosen at run time.
#include <algorithm>
#include <numbers>

#include "core/base/normals.h"
#include "core/base/rng.h"

// Vectors whose size is known at compile time only.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/base/normals_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// Headers for one target each:
#include <hwy/contrib/math/math-inl.h>

#include "core/base/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fp8lab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Halves = hn::Rebind<float, Doubles>;
using DoubleVec = hn::Vec<Doubles>;
constexpr std::size_t kPairs = hn::MaxLanes(Doubles());

struct Pair {
    hn::Vec<Halves> cosine, sine;
};

HWY_INLINE Pair box_muller(DoubleVec u, DoubleVec v) {
    const Doubles d;
    const DoubleVec radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0), hn::Log(d, u)));
    const DoubleVec angle = hn::Mul(hn::Set(d, 2.0 * std::numbers::pi), v);
    return {hn::DemoteTo(Halves(), hn::Mul(radius, hn::Cos(d, angle))),
            hn::DemoteTo(Halves(), hn::Mul(radius, hn::Sin(d, angle)))};
}

// 53 bits of two words, as Rng::uniform(). The words are the lower halves; a number below 2^52 becomes a double by
// the exponent of 2^52 above it.
HWY_INLINE DoubleVec uniform(PhiloxVec high, PhiloxVec low) {
    const Doubles d;
    const PhiloxWords w;
    const auto number = [&](PhiloxVec bits) HWY_ATTR {
        const PhiloxVec exponent = hn::Set(w, 0x4330000000000000);
        return hn::Sub(hn::BitCast(d, hn::Or(bits, exponent)), hn::Set(d, 0x1p52));
    };
    const PhiloxVec word = hn::Set(w, 0xFFFFFFFF);
    const DoubleVec upper = number(hn::ShiftRight<5>(hn::And(high, word)));
    const DoubleVec lower = number(hn::ShiftRight<6>(hn::And(low, word)));
    return hn::Mul(hn::Add(hn::Mul(upper, hn::Set(d, 0x1p26)), lower), hn::Set(d, 0x1p-53));
}

void pairs(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, float* out, std::size_t count,
           float sigma) {
    const Doubles d;
    const Halves f;
    const auto factor = hn::Set(f, sigma);
    alignas(64) float rest[2 * kPairs];
    for (std::size_t i = 0; i < count; i += kPairs) {
        const PhiloxBlock block = philox_lanes(seed, stream, first + i);
        const DoubleVec u = hn::Sub(hn::Set(d, 1.0), uniform(block.w0, block.w1));
        const Pair pair = box_muller(u, uniform(block.w2, block.w3));
        const bool whole = i + kPairs <= count;
        float* const to = whole ? out + 2 * i : rest;
        hn::StoreInterleaved2(hn::Mul(factor, pair.cosine), hn::Mul(factor, pair.sine), f, to);
        if (!whole) std::copy_n(rest, 2 * (count - i), out + 2 * i);
    }
}

// Works in pieces that stay in the first-level cache: a start in the middle of a block, and the last vector's excess,
// need a buffer.
void numbers(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::uint32_t* out,
             std::size_t count) {
    constexpr std::size_t kPiece = 1024;
    alignas(64) std::array<std::uint32_t, kPiece + kPhiloxExcess> buffer;
    while (count > 0) {
        const std::size_t skipped = first % 4, size = std::min(count, kPiece - skipped);
        philox_numbers(seed, stream, first / 4, (skipped + size + 3) / 4, buffer.data());
        std::copy_n(buffer.data() + skipped, size, out);
        first += size, out += size, count -= size;
    }
}

void one_pair(double u, double v, float* out) {
    const Doubles d;
    const Pair pair = box_muller(hn::Set(d, u), hn::Set(d, v));
    out[0] = hn::GetLane(pair.cosine), out[1] = hn::GetLane(pair.sine);
}

}  // namespace fp8lab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fp8lab {
namespace {

HWY_EXPORT(pairs);
HWY_EXPORT(one_pair);
HWY_EXPORT(numbers);

}  // namespace

void normal_pairs(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::span<float> out,
                  float sigma) {
    HWY_DYNAMIC_DISPATCH(pairs)(seed, stream, first, out.data(), out.size() / 2, sigma);
}

void random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                 std::span<std::uint32_t> out) {
    HWY_DYNAMIC_DISPATCH(numbers)(seed, stream, first, out.data(), out.size());
}

std::array<float, 2> normal_pair(double u, double v) {
    std::array<float, 2> out;
    HWY_DYNAMIC_DISPATCH(one_pair)(u, v, out.data());
    return out;
}

}  // namespace fp8lab
#endif
