#include "core/scaling/moment_storage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/scaling/scale_rule.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

std::optional<CastPlan> plan_of(const FormatInfo* format, MomentBlock block, Rounding rounding) {
    if (!format) return std::nullopt;
    const bool scaled = is_fp8(*format);
    const bool blocks = scaled && block == MomentBlock::block128;
    return CastPlan{.format = format,
                    .granularity = blocks ? Granularity::block128 : Granularity::tensor,
                    .scaled = scaled,
                    .rounding = rounding,
                    .overflow = default_overflow(*format)};
}

// The codes of one group, and what each of them stands for without a scale.
struct GroupCoder {
    const FormatInfo& format;
    float largest = static_cast<float>(max_finite(format));
    std::array<float, 256> numbers = [this] {
        std::array<float, 256> out{};
        for (std::uint32_t code = 0; code < 256; ++code) out[code] = decode(format, code);
        return out;
    }();

    // Whether the codes under this scale are the values themselves.
    bool gives_back(std::span<const float> values, float scale_inv, std::span<std::uint8_t> codes) const {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double wide = static_cast<double>(values[i]) / static_cast<double>(scale_inv);
            const std::uint32_t code = encode(format, static_cast<float>(wide));
            if (std::bit_cast<std::uint32_t>(numbers[code] * scale_inv) !=
                std::bit_cast<std::uint32_t>(values[i]))
                return false;
            codes[i] = static_cast<std::uint8_t>(code);
        }
        return true;
    }

    // The scale is no part of the values. Their amax is the largest code or, rounded stochastically, the one below, times
    // scale_inv; scale_inv is the inverse of max / amax within three roundings.
    float encode_group(std::span<const float> values, std::span<std::uint8_t> codes) const {
        constexpr int kRoundings = 4;
        const float top = amax(values), below = numbers[encode(format, largest) - 1];
        for (const float code : {largest, below}) {
            const float middle = 1 / scale_from_amax(top, code, 0, 1);
            for (int off = 0; off <= 2 * kRoundings; ++off) {
                const int ulps = off % 2 ? (off + 1) / 2 : -off / 2;
                const auto scale_inv = std::bit_cast<float>(std::bit_cast<std::int32_t>(middle) + ulps);
                if (gives_back(values, scale_inv, codes)) return scale_inv;
            }
        }
        const float scale = scale_from_amax(top, largest, 0, 1);
        encode(format, values, codes, {.scale = scale});
        return 1 / scale;
    }
};

}  // namespace

MomentStorage moment_storage(const Recipe& recipe) {
    const bool bf16 = recipe.master == MasterWeights::bf16;
    return {
        .m = plan_of(recipe.moment_m, recipe.moment_block, recipe.round_m),
        .v = plan_of(recipe.moment_v, recipe.moment_block, recipe.round_v),
        .weights = plan_of(bf16 ? &find_format("bf16") : nullptr, recipe.moment_block, recipe.round_update)};
}

std::int64_t store(const std::optional<CastPlan>& how, std::span<float> values, std::uint64_t seed,
                   std::uint64_t stream, bool count) {
    if (!how) return 0;
    // As one row, so that blocks of 1x128 run through the matrix and not only through its rows.
    const QuantizeResult result =
        quantize(*how, values, values,
                 {.rows = 1, .cols = values.size(), .seed = seed, .stream = stream, .with_stats = count});
    return result.stats.underflow;
}

MomentCodes moment_codes(const FormatInfo& format, std::span<const float> values) {
    const GroupCoder coder{format};
    const std::size_t groups = (values.size() + kMomentGroup - 1) / kMomentGroup;
    MomentCodes out{std::vector<std::uint8_t>(values.size()), std::vector<float>(groups)};
    constexpr std::size_t kGrain = 256;
    parallel_for(groups, kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t group = begin; group < end; ++group) {
            const std::size_t first = group * kMomentGroup, n = std::min(kMomentGroup, values.size() - first);
            out.scale_inv[group] =
                coder.encode_group(values.subspan(first, n), std::span(out.codes).subspan(first, n));
        }
    });
    return out;
}

std::vector<float> moment_values(const FormatInfo& format, const MomentCodes& codes) {
    std::vector<float> values(codes.codes.size());
    decode(format, codes.codes, values);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= codes.scale_inv[i / kMomentGroup];
    return values;
}

}  // namespace fp8lab
