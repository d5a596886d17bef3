// Any bytes are either refused with an input error or an index whose arrays lie in the file and do not overlap.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/tensors/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fp8lab;
    try {
        std::vector<std::pair<std::size_t, std::size_t>> places;
        const auto bytes = std::as_bytes(std::span(data, size));
        const RandomFile file({bytes.begin(), bytes.end()}, "fuzz");
        for (const auto& [name, array] : index_npz(file)) {
            const auto& [index, packed] = array;
            if (index.begin > index.end || index.end > (packed.size > 0 ? packed.size : size)) std::abort();
            if (packed.size == 0) {
                places.emplace_back(index.begin, index.end);
            } else if (packed.size < std::uint64_t{1} << 24) {
                if (unpack(file, packed).size() != packed.size) std::abort();
            }
        }
        std::ranges::sort(places);
        for (std::size_t i = 1; i < places.size(); ++i)
            if (places[i].first < places[i - 1].second) std::abort();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    return 0;
}
