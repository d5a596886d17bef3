// fp8lab cast: float32 -> codes, and fp8lab decode: codes -> float32.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/files/memory.h"
#include "core/files/outputs.h"
#include "core/files/progress_line.h"
#include "core/files/random_file.h"
#include "core/formats/codec.h"
#include "core/tensors/npy.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"

namespace fp8lab::cli {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and written as memory holds them");

constexpr std::size_t kGrain = std::size_t{1} << 16;  // elements a thread takes at a time

struct CastArguments {
    std::string to, rounding, overflow, in, out;
    float scale = 1.0F;
    std::uint64_t seed = 1;
};

struct DecodeArguments {
    std::string from, in, out;
};

constexpr std::uint64_t kMostValues = std::uint64_t{1} << 32;  // all values of float32 once

std::string named(const std::string& path) { return path == "-" ? "stdin" : path; }

void declare_cast_files(const std::string& in, const std::string& out) {
    Outputs files;
    files.reads(in);
    files.writes("-o", out, Holds::numbers);
}

bool is_npy(std::span<const std::byte> head) {
    constexpr std::string_view kMagic = "\x93NUMPY";
    return head.size() >= kMagic.size() && std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0;
}

// `width`: bytes of a value that is no .npy.
RandomFile open_numbers(const std::string& path, std::size_t width, bool maybe_npy) {
    const std::uint64_t most = kMostValues * width;
    const std::string where = named(path);
    const auto size_by_head = [&](std::span<const std::byte> head) -> std::uint64_t {
        if (maybe_npy && head.size() < kNpyPrefix) return kNpyPrefix;
        return maybe_npy && is_npy(head) ? npy_size(head, where) : most;
    };
    RandomFile file(path, size_by_head, Pipes::read);
    if (file.size() > most)
        throw input_error(file.where(), fmt::format("is {}; such a file has at most {}",
                                                    format_bytes(file.size()), format_bytes(most)));
    return file;
}

std::vector<float> from_npy(const RandomFile& file, std::size_t code_bytes) {
    const NpyIndex index = index_npy(file);
    if (index.dtype.ends_with("f8"))
        throw input_error(file.where(),
                          fmt::format("dtype '{}': float64 would be rounded twice; convert it to '<f4' first",
                                      index.dtype));
    const std::size_t stored = index.end - index.begin,
                      values = stored / (index.dtype.ends_with("f2") ? 2 : 4);
    require_memory(file.where(), static_cast<double>(stored + values * (2 * sizeof(float) + code_bytes)));
    return parse_npy(file.read_some(0, file.size()), file.where()).values;
}

// An .npy is known by its first bytes, so that it may come through stdin.
std::vector<float> read_values(const std::string& path, std::size_t code_bytes) {
    const RandomFile file = open_numbers(path, sizeof(float), true);
    const std::uint64_t size = file.size(), count = size / sizeof(float);
    if (path.ends_with(".npy") || is_npy(file.read_some(0, kNpyPrefix))) return from_npy(file, code_bytes);
    if (size % sizeof(float) != 0)
        throw input_error(file.where(),
                          fmt::format("byte {}: a float32 ends in the middle ({} bytes are no multiple of 4)",
                                      count * sizeof(float), size));
    require_memory(file.where(), static_cast<double>(size + count * code_bytes));
    std::vector<float> values(count);
    file.read(0, std::as_writable_bytes(std::span(values)));
    return values;
}

void report_nonfinite(std::span<const float> values) {
    std::size_t nans = 0, infinities = 0;
    for (const float x : values) {
        if (std::isnan(x)) ++nans;
        if (std::isinf(x)) ++infinities;
    }
    if (nans + infinities == 0) return;
    tell(fmt::format("cast: {} NaN and {} Inf among {} values", nans, infinities, values.size()));
}

template <class Code>
std::vector<std::byte> cast_to(const FormatInfo& format, std::span<const float> values,
                               const CastOptions& options) {
    std::vector<std::byte> out(values.size() * sizeof(Code));
    const std::span<Code> codes(reinterpret_cast<Code*>(out.data()), values.size());
    parallel_for(values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        CastOptions part = options;
        part.first = begin;
        encode(format, values.subspan(begin, end - begin), codes.subspan(begin, end - begin), part);
    });
    return out;
}

void cast(const CastArguments& arguments) {
    const FormatInfo& format = find_format(arguments.to, "--to");
    CastOptions options;
    options.rounding =
        arguments.rounding.empty() ? default_rounding(format) : parse_rounding(arguments.rounding);
    options.overflow =
        arguments.overflow.empty() ? default_overflow(format) : parse_overflow(arguments.overflow);
    options.scale = arguments.scale;
    options.seed = arguments.seed;
    if (!std::isfinite(options.scale) || options.scale <= 0)
        throw usage_error("--scale", "must be finite and above 0");
    const auto valid = roundings(format);
    if (std::find(valid.begin(), valid.end(), options.rounding) == valid.end()) {
        throw unknown_name("--round", arguments.to + " rounding", arguments.rounding, valid,
                           [](Rounding r) { return to_string(r); });
    }
    declare_cast_files(arguments.in, arguments.out);
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    progress.at("cast: reading " + named(arguments.in));
    const std::vector<float> values =
        read_values(arguments.in, static_cast<std::size_t>(storage_bytes(format)));
    progress.at(fmt::format("cast: {} values", values.size()));
    switch (storage_bytes(format)) {
        case 1:
            write_file(arguments.out, cast_to<std::uint8_t>(format, values, options));
            break;
        case 2:
            write_file(arguments.out, cast_to<std::uint16_t>(format, values, options));
            break;
        default:
            write_file(arguments.out, cast_to<std::uint32_t>(format, values, options));
            break;
    }
    report_nonfinite(values);  // not before: a failure to write is one line on stderr
}

template <class Code>
std::vector<float> decode_from(const FormatInfo& format, std::span<const std::byte> bytes,
                               const std::string& where) {
    if (bytes.size() % sizeof(Code) != 0) {
        throw input_error(
            where,
            fmt::format("byte {}: a {} code ends in the middle ({} bytes are no multiple of {})",
                        bytes.size() / sizeof(Code) * sizeof(Code), format.name, bytes.size(), sizeof(Code)));
    }
    std::vector<Code> codes(bytes.size() / sizeof(Code));
    if (!bytes.empty()) std::memcpy(codes.data(), bytes.data(), bytes.size());
    const std::uint32_t used =
        width_bits(format) > 16 ? ~0U << (32 - width_bits(format)) : (1U << width_bits(format)) - 1;
    for (std::size_t i = 0; i < codes.size(); ++i) {
        if ((codes[i] & ~used) == 0) continue;
        throw input_error(where, fmt::format("byte {}: 0x{:X} is no {} code, which has {} bits",
                                             i * sizeof(Code), codes[i], format.name, width_bits(format)));
    }
    std::vector<float> values(codes.size());
    parallel_for(codes.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        decode(format, std::span<const Code>(codes).subspan(begin, end - begin),
               std::span(values).subspan(begin, end - begin));
    });
    return values;
}

void decode(const DecodeArguments& arguments) {
    const FormatInfo& format = find_format(arguments.from, "--from");
    declare_cast_files(arguments.in, arguments.out);
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    progress.at("decode: reading " + named(arguments.in));
    const RandomFile file =
        open_numbers(arguments.in, static_cast<std::size_t>(storage_bytes(format)), false);
    const std::string where = file.where();
    // The codes, once as bytes, and their values.
    require_memory(where, static_cast<double>(file.size() / storage_bytes(format)) *
                              static_cast<double>(2 * storage_bytes(format) + sizeof(float)));
    const std::vector<std::byte> bytes = file.read_some(0, file.size());
    progress.at(fmt::format("decode: {} bytes", bytes.size()));
    std::vector<float> values;
    switch (storage_bytes(format)) {
        case 1:
            values = decode_from<std::uint8_t>(format, bytes, where);
            break;
        case 2:
            values = decode_from<std::uint16_t>(format, bytes, where);
            break;
        default:
            values = decode_from<std::uint32_t>(format, bytes, where);
            break;
    }
    write_file(arguments.out, std::as_bytes(std::span(values)));
}

}  // namespace

void add_cast(CLI::App& app, Globals&) {
    const auto a = std::make_shared<CastArguments>();
    CLI::App* verb = app.add_subcommand(
        "cast", "float32 to codes: one byte a code, 2 for bf16 and fp16, 4 for tf32 and fp32");
    verb->add_option("--to", a->to, "the format")->required();
    verb->add_option("--round", a->rounding,
                     "nearest, toward-zero, stochastic; e8m0: up (default), toward-zero");
    verb->add_option("--overflow", a->overflow, "saturate (default up to 8 bits) or nonsaturate");
    verb->add_option("--scale", a->scale, "factor before the cast");
    verb->add_option("--seed", a->seed, "of stochastic rounding")->check(check_seed);
    verb->add_option("-i", a->in, "raw little-endian float32 or .npy; - is stdin")->required();
    verb->add_option("-o", a->out, "the codes; - is stdout")->required();
    verb->callback([a] { cast(*a); });
}

void add_decode(CLI::App& app, Globals&) {
    const auto a = std::make_shared<DecodeArguments>();
    CLI::App* verb = app.add_subcommand("decode", "Codes to raw little-endian float32");
    verb->add_option("--from", a->from, "the format")->required();
    verb->add_option("-i", a->in, "the codes; - is stdin")->required();
    verb->add_option("-o", a->out, "the values; - is stdout")->required();
    verb->callback([a] { decode(*a); });
}

}  // namespace fp8lab::cli
