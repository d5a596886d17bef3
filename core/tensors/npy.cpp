#include "core/tensors/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/threads/ask.h"

namespace fp8lab {

namespace {

static_assert(std::endian::native == std::endian::little, "payloads are read as they lie in memory");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = std::size_t{1} << 20;
constexpr std::size_t kMaxDimensions = 64;  // NumPy's own limit, NPY_MAXDIMS

struct Header {
    std::string dtype;
    std::size_t dtype_at = 0;  // byte of the file
    bool fortran_order = false;
    std::vector<std::size_t> shape;
};

Error unsupported(const std::string& where, std::size_t at, const std::string& what) {
    return input_error(where,
                       fmt::format("byte {}: {} is not supported; valid: <f2 <f4 <f8 >f2 >f4 >f8", at, what));
}
bool is_read(std::string_view dtype) {
    return dtype.size() == 3 && (dtype[0] == '<' || dtype[0] == '>') && dtype[1] == 'f' &&
           (dtype[2] == '2' || dtype[2] == '4' || dtype[2] == '8');
}

// Bytes of an element of "<i8", "|b1", ">f4"; 0: another dtype (objects, text, records), of which no size is known.
std::size_t width_of(std::string_view dtype) {
    constexpr std::string_view kOrders = "<>|=", kKinds = "biufc";
    if (dtype.size() < 3 || kOrders.find(dtype[0]) == kOrders.npos || kKinds.find(dtype[1]) == kKinds.npos)
        return 0;
    std::size_t width = 0;
    const char* const end = dtype.data() + dtype.size();
    const auto read = std::from_chars(dtype.data() + 2, end, width);
    return read.ec == std::errc{} && read.ptr == end && width <= 32 ? width : 0;
}

// The header is a Python dict literal with exactly the keys descr, fortran_order and shape, then spaces and a
// newline. `offset` is where the text starts in the file: errors name positions in the file.
class HeaderParser {
  public:
    HeaderParser(std::string_view text, std::size_t offset, const std::string& where)
        : text_(text), offset_(offset), where_(where) {}

    Header parse() {
        Header header;
        bool has_descr = false, has_order = false, has_shape = false;
        expect('{');
        while (!accept('}')) {
            const std::size_t start = at_;
            const std::string key = parse_string();
            expect(':');
            if (key == "descr" && !has_descr) {
                has_descr = true;
                skip_space();
                header.dtype_at = offset_ + at_;
                header.dtype = parse_dtype();
            } else if (key == "fortran_order" && !has_order) {
                has_order = true;
                header.fortran_order = parse_bool();
            } else if (key == "shape" && !has_shape) {
                has_shape = true;
                header.shape = parse_shape();
            } else {
                throw fail(start, "unexpected or repeated key '" + key + "'");
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        skip_space();
        if (at_ != text_.size()) throw fail(at_, "text after the header's dict");
        if (!has_descr || !has_order || !has_shape)
            throw fail(0, "the header must have the keys descr, fortran_order and shape");
        return header;
    }

  private:
    Error fail(std::size_t at, const std::string& why) const {
        return input_error(where_, fmt::format("byte {}: {}", offset_ + at, why));
    }
    void skip_space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    }
    bool accept(char c) {
        skip_space();
        const bool here = at_ < text_.size() && text_[at_] == c;
        if (here) ++at_;
        return here;
    }
    void expect(char c) {
        if (!accept(c)) throw fail(at_, fmt::format("malformed header: expected '{}'", c));
    }

    std::string parse_string() {
        skip_space();
        const char quote = at_ < text_.size() ? text_[at_] : ' ';
        if (quote != '\'' && quote != '"') throw fail(at_, "malformed header: expected a quoted string");
        const auto end = text_.find(quote, at_ + 1);
        if (end == text_.npos) throw fail(at_, "malformed header: a string does not end");
        const std::string_view body = text_.substr(at_ + 1, end - at_ - 1);
        const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '\\'; };
        if (body.size() > 32 || !std::all_of(body.begin(), body.end(), is_plain))
            throw fail(at_, "malformed header: strange characters or more than 32 of them in a string");
        at_ = end + 1;
        return std::string(body);
    }

    std::string parse_dtype() {
        const std::size_t start = at_;
        if (accept('[')) throw unsupported(where_, offset_ + start, "structured dtype");
        std::string dtype = parse_string();
        if (width_of(dtype) == 0) throw unsupported(where_, offset_ + start, "dtype '" + dtype + "'");
        return dtype;
    }

    bool parse_bool() {
        skip_space();
        for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}})
            if (text_.substr(at_).starts_with(word)) {
                at_ += word.size();
                return value;
            }
        throw fail(at_, "malformed header: expected True or False");
    }

    // "()", "(3,)", "(3, 4)", "(3, 4,)"; "(3)" is no tuple. NumPy under Python 2 wrote "(3L,)".
    std::vector<std::size_t> parse_shape() {
        std::vector<std::size_t> shape;
        expect('(');
        while (!accept(')')) {
            if (shape.size() == kMaxDimensions) throw fail(at_, "more than 64 dimensions");
            skip_space();
            std::size_t extent = 0;
            const char* const begin = text_.data() + at_;
            const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), extent);
            if (problem != std::errc{}) throw fail(at_, "malformed header: expected a dimension");
            at_ += static_cast<std::size_t>(end - begin);
            if (at_ < text_.size() && text_[at_] == 'L') ++at_;
            shape.push_back(extent);
            if (accept(',')) continue;
            if (shape.size() == 1) throw fail(at_, "malformed header: expected ',' after the only dimension");
            expect(')');
            break;
        }
        return shape;
    }

    std::string_view text_;
    std::size_t offset_, at_ = 0;
    const std::string& where_;
};

template <class T>
T read_as(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

float half_to_float(std::uint16_t half) {
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    const float sign = half >> 15 ? -1.0F : 1.0F;
    if (exponent == 31) {
        const float special =
            mantissa ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
        return std::copysign(special, sign);
    }
    const int significand = exponent ? mantissa + 1024 : mantissa;
    return sign * std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - 25);
}

// Elements of the shape, checked so that neither their number nor their bytes overflow.
std::size_t count_elements(const std::vector<std::size_t>& shape, std::size_t element,
                           const std::string& where) {
    std::size_t count = 1;
    for (const std::size_t extent : shape) {
        if (extent != 0 && count > std::numeric_limits<std::size_t>::max() / element / extent)
            throw input_error(where, "the shape is too large");
        count *= extent;
    }
    return count;
}

std::vector<float> read_values(std::span<const std::byte> payload, std::size_t element) {
    std::vector<float> values(payload.size() / element);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::byte* const at = payload.data() + i * element;
        if (element == 2)
            values[i] = half_to_float(read_as<std::uint16_t>(at));
        else if (element == 4)
            values[i] = read_as<float>(at);
        else
            values[i] = static_cast<float>(read_as<double>(at));
    }
    return values;
}

}  // namespace

void swap_bytes(std::span<std::byte> bytes, std::size_t width) {
    for (std::size_t at = 0; at + width <= bytes.size(); at += width)
        std::ranges::reverse(bytes.subspan(at, width));
}

std::vector<float> to_c_order(const std::vector<float>& values, const std::vector<std::size_t>& shape) {
    std::vector<std::size_t> index(shape.size(), 0), stride(shape.size(), 1);
    for (std::size_t d = 1; d < shape.size(); ++d) stride[d] = stride[d - 1] * shape[d - 1];
    std::vector<float> out(values.size());
    std::size_t from = 0;
    for (float& value : out) {
        value = values[from];
        for (std::size_t d = shape.size(); d-- > 0;) {  // the next index, as an odometer counts
            from += stride[d];
            if (++index[d] < shape[d]) break;
            from -= stride[d] * shape[d];
            index[d] = 0;
            ask_between();
        }
    }
    return out;
}

namespace {

Header read_header(std::span<const std::byte> bytes, const std::string& where, std::size_t& data_start) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!text.starts_with(kMagic)) throw input_error(where, "byte 0: not an .npy file (no \\x93NUMPY)");
    const auto need = [&](std::size_t size) {
        if (bytes.size() < size)
            throw input_error(where, fmt::format("byte {}: the file ends in its header", bytes.size()));
    };
    need(8);
    const auto major = std::to_integer<int>(bytes[6]), minor = std::to_integer<int>(bytes[7]);
    if (major < 1 || major > 3 || minor != 0)
        throw input_error(
            where,
            fmt::format("byte 6: .npy version {}.{} is not supported; valid: 1.0 2.0 3.0", major, minor));
    const std::size_t start = major == 1 ? 10 : 12;
    need(start);
    const std::size_t length =
        major == 1 ? read_as<std::uint16_t>(bytes.data() + 8) : read_as<std::uint32_t>(bytes.data() + 8);
    if (length > kMaxHeader)
        throw input_error(
            where, fmt::format("byte 8: the header has {} bytes; at most {} are read", length, kMaxHeader));
    need(start + length);
    data_start = start + length;
    return HeaderParser(text.substr(start, length), start, where).parse();
}

// `size`: of the file, whose head is there.
NpyIndex index_head(std::span<const std::byte> head, std::uint64_t size, const std::string& where,
                    bool to_be_read) {
    std::size_t start = 0;
    Header header = read_header(head, where, start);
    if (to_be_read && !is_read(header.dtype))
        throw unsupported(where, header.dtype_at, "dtype '" + header.dtype + "'");
    const std::size_t element = width_of(header.dtype);
    const std::uint64_t expected = count_elements(header.shape, element, where) * element,
                        there = size - start;
    if (there != expected)
        throw input_error(
            where, fmt::format("byte {}: {} bytes of data where the shape needs {}: {}", start, there,
                               expected, there < expected ? "the file is truncated" : "too much data"));
    return {std::move(header.dtype), std::move(header.shape), header.fortran_order, start, size};
}

NpyArray array_of(NpyIndex index, std::span<const std::byte> payload, const std::string& where) {
    const std::size_t width = width_of(index.dtype);
    require_memory(where, static_cast<double>(payload.size() / width * sizeof(float)));
    std::vector<std::byte> swapped;
    if (index.dtype.starts_with('>')) {
        swapped.assign(payload.begin(), payload.end());
        swap_bytes(swapped, width);
        payload = swapped;
    }
    NpyArray array{std::move(index.dtype), std::move(index.shape), read_values(payload, width)};
    if (index.fortran_order) array.values = to_c_order(array.values, array.shape);
    return array;
}

}  // namespace

NpyIndex index_npy(std::span<const std::byte> head, std::uint64_t size, const std::string& where) {
    return index_head(head, size, where, false);
}

NpyIndex index_npy(const RandomFile& file) {
    const std::vector<std::byte> head = file.read_some(0, npy_head_size(file.read_some(0, kNpyPrefix)));
    return index_head(head, file.size(), file.where(), true);
}

std::size_t npy_head_size(std::span<const std::byte> head) {
    if (head.size() < kNpyPrefix) return kNpyPrefix;
    const std::size_t length = std::to_integer<int>(head[6]) == 1 ? read_as<std::uint16_t>(head.data() + 8)
                                                                  : read_as<std::uint32_t>(head.data() + 8);
    return kNpyPrefix + std::min(length, kMaxHeader);
}

std::uint64_t npy_size(std::span<const std::byte> head, const std::string& where) {
    if (const std::size_t size = npy_head_size(head); head.size() < size) return size;
    std::size_t start = 0;
    const Header header = read_header(head, where, start);
    const std::size_t element = width_of(header.dtype);
    return start + count_elements(header.shape, element, where) * element;
}

NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& where) {
    NpyIndex index = index_head(bytes, bytes.size(), where, true);
    const std::uint64_t start = index.begin;
    return array_of(std::move(index), bytes.subspan(start), where);
}

NpyArray read_npy(const std::filesystem::path& path) {
    const RandomFile file(path);
    NpyIndex index = index_npy(file);
    const std::vector<std::byte> payload = file.read_some(index.begin, index.end - index.begin);
    return array_of(std::move(index), payload, file.where());
}

std::vector<std::byte> to_npy(std::span<const float> values, std::span<const std::size_t> shape) {
    std::string dims;
    for (const std::size_t extent : shape) dims += std::to_string(extent) + (shape.size() == 1 ? "," : ", ");
    if (shape.size() > 1) dims.resize(dims.size() - 2);
    if (count_elements({shape.begin(), shape.end()}, sizeof(float), "to_npy") != values.size())
        throw usage_error("to_npy", "the shape (" + dims + ") does not have " +
                                        std::to_string(values.size()) + " elements");
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + dims + "), }";
    constexpr std::size_t kStart = 10, kAlign = 64;  // version 1.0; the payload starts at a multiple of 64
    header.append(kAlign - 1 - (kStart + header.size()) % kAlign, ' ').push_back('\n');
    std::string text(kMagic);
    text.append(
        {'\x01', '\x00', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)});
    text += header;
    std::vector<std::byte> bytes(text.size() + values.size_bytes());
    std::memcpy(bytes.data(), text.data(), text.size());
    if (!values.empty()) std::memcpy(bytes.data() + text.size(), values.data(), values.size_bytes());
    return bytes;
}

}  // namespace fp8lab
