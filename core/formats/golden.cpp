#include "core/formats/golden.h"

#include <array>
#include <charconv>
#include <sstream>

#include "core/base/error.h"
#include "core/files/files.h"

namespace fp8lab {
namespace {

// Checksums: NVIDIA's host functions over all inputs; an H200's conversion instructions give the same for
// E4M3 and E5M2.
constexpr std::array kConversions = {
    GoldenConversion{"e4m3_sat", "e4m3", Rounding::nearest, Overflow::saturate, 0x67119E8607E1667C},
    GoldenConversion{"e4m3_nosat", "e4m3", Rounding::nearest, Overflow::nonsaturate, 0xAC6B290DEA23CB47},
    GoldenConversion{"e5m2_sat", "e5m2", Rounding::nearest, Overflow::saturate, 0x23785AFC602C71C6},
    GoldenConversion{"e5m2_nosat", "e5m2", Rounding::nearest, Overflow::nonsaturate, 0xDB300A0B0A009517},
    GoldenConversion{"e2m3", "e2m3", Rounding::nearest, Overflow::saturate, 0xD426108C7F1FA0B2},
    GoldenConversion{"e3m2", "e3m2", Rounding::nearest, Overflow::saturate, 0xC6974099D0FDADFA},
    GoldenConversion{"e2m1", "e2m1", Rounding::nearest, Overflow::saturate, 0x36CFDAD13E861276},
    GoldenConversion{"e8m0_up_sat", "e8m0", Rounding::up, Overflow::saturate, 0x7FF32C74B4569874},
    GoldenConversion{"e8m0_zero_sat", "e8m0", Rounding::toward_zero, Overflow::saturate, 0xF17776DC2B07AF33},
};

std::vector<std::string> split_line(const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream stream(line);
    for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
    return fields;
}

// `first_value`: the column where values begin; those between the key and it are for human readers.
GoldenTable read_table(std::string_view name, std::size_t first_value, int base) {
    const std::string path = asset(name).string();
    std::istringstream lines(read_text(path));
    GoldenTable table;
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        const std::vector<std::string> fields = split_line(line);
        const auto fail = [&](std::string why) {
            return input_error(path, "line " + std::to_string(number) + ": " + std::move(why));
        };
        const auto parse = [&](const std::string& text) {
            std::uint32_t value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
            if (error != std::errc() || end != text.data() + text.size())
                throw fail("'" + text + "' is not a number");
            return value;
        };
        if (fields.size() <= first_value) throw fail("too few columns");
        if (table.columns.empty()) {
            table.columns.assign(fields.begin() + static_cast<std::ptrdiff_t>(first_value), fields.end());
            continue;
        }
        if (fields.size() != first_value + table.columns.size())
            throw fail("not as many columns as the header");
        GoldenTable::Row row{parse(fields[0]), {}};
        for (std::size_t c = first_value; c < fields.size(); ++c) row.values.push_back(parse(fields[c]));
        table.rows.push_back(std::move(row));
    }
    return table;
}

}  // namespace

std::span<const GoldenConversion> golden_conversions() { return kConversions; }
GoldenTable golden_edges() { return read_table("golden/golden_edges.csv", 2, 16); }
GoldenTable golden_histogram() { return read_table("golden/golden_hist.csv", 1, 10); }

}  // namespace fp8lab
