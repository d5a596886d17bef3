#include "core/tensors/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/base/error.h"
#include "core/formats/codec.h"

namespace fp8lab {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied as they lie in memory");

// What can be read, and others, whose sizes are checked. A file may hold tensors of dtypes that are not listed: their
// sizes are taken on trust.
struct Dtype {
    std::string_view name, format;  // format: empty for F64, which is wider than every format of ours
    std::size_t bits;
    bool is_float = true;
};
constexpr std::array kDtypes = {
    Dtype{"F64", "", 64},
    Dtype{"F32", "fp32", 32},
    Dtype{"F16", "fp16", 16},
    Dtype{"BF16", "bf16", 16},
    Dtype{"F8_E4M3", "e4m3", 8},
    Dtype{"F8_E5M2", "e5m2", 8},
    Dtype{"F8_E8M0", "e8m0", 8},
    Dtype{"F8_E4M3FNUZ", "e4m3fnuz", 8},
    Dtype{"F8_E5M2FNUZ", "e5m2fnuz", 8},
    Dtype{"F6_E2M3", "e2m3", 6},
    Dtype{"F6_E3M2", "e3m2", 6},
    Dtype{"F4", "e2m1", 4},
    Dtype{"I8", "int8", 8, false},
    Dtype{"C64", "", 64, false},
    Dtype{"I64", "", 64, false},
    Dtype{"U64", "", 64, false},
    Dtype{"I32", "", 32, false},
    Dtype{"U32", "", 32, false},
    Dtype{"I16", "", 16, false},
    Dtype{"U16", "", 16, false},
    Dtype{"U8", "", 8, false},
    Dtype{"BOOL", "", 8, false},
};

const Dtype* find_dtype(std::string_view name) {
    const auto it = std::ranges::find(kDtypes, name, &Dtype::name);
    return it == kDtypes.end() ? nullptr : &*it;
}

constexpr std::size_t kAtOnce = 1024;  // codes; a multiple of four, so that every piece starts in a new byte

// Codes may lie at any byte: they are copied to where they are aligned, a piece at a time.
template <class Code>
void decode_to(const FormatInfo& format, std::span<const std::byte> stored, std::span<float> values) {
    std::array<Code, kAtOnce> codes;
    for (std::size_t i = 0; i < values.size(); i += kAtOnce) {
        const std::size_t n = std::min(kAtOnce, values.size() - i);
        std::memcpy(codes.data(), stored.data() + i * sizeof(Code), n * sizeof(Code));
        decode(format, std::span<const Code>(codes).first(n), values.subspan(i, n));
    }
}

void decode_packed(const FormatInfo& format, std::size_t bits, std::span<const std::byte> stored,
                   std::span<float> values) {
    std::array<std::uint8_t, kAtOnce> codes;
    const auto byte = [&](std::size_t at) {
        return at < stored.size() ? std::to_integer<unsigned>(stored[at]) : 0U;
    };
    for (std::size_t i = 0; i < values.size(); i += kAtOnce) {
        const std::size_t n = std::min(kAtOnce, values.size() - i);
        if (bits == 4 && n % 2 == 0) {  // kAtOnce is even: only a last piece can be odd
            for (std::size_t k = 0; k < n; k += 2) {
                const auto both = std::to_integer<std::uint8_t>(stored[(i + k) / 2]);
                codes[k] = both & 0xF, codes[k + 1] = static_cast<std::uint8_t>(both >> 4);
            }
            decode(format, std::span<const std::uint8_t>(codes).first(n), values.subspan(i, n));
            continue;
        }
        for (std::size_t k = 0; k < n; ++k) {
            const std::size_t bit = (i + k) * bits;
            const unsigned both = byte(bit / 8) | byte(bit / 8 + 1) << 8;
            codes[k] = static_cast<std::uint8_t>(both >> bit % 8 & ((1U << bits) - 1));
        }
        decode(format, std::span<const std::uint8_t>(codes).first(n), values.subspan(i, n));
    }
}

Narrowed read_doubles(std::span<const std::byte> stored, std::span<float> values) {
    Narrowed narrowed;
    for (std::size_t i = 0; i < values.size(); ++i) {
        double value;
        std::memcpy(&value, stored.data() + i * sizeof value, sizeof value);
        values[i] = static_cast<float>(value);
        narrowed.beyond += std::isinf(values[i]) && !std::isinf(value);
        narrowed.below += values[i] == 0 && value != 0;
    }
    return narrowed;
}

}  // namespace

std::size_t bits_of_dtype(std::string_view name) {
    const Dtype* const dtype = find_dtype(name);
    return dtype ? dtype->bits : 0;
}

std::size_t elements_in(std::string_view name, std::size_t bytes) {
    const std::size_t bits = bits_of_dtype(name);
    if (bits == 0) return 0;
    return bits >= 8 ? bytes / (bits / 8) : bytes / bits * 8 + bytes % bits * 8 / bits;
}

std::string_view float_dtype(std::string_view name) {
    const Dtype* const dtype = find_dtype(name);
    return dtype && dtype->is_float ? dtype->name : std::string_view{};
}

bool is_float_dtype(std::string_view name) { return !float_dtype(name).empty(); }

bool is_code_dtype(std::string_view name) {
    const Dtype* const dtype = find_dtype(name);
    return dtype && dtype->is_float && dtype->bits <= 8 && dtype->format != "e8m0";
}

std::string_view format_of_dtype(std::string_view name) {
    const Dtype* const dtype = find_dtype(name);
    return dtype ? dtype->format : std::string_view{};
}

std::string float_dtypes() {
    std::string out;
    for (const Dtype& each : kDtypes)
        if (each.is_float) out.append(out.empty() ? "" : " ").append(each.name);
    return out;
}

Narrowed decode_stored(std::string_view name, std::span<const std::byte> stored, std::span<float> values) {
    const Dtype* const dtype = find_dtype(name);
    if (!dtype || (!dtype->is_float && dtype->format.empty()) ||
        stored.size() != (values.size() * dtype->bits + 7) / 8)
        throw usage_error("decode_stored", "the dtype is no float, or the sizes differ");
    if (values.empty()) return {};
    if (dtype->bits == 64) return read_doubles(stored, values);
    if (dtype->bits == 32)
        std::memcpy(values.data(), stored.data(), stored.size());
    else if (dtype->bits == 16)
        decode_to<std::uint16_t>(find_format(dtype->format), stored, values);
    else if (dtype->bits == 8)
        decode_to<std::uint8_t>(find_format(dtype->format), stored, values);
    else
        decode_packed(find_format(dtype->format), dtype->bits, stored, values);
    return {};
}

}  // namespace fp8lab
