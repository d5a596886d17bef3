// Reads an open descriptor: files, pipes and stdin use this loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fp8lab {

// Appends until `bytes` holds `most` of them, or to the end of the input: false. `expected`: how many there are
// probably, 0 if unknown. Throws input_error(where, reason), Error{failed} where the memory does not suffice
// (memory.h), and Interrupted when the process is asked to end while it waits for input.
bool read_descriptor(int descriptor, const std::string& where, std::size_t most,
                     std::vector<std::byte>& bytes, std::uint64_t expected = 0);

}  // namespace fp8lab
