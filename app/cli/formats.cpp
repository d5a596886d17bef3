// fp8lab formats [NAME...] [--json]: the facts of each format.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"
#include "core/base/units.h"
#include "core/formats/format.h"

namespace fp8lab::cli {
namespace {

// What a table has room for: a power of two as such, else six digits. JSON has every digit.
std::string brief(double value) {
    int exponent = 0;
    const bool is_power = std::frexp(value, &exponent) == 0.5;
    return is_power && std::abs(exponent - 1) > 4 ? power_of_two(exponent - 1) : format_number(value, 6);
}

// A threshold that overflows itself is "from" that value on, the other is "above" it.
std::string threshold_text(const FormatInfo& format) {
    const OverflowThreshold threshold = overflow_threshold(format);
    return fmt::format("{} {}", threshold.inclusive ? "from" : "above", brief(threshold.value));
}

void print_table(const std::vector<FormatInfo>& chosen) {
    constexpr auto kRow = "{:<9}{:>5}{:>6}{:>6}{:>13}{:>12}{:>15}{:>12}{:>12}{:>5}{:>10}{:>18}{:>10}\n";
    fmt::print(kRow, "format", "bits", "E/M", "bias", "max", "min normal", "min subnormal", "finite",
               "distinct", "inf", "nan", "overflows", "roundoff");
    for (const FormatInfo& f : chosen) {
        const CodeCounts codes = count_codes(f);
        fmt::print(kRow, f.name, width_bits(f), fmt::format("{}/{}", f.exponent_bits, f.mantissa_bits),
                   f.bias, brief(max_finite(f)), brief(min_normal(f)), brief(min_subnormal(f)), codes.finite,
                   codes.distinct, codes.infinities, codes.nans, threshold_text(f), brief(unit_roundoff(f)));
    }
}

nlohmann::json to_json(const FormatInfo& f) {
    const CodeCounts codes = count_codes(f);
    const OverflowThreshold threshold = overflow_threshold(f);
    return {{"name", f.name},
            {"bits", width_bits(f)},
            {"storage_bytes", storage_bytes(f)},
            {"exponent_bits", f.exponent_bits},
            {"mantissa_bits", f.mantissa_bits},
            {"bias", f.bias},
            {"max", max_finite(f)},
            {"max_code", fmt::format("0x{:X}", max_code(f))},
            {"min_normal", min_normal(f)},
            {"min_subnormal", min_subnormal(f)},
            {"overflow_threshold", threshold.value},
            {"threshold_overflows", threshold.inclusive},
            {"unit_roundoff", unit_roundoff(f)},
            {"nan_code", fmt::format("0x{:X}", canonical_nan(f))},
            {"codes",
             {{"total", codes.total},
              {"finite", codes.finite},
              {"distinct", codes.distinct},
              {"subnormal", codes.subnormals},
              {"infinity", codes.infinities},
              {"nan", codes.nans}}}};
}

}  // namespace

void add_formats(CLI::App& app, Globals&) {
    struct Options {
        std::vector<std::string> names;
        bool json = false;
    };
    const auto options = std::make_shared<Options>();
    CLI::App* verb = app.add_subcommand(
        "formats", "Bits, bias, range, codes by class, overflow threshold and unit roundoff of each format");
    verb->add_option("name", options->names, "formats; all if none is named");
    verb->add_flag("--json", options->json, "as JSON");
    verb->callback([options] {
        std::vector<FormatInfo> chosen;
        for (const std::string& name : options->names) chosen.push_back(find_format(name, "formats"));
        if (chosen.empty()) chosen.assign(formats().begin(), formats().end());
        if (!options->json) return print_table(chosen);
        nlohmann::json out = json_header(cpu_backend()->device());
        for (const FormatInfo& format : chosen) out["formats"].push_back(to_json(format));
        print_json(out);
    });
}

}  // namespace fp8lab::cli
