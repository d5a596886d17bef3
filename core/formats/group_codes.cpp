#include "core/formats/group_codes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/formats/codec.h"

namespace fp8lab {
namespace {

constexpr std::array<float, 16> kInt4 = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
constexpr std::array<float, 16> kNf4 = {-1.0F,
                                        -0.6961928009986877F,
                                        -0.5250730514526367F,
                                        -0.39491748809814453F,
                                        -0.28444138169288635F,
                                        -0.18477343022823334F,
                                        -0.09105003625154495F,
                                        0.0F,
                                        0.07958029955625534F,
                                        0.16093020141124725F,
                                        0.24611230194568634F,
                                        0.33791524171829224F,
                                        0.44070982933044434F,
                                        0.5626170039176941F,
                                        0.7229568362236023F,
                                        1.0F};

constexpr std::array kAll = {
    GroupCodes{"int4-g32", "INT4, groups of 32", kInt4, 7.5F, 32, 16},
    GroupCodes{"int4-g128", "INT4, groups of 128", kInt4, 7.5F, 128, 16},
    GroupCodes{"nf4", "NF4, groups of 64", kNf4, 1.0F, 64, 32},
};

}  // namespace

std::span<const GroupCodes> group_codes() { return kAll; }

double GroupCodes::bits_per_element(std::size_t cols) const {
    constexpr double kCode = 4;
    if (cols == 0) return kCode;
    const std::size_t groups = (cols + group - 1) / group;
    return kCode + static_cast<double>(groups) * scale_bits / static_cast<double>(cols);
}

float nearest_level(const GroupCodes& codes, float value) {
    if (std::isnan(value)) return value;
    const std::span<const float> levels = codes.levels;
    const auto above = std::ranges::lower_bound(levels, value);
    if (above == levels.begin()) return levels.front();
    if (above == levels.end()) return levels.back();
    const float low = above[-1], high = *above;
    const double down = static_cast<double>(value) - static_cast<double>(low),
                 up = static_cast<double>(high) - static_cast<double>(value);
    const bool high_is_even = (above - levels.begin()) % 2 == 0;
    return up < down || (up == down && high_is_even) ? high : low;
}

float group_scale(const GroupCodes& codes, float amax) {
    if (!(amax > 0) || !std::isfinite(amax)) return 1;
    return std::min(codes.largest / amax, std::numeric_limits<float>::max());
}

void cast_in_groups(const GroupCodes& codes, std::span<const float> in, std::span<float> out,
                    std::size_t cols) {
    for (std::size_t row = 0; row < in.size(); row += cols)
        for (std::size_t first = 0; first < cols; first += codes.group) {
            const std::size_t n = std::min(codes.group, cols - first), at = row + first;
            const float scale = group_scale(codes, amax(in.subspan(at, n))), inverse = 1 / scale;
            for (std::size_t i = at; i < at + n; ++i) out[i] = nearest_level(codes, in[i] * scale) * inverse;
        }
}

}  // namespace fp8lab
