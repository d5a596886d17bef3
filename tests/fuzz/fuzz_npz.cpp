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
        for (const auto& [name, array] : index_npz(std::as_bytes(std::span(data, size)), "fuzz")) {
            if (array.begin > array.end || array.end > size) std::abort();
            places.emplace_back(array.begin, array.end);
        }
        std::ranges::sort(places);
        for (std::size_t i = 1; i < places.size(); ++i)
            if (places[i].first < places[i - 1].second) std::abort();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    return 0;
}
