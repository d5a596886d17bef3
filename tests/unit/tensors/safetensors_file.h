// A safetensors file from its header and raw data, whether they fit or not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

inline std::vector<std::byte> safetensors_file(std::string_view header,
                                               const std::vector<std::uint8_t>& data = {}) {
    const std::uint64_t length = header.size();
    std::vector<std::byte> bytes(8 + header.size() + data.size());
    auto at = std::ranges::copy(std::as_bytes(std::span(&length, 1)), bytes.begin()).out;
    at = std::ranges::copy(std::as_bytes(std::span(header)), at).out;
    std::ranges::copy(std::as_bytes(std::span(data)), at);
    return bytes;
}
