// --shape of the verb bench.
#pragma once

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace fp8lab::cli {

// Sizes above 0 with commas between; `otherwise` where there is no text. `form`: "M,N,K". Throws usage_error("--shape", ...).
template <std::size_t kCount>
std::array<int, kCount> parse_shape(const std::string& text, std::array<int, kCount> otherwise,
                                    std::string_view form) {
    if (text.empty()) return otherwise;
    std::array<int, kCount> shape{};
    const char *at = text.data(), *const end = at + text.size();
    for (std::size_t i = 0; i < kCount; ++i) {
        const auto [next, failure] = std::from_chars(at, end, shape[i]);
        const bool last = i + 1 == kCount;
        if (failure != std::errc{} || shape[i] <= 0 || (last ? next != end : next == end || *next != ','))
            throw usage_error("--shape", fmt::format("'{}' is not {}", text, form));
        at = next + 1;
    }
    return shape;
}

}  // namespace fp8lab::cli
