// Reads an open descriptor to its end: files, pipes and stdin use this loop.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fp8lab {

// At most `most` bytes; fewer where the input ends. `expected`: the probable size, 0 if unknown. Throws
// input_error(where, reason), and Interrupted when the process is asked to end while it waits for input.
std::vector<std::byte> read_descriptor(int descriptor, const std::string& where, std::size_t most,
                                       std::size_t expected = 0);

}  // namespace fp8lab
