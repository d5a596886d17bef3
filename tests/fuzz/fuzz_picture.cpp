// Any bytes are either refused with an input error or grey values from 0 to 1, as many as the shape says.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/base/error.h"
#include "core/tensors/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fp8lab;
    try {
        const Tensor picture = read_picture(std::as_bytes(std::span(data, size)), "fuzz");
        const bool whole =
            !picture.values.empty() && picture.values.size() == picture.rows * picture.cols &&
            std::max(picture.rows, picture.cols) <= kPictureSide &&
            std::ranges::all_of(picture.values, [](float grey) { return grey >= 0 && grey <= 1; });
        if (!whole) std::abort();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    return 0;
}
