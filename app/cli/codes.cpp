// fp8lab codes NAME [--csv]: every code of a format.
#include <fmt/format.h>

#include <memory>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/formats/format.h"

namespace fp8lab::cli {
namespace {

std::string binary(std::uint32_t field, int width) {
    return width > 0 ? fmt::format("{:0{}b}", field, width) : "";
}

void print_codes(const FormatInfo& format, bool csv) {
    if (width_bits(format) > 16) {
        throw usage_error("codes", fmt::format("{} has 2^{} codes; formats of up to 16 bits are listed",
                                               format.name, width_bits(format)));
    }
    const int hex_digits = (width_bits(format) + 3) / 4;
    if (csv) fmt::print("code,sign,exponent,mantissa,class,value\n");
    for (std::uint32_t code = 0; code < 1U << width_bits(format); ++code) {
        const CodeFields fields = split(format, code);
        const std::string sign = binary(fields.sign, format.is_signed ? 1 : 0);
        const std::string exponent = binary(fields.exponent, format.exponent_bits);
        const std::string mantissa = binary(fields.mantissa, format.mantissa_bits);
        const auto code_class = to_string(classify(format, code));
        const std::string value = exact_decimal(value_of(format, code));
        if (csv) {
            fmt::print("0x{:0{}X},{},{},{},{},{}\n", code, hex_digits, sign, exponent, mantissa, code_class,
                       value);
        } else {
            const std::string all = fmt::format("{} {} {}", sign, exponent, mantissa);
            fmt::print("0x{:0{}X}  {:<{}}  {:<9}  {}\n", code, hex_digits, all, width_bits(format) + 2,
                       code_class, value);
        }
    }
}

}  // namespace

void add_codes(CLI::App& app, Globals&) {
    struct Options {
        std::string name;
        bool csv = false;
    };
    const auto options = std::make_shared<Options>();
    CLI::App* verb =
        app.add_subcommand("codes", "Every code of a format: hex, bit fields, class, exact decimal value");
    verb->add_option("name", options->name, "the format, of up to 16 bits")->required();
    verb->add_flag("--csv", options->csv, "as CSV");
    verb->callback([options] { print_codes(find_format(options->name, "codes"), options->csv); });
}

}  // namespace fp8lab::cli
