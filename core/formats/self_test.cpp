#include "core/formats/self_test.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <bit>
#include <numeric>

#include "core/base/rng.h"
#include "core/base/stop.h"
#include "core/formats/codec_row.h"
#include "core/formats/golden.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

// All 2^32 patterns in runs that fit a cache.
constexpr std::size_t kRun = std::size_t{1} << 16, kRuns = std::size_t{1} << 16;

SelfCheckOutcome no_differences(std::uint64_t differences, std::uint64_t cases) {
    return {differences == 0, "0 differences", fmt::format("{} differences in {} cases", differences, cases)};
}

SelfCheckOutcome check_edges(const GoldenConversion& to, std::size_t column) {
    const GoldenTable edges = golden_edges();
    const CodecRow row = make_row(find_format(to.format), to.rounding, to.overflow);
    std::uint64_t differences = 0;
    for (const GoldenTable::Row& edge : edges.rows) {
        if (encode_one(row, std::bit_cast<float>(edge.key), 0) != edge.values.at(column)) ++differences;
    }
    return no_differences(differences, edges.rows.size());
}

// Every code that is a number comes back as itself, every NaN as the canonical one; int8's -128 as -127. FP32
// has too many codes for a quick check: a stride that is prime visits every exponent with every low bit.
SelfCheckOutcome check_round_trip(const FormatInfo& format) {
    const bool wide = width_bits(format) > 16;
    const std::uint64_t step = width_bits(format) == 32 ? 9973 : wide ? 1U << (32 - width_bits(format)) : 1;
    const std::uint64_t end = std::uint64_t{1} << (wide ? 32 : width_bits(format));
    const CodecRow row = make_row(format, default_rounding(format), Overflow::nonsaturate);
    std::uint64_t differences = 0, cases = 0;
    for (std::uint64_t i = 0; i < end; i += step, ++cases) {
        const auto code = static_cast<std::uint32_t>(i);
        std::uint32_t expected = classify(format, code) == CodeClass::nan ? canonical_nan(format) : code;
        if (value_of(format, code) < -max_finite(format) && format.kind == Kind::integer) expected = code + 1;
        if (encode_one(row, decode(format, code), 0) != expected) ++differences;
    }
    return no_differences(differences, cases);
}

// The span version writes the format's storage type.
template <class Code>
std::uint64_t compare_vector(const FormatInfo& format, std::span<const float> values,
                             const CastOptions& options) {
    std::vector<Code> codes(values.size());
    encode(format, values, std::span(codes), options);
    const CodecRow row = make_row(format, options.rounding, options.overflow);
    std::uint64_t differences = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint32_t random =
            options.rounding == Rounding::stochastic ? random_bits(options.seed, 0, i) : 0;
        if (codes[i] != encode_one(row, values[i] * options.scale, random)) ++differences;
    }
    return differences;
}

std::vector<float> edges_and_random_patterns() {
    std::vector<float> values;
    for (const GoldenTable::Row& edge : golden_edges().rows) values.push_back(std::bit_cast<float>(edge.key));
    Rng rng(1);
    while (values.size() < (1U << 18) + 1) values.push_back(std::bit_cast<float>(rng.bits()));
    return values;
}

SelfCheckOutcome check_vector(const FormatInfo& format) {
    const std::vector<float> values = edges_and_random_patterns();
    std::uint64_t differences = 0, cases = 0;
    for (const Rounding rounding : roundings(format)) {
        for (const Overflow overflow : {Overflow::saturate, Overflow::nonsaturate}) {
            const CastOptions options{.rounding = rounding, .overflow = overflow, .scale = 0.75F, .seed = 1};
            switch (storage_bytes(format)) {
                case 1:
                    differences += compare_vector<std::uint8_t>(format, values, options);
                    break;
                case 2:
                    differences += compare_vector<std::uint16_t>(format, values, options);
                    break;
                default:
                    differences += compare_vector<std::uint32_t>(format, values, options);
                    break;
            }
            cases += values.size();
        }
    }
    return no_differences(differences, cases);
}

// Calls body(run, patterns, codes of the vector kernels) over all 2^32 inputs, on all threads.
template <class Body>
void over_all_inputs(const GoldenConversion& to, const Body& body) {
    const FormatInfo& format = find_format(to.format);
    parallel_for(kRuns, 16, [&](std::size_t begin, std::size_t end) {
        std::vector<float> values(kRun);
        std::vector<std::uint8_t> codes(kRun);
        for (std::size_t run = begin; run < end; ++run) {
            end_if_interrupted();
            for (std::size_t i = 0; i < kRun; ++i)
                values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(run * kRun + i));
            encode(format, values, std::span(codes), {.rounding = to.rounding, .overflow = to.overflow});
            body(run, std::span<const float>(values), std::span<const std::uint8_t>(codes));
        }
    });
}

SelfCheckOutcome check_all_inputs(const GoldenConversion& to, std::size_t column) {
    std::vector<std::uint64_t> sums(kRuns);
    std::array<std::atomic<std::uint64_t>, 256> histogram{};
    over_all_inputs(to, [&](std::size_t run, std::span<const float>, std::span<const std::uint8_t> codes) {
        std::array<std::uint32_t, 256> counts{};
        for (std::size_t i = 0; i < codes.size(); ++i) {
            sums[run] += golden_hash(static_cast<std::uint32_t>(run * kRun + i), codes[i]);
            ++counts[codes[i]];
        }
        for (std::size_t code = 0; code < counts.size(); ++code) histogram[code] += counts[code];
    });
    const std::uint64_t sum = std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
    std::uint64_t wrong = 0;
    for (const GoldenTable::Row& row : golden_histogram().rows) {
        if (histogram.at(row.key) != row.values.at(column)) ++wrong;
    }
    constexpr auto kText = "{:016x}, {} of 256 counts differ";
    return {sum == to.checksum && wrong == 0, fmt::format(kText, to.checksum, 0),
            fmt::format(kText, sum, wrong)};
}

SelfCheckOutcome check_vector_on_all_inputs(const GoldenConversion& to) {
    std::atomic<std::uint64_t> differences = 0;
    const CodecRow row = make_row(find_format(to.format), to.rounding, to.overflow);
    over_all_inputs(to, [&](std::size_t, std::span<const float> values, std::span<const std::uint8_t> codes) {
        std::uint64_t found = 0;
        for (std::size_t i = 0; i < codes.size(); ++i) {
            if (encode_one(row, values[i], 0) != codes[i]) ++found;
        }
        differences += found;
    });
    return no_differences(differences, std::uint64_t{1} << 32);
}

}  // namespace

std::vector<SelfCheck> codec_self_checks(bool full) {
    std::vector<SelfCheck> checks;
    const std::span<const GoldenConversion> conversions = golden_conversions();
    for (std::size_t column = 0; column < golden_edges().columns.size(); ++column) {
        const GoldenConversion& to = conversions[column];
        checks.push_back(
            {fmt::format("golden edges: {}", to.column), [&to, column] { return check_edges(to, column); }});
    }
    for (const FormatInfo& format : formats()) {
        checks.push_back({fmt::format("all codes round trip: {}", format.name),
                          [&format] { return check_round_trip(format); }});
    }
    for (const FormatInfo& format : formats()) {
        checks.push_back(
            {fmt::format("vector = scalar: {}", format.name), [&format] { return check_vector(format); }});
    }
    if (!full) return checks;
    for (std::size_t column = 0; column < conversions.size(); ++column) {
        const GoldenConversion& to = conversions[column];
        checks.push_back({fmt::format("all 2^32 inputs: {}", to.column),
                          [&to, column] { return check_all_inputs(to, column); }});
    }
    for (const GoldenConversion& to : conversions) {
        if (to.column != "e4m3_sat" && to.column != "e5m2_sat") continue;
        checks.push_back({fmt::format("vector = scalar on all 2^32 inputs: {}", to.column),
                          [&to] { return check_vector_on_all_inputs(to); }});
    }
    return checks;
}

}  // namespace fp8lab
