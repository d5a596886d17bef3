// A safetensors file from its header and raw data, whether they fit or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

inline std::vector<std::byte> safetensors_file(std::string_view header, std::vector<std::uint8_t> data = {}) {
    std::vector<std::byte> bytes(8 + header.size() + data.size());
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    std::memcpy(bytes.data() + 8, header.data(), header.size());
    if (!data.empty()) std::memcpy(bytes.data() + 8 + header.size(), data.data(), data.size());
    return bytes;
}
