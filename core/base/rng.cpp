#include "core/base/rng.h"

#include <cmath>
#include <numbers>

#include "core/threads/parallel.h"

namespace fp8lab {

std::uint32_t Rng::bits() {
    if (index_ % 4 == 0) make_block();
    return block_[index_++ % 4];
}

void Rng::make_block() {
    const std::uint64_t block = index_ / 4;
    block_ = philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                         static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                        {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
}

void Rng::seek(std::uint64_t index) {
    index_ = index;
    has_spare_ = false;
    if (index_ % 4 != 0) make_block();
}

double Rng::uniform() {
    const std::uint64_t high = bits() >> 5, low = bits() >> 6;  // 27 + 26 = 53 bits
    return static_cast<double>(high << 26 | low) * 0x1p-53;
}

std::uint32_t Rng::below(std::uint32_t n) {
    // Rejecting the incomplete last range keeps the remainder unbiased.
    const std::uint32_t limit = 0xFFFFFFFFu - (0xFFFFFFFFu % n + 1) % n;
    std::uint32_t x = bits();
    while (x > limit) x = bits();
    return x % n;
}

float Rng::normal() {
    if (has_spare_) {
        has_spare_ = false;
        return static_cast<float>(spare_);
    }
    const double u = 1.0 - uniform(), v = uniform();  // u in (0, 1]: the logarithm is finite
    const double radius = std::sqrt(-2.0 * std::log(u)), angle = 2.0 * std::numbers::pi * v;
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return static_cast<float>(radius * std::cos(angle));
}

void Rng::fill_normal(std::span<float> out, float sigma) {
    if (has_spare_ && !out.empty()) {
        out.front() = sigma * normal();
        out = out.subspan(1);
    }
    // A pair takes four words: the place of each in the stream is known without those before it.
    constexpr std::size_t kWords = 4, kGrain = 4096;
    const std::size_t pairs = out.size() / 2;
    parallel_for(pairs, kGrain, [&](std::size_t begin, std::size_t end) {
        Rng part(seed_, stream_);
        part.seek(index_ + kWords * begin);
        for (std::size_t i = 2 * begin; i < 2 * end; ++i) out[i] = sigma * part.normal();
    });
    if (pairs > 0) seek(index_ + kWords * pairs);
    if (out.size() % 2 != 0) out.back() = sigma * normal();
}

}  // namespace fp8lab
