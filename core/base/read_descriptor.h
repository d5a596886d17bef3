// The rest of what an open descriptor holds: the one loop that files, pipes and stdin are read with.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fp8lab {

// At most `most` bytes; fewer where the input ends. `expected`: the size that the file is thought to have, 0
// where nobody knows. Throws input_error(where, reason), and Interrupted when the process is asked to end
// while nothing comes.
std::vector<std::byte> read_descriptor(int descriptor, const std::string& where, std::size_t most,
                                       std::size_t expected = 0);

}  // namespace fp8lab
