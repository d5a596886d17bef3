// A batch of token sequences and what the network has to answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fp8lab {

// All row-major, sequences x context. Row sequence * context + t of every matrix of a transformer belongs to
// tokens[sequence * context + t]. The target of a token is the token after it.
struct TokenBatch {
    std::size_t sequences = 0, context = 0;
    std::vector<int> tokens = {}, targets = {};  // 0 .. vocabulary - 1
    // 1: the target counts for loss and accuracy, 0: it does not. Empty: all targets count.
    std::vector<std::uint8_t> scored = {};
    float factor = 1;  // multiplies what the embedding gives: PoisonBatch

    std::size_t size() const { return sequences * context; }
    bool is_scored(std::size_t row) const { return scored.empty() || scored[row] != 0; }
};

}  // namespace fp8lab
