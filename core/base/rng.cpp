#include "core/base/rng.h"

#include "core/base/normals.h"
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
        return spare_;
    }
    const double u = 1.0 - uniform(), v = uniform();  // u in (0, 1]: the logarithm is finite
    const auto [cosine, sine] = normal_pair(u, v);
    spare_ = sine;
    has_spare_ = true;
    return cosine;
}

void Rng::fill_normal(std::span<float> out, float sigma) {
    if (has_spare_ && !out.empty()) {
        out.front() = sigma * normal();
        out = out.subspan(1);
    }
    constexpr std::size_t kWords = 4, kGrain = 4096;  // words of a pair and of a block
    const std::size_t pairs = out.size() / 2;
    if (index_ % kWords == 0) {
        // A pair is a block: its place in the stream is known without those before it.
        parallel_for(pairs, kGrain, [&](std::size_t begin, std::size_t end) {
            normal_pairs(seed_, stream_, index_ / kWords + begin, out.subspan(2 * begin, 2 * (end - begin)),
                         sigma);
        });
        if (pairs > 0) seek(index_ + kWords * pairs);
    } else {
        for (float& x : out.first(2 * pairs)) x = sigma * normal();
    }
    if (out.size() % 2 != 0) out.back() = sigma * normal();
}

}  // namespace fp8lab
