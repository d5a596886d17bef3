// A safetensors file from its header and raw data, whether they fit or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

inline std::vector<std::byte> safetensors_file(std::string_view header,
                                               const std::vector<std::uint8_t>& data = {}) {
    const std::uint64_t length = header.size();
    std::vector<std::byte> bytes;
    const auto append = [&](std::span<const std::byte> part) {
        bytes.insert(bytes.end(), part.begin(), part.end());
    };
    append(std::as_bytes(std::span(&length, 1)));
    append(std::as_bytes(std::span(header)));
    append(std::as_bytes(std::span(data)));
    return bytes;
}
