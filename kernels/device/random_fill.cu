#include "kernels/device/launching.cuh"
#include "kernels/device/random_fill.h"

namespace fp8lab::cuda {
namespace {

__device__ std::uint32_t mixed(std::uint64_t i, std::uint32_t seed) {  // the finalizer of MurmurHash3
    auto h = static_cast<std::uint32_t>(i ^ i >> 32) ^ seed * 0x9E3779B9u;
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    return h ^ h >> 16;
}

// One thread a 32-bit word. Exponents of the elements run over four to six binades around 1, all other bits
// are random.
__global__ void fill_kernel(std::uint32_t* out, std::size_t words, Element element, std::uint32_t seed) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
         i += stride) {
        const std::uint32_t h = mixed(i, seed), g = mixed(i, seed + 77);
        std::uint32_t word = 0;
        if (element == Element::f32) word = (h & 0x807FFFFFu) | (125u + g % 4) << 23;
        if (element == Element::bf16)
            word = (h & 0x807F807Fu) | (125u + g % 4) << 7 | (125u + (g >> 8) % 4) << 23;
        if (element == Element::e4m3)
            for (int b = 0; b < 4; ++b)
                word |= ((h >> (8 * b) & 0x87u) | (5u + (g >> (8 * b)) % 4) << 3) << (8 * b);
        if (element == Element::e5m2)
            for (int b = 0; b < 4; ++b)
                word |= ((h >> (8 * b) & 0x83u) | (13u + (g >> (8 * b)) % 4) << 2) << (8 * b);
        out[i] = word;
    }
}

// FP16: exponents over four binades around 1. Else every bit is random.
__global__ void fill_more_kernel(std::uint32_t* out, std::size_t words, bool fp16, std::uint32_t seed) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
         i += stride) {
        const std::uint32_t h = mixed(i, seed), g = mixed(i, seed + 77);
        out[i] = fp16 ? (h & 0x83FF83FFu) | (13u + g % 4) << 10 | (13u + (g >> 8) % 4) << 26 : h;
    }
}

void fill_more(void* out, std::size_t bytes, bool fp16, std::uint32_t seed, cudaStream_t stream) {
    launch_alone("fill_random", fill_more_kernel, dim3(132 * 8), 256, stream,
                 static_cast<std::uint32_t*>(out), bytes / 4, fp16, seed);
}

}  // namespace

void fill_random_fp16(void* out, std::size_t bytes, std::uint32_t seed, cudaStream_t stream) {
    fill_more(out, bytes, true, seed, stream);
}
void fill_random_bytes(void* out, std::size_t bytes, std::uint32_t seed, cudaStream_t stream) {
    fill_more(out, bytes, false, seed, stream);
}

void fill_random(void* out, Element element, std::size_t bytes, std::uint32_t seed, cudaStream_t stream) {
    launch_alone("fill_random", fill_kernel, dim3(132 * 8), 256, stream, static_cast<std::uint32_t*>(out),
                 bytes / 4, element, seed);
}

}  // namespace fp8lab::cuda
