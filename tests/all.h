// What a test asserts for several seeds. Every run of the tests takes the first seed; with FP8LAB_TEST_ALL=1 in the
// environment, all of them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace fp8lab {

inline bool tests_all() { return std::getenv("FP8LAB_TEST_ALL") != nullptr; }

// 1, 2, ... `most`, or 1 alone.
inline std::vector<std::uint64_t> tested_seeds(std::uint64_t most) {
    std::vector<std::uint64_t> out;
    for (std::uint64_t seed = 1; seed <= (tests_all() ? most : 1); ++seed) out.push_back(seed);
    return out;
}

}  // namespace fp8lab
