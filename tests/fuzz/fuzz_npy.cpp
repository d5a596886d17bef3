// Any bytes are either refused with an input error or an array that survives writing and reading.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/tensors/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fp8lab;
    try {
        const NpyArray array = parse_npy(std::as_bytes(std::span(data, size)), "fuzz");
        const NpyArray again = parse_npy(to_npy(array.values, array.shape), "fuzz");
        const bool same = again.shape == array.shape && again.size() == array.size() &&
                          (array.size() == 0 || std::memcmp(again.values.data(), array.values.data(),
                                                            array.size() * sizeof(float)) == 0);
        if (!same) std::abort();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    return 0;
}
