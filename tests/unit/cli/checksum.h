// The checksum of core/json/checksum.h, written down once more: what a forger would do.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

inline std::string hash_of(const nlohmann::json& json) {
    std::uint64_t h = 0xCBF29CE484222325ULL;
    for (const char c : json.dump()) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
    return text;
}
