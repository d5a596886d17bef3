// Any bytes are either refused with an input error or a configuration whose parts add up.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/tensors/scales/quantization_config.h"
#include "core/tensors/scales/scale_grid.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fp8lab;
    try {
        const QuantizationConfig config =
            parse_quantization_config({reinterpret_cast<const char*>(data), size}, "fuzz/config.json");
        static_cast<void>(config.words());
        for (const std::size_t rows : {std::size_t{6144}, std::size_t{16}})
            for (const std::size_t scales : {std::size_t{2}, std::size_t{3}}) {
                std::size_t sum = 0;
                const auto parts = config.parts_of(rows, scales);
                for (const std::size_t part : parts) sum += part;
                if (!parts.empty() && (sum != rows || parts.size() != scales)) std::abort();
            }
        for (const WeightScheme& scheme : config.schemes)
            if (scheme.block)
                for (const ScaleGrid& grid : scale_grids(std::vector<std::size_t>{300, 200},
                                                         std::vector<std::size_t>{3, 2}, *scheme.block))
                    if (grid.row_of(299) >= 3) std::abort();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    return 0;
}
