// Philox4x32-10, a counter-based generator: number k of a stream is a pure function of (seed, stream, k), so
// it depends neither on the number of threads, nor on the vector width, nor on the order of evaluation.
// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11, section 3.3.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fp8lab {

// Ten rounds; multipliers and Weyl constants from the paper's table.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c,
                                                  std::array<std::uint32_t, 2> k) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c[2];
        c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
             static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return c;
}

// The 32 random bits with number `index` in the stream (seed, stream). Four consecutive indices share one
// Philox block: counter = {index / 4 (low, high), stream (low, high)}, key = seed (low, high), word = index %
// 4.
constexpr std::uint32_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    const std::uint64_t block = index / 4;
    return philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                       static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)})[index % 4];
}

// out[i] = random_bits(seed, stream, first + i).
void random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::span<std::uint32_t> out);

// One stream, read sequentially.
class Rng {
  public:
    explicit Rng(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}
    std::uint32_t bits();                  // uniform 32-bit
    double uniform();                      // [0, 1), 53 bits
    std::uint32_t below(std::uint32_t n);  // [0, n), unbiased
    float normal();                        // N(0, 1), Box-Muller in float64 (normals.h)
    // sigma * normal() for every element, in parallel.
    void fill_normal(std::span<float> out, float sigma = 1.0F);
    void seek(std::uint64_t index);  // the next bits() are number `index` of the stream

  private:
    void make_block();  // the one that bit index_ is in

    std::uint64_t seed_, stream_, index_ = 0;
    std::array<std::uint32_t, 4> block_{};
    float spare_ = 0;
    bool has_spare_ = false;
};

}  // namespace fp8lab
