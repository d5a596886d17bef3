// NVIDIA's host functions as the oracle: every edge, and random bit patterns. Needs the CUDA headers only, no
// GPU.
#include <doctest/doctest.h>

#include <bit>
#include <vector>

#include "core/base/rng.h"
#include "core/formats/codec.h"
#include "core/formats/golden.h"

#if __has_include(<cuda_fp8.h>) && __has_include(<cuda_fp6.h>) && __has_include(<cuda_fp4.h>)
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

using namespace fp8lab;

namespace {

struct Oracle {
    const char* format;
    Rounding rounding;
    Overflow overflow;
    std::uint32_t (*encode)(float);
};

constexpr Rounding kNearest = Rounding::nearest, kZero = Rounding::toward_zero, kUp = Rounding::up;
constexpr Overflow kSaturate = Overflow::saturate, kNonsaturate = Overflow::nonsaturate;

const Oracle kOracles[] = {
    {"e4m3", kNearest, kSaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }},
    {"e4m3", kNearest, kNonsaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3); }},
    {"e5m2", kNearest, kSaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2); }},
    {"e5m2", kNearest, kNonsaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2); }},
    {"e3m2", kNearest, kSaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest); }},
    {"e2m3", kNearest, kSaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest); }},
    {"e2m1", kNearest, kSaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); }},
    {"e8m0", kUp, kSaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf); }},
    {"e8m0", kUp, kNonsaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cudaRoundPosInf); }},
    {"e8m0", kZero, kSaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero); }},
    {"e8m0", kZero, kNonsaturate,
     [](float x) -> std::uint32_t { return __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cudaRoundZero); }},
    {"bf16", kNearest, kNonsaturate,
     [](float x) -> std::uint32_t { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }},
    {"fp16", kNearest, kNonsaturate,
     [](float x) -> std::uint32_t { return __half_as_ushort(__float2half_rn(x)); }},
    {"bf16", kZero, kNonsaturate,
     [](float x) -> std::uint32_t { return __bfloat16_as_ushort(__float2bfloat16_rz(x)); }},
    {"fp16", kZero, kNonsaturate,
     [](float x) -> std::uint32_t { return __half_as_ushort(__float2half_rz(x)); }},
};

}  // namespace

TEST_CASE("every edge and a million random patterns give NVIDIA's codes") {
    std::vector<float> values;
    for (const GoldenTable::Row& row : golden_edges().rows) values.push_back(std::bit_cast<float>(row.key));
    Rng rng(11);
    for (int i = 0; i < 1'000'000; ++i) values.push_back(std::bit_cast<float>(rng.bits()));
    for (int i = 0; i < 100'000; ++i) values.push_back(rng.normal());
    for (const Oracle& oracle : kOracles) {
        CAPTURE(oracle.format);
        CAPTURE(to_string(oracle.rounding));
        CAPTURE(to_string(oracle.overflow));
        const FormatInfo& format = find_format(oracle.format);
        for (const float x : values) {
            const std::uint32_t ours = encode(format, x, oracle.rounding, oracle.overflow),
                                theirs = oracle.encode(x);
            if (ours == theirs) continue;
            CAPTURE(x);
            REQUIRE(ours == theirs);
        }
    }
}

TEST_CASE("every fp8 code decodes to NVIDIA's value") {
    for (std::uint32_t code = 0; code < 256; ++code) {
        CAPTURE(code);
        const auto storage = static_cast<__nv_fp8_storage_t>(code);
        for (const auto kind : {__NV_E4M3, __NV_E5M2}) {
            const float theirs = __half2float(__half(__nv_cvt_fp8_to_halfraw(storage, kind)));
            const float ours = decode(find_format(kind == __NV_E4M3 ? "e4m3" : "e5m2"), code);
            CHECK((ours == theirs || (ours != ours && theirs != theirs)));
        }
    }
}

#else

TEST_CASE("NVIDIA's host functions as oracle: skipped") {
    MESSAGE(
        "skipped: cuda_fp8.h, cuda_fp6.h and cuda_fp4.h are not on this machine; install the CUDA headers to "
        "compare");
}

#endif
