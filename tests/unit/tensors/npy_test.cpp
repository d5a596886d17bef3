#include "core/tensors/npy.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"

using namespace fp8lab;

namespace {

using Values = std::vector<float>;
using Shape = std::vector<std::size_t>;

std::vector<std::byte> to_bytes(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

std::string number(std::size_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
    return out;
}

// A file as numpy/lib/format.py describes it.
std::string file(const std::string& header, const std::string& payload, int version = 1) {
    return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' +
           number(header.size(), version == 1 ? 2 : 4) + header + payload;
}

template <class T>
std::string raw(const std::vector<T>& values) {
    std::string out(values.size() * sizeof(T), '\0');
    if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
    return out;
}

std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }          \n";
}

NpyArray parse(const std::string& bytes) { return parse_npy(to_bytes(bytes), "x.npy"); }

std::string why_refused(const std::string& bytes) {
    try {
        parse(bytes);
    } catch (const Error& e) {
        CHECK(e.kind() == ErrorKind::input);
        CHECK(e.where() == "x.npy");
        return e.why();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("float32 in C order, in all three versions of the format") {
    for (const int version : {1, 2, 3}) {
        CAPTURE(version);
        const NpyArray a =
            parse(file(dict("<f4", "False", "(2, 3)"), raw<float>({1, 2, 3, 4, 5, 6}), version));
        CHECK(a.dtype == "<f4");
        CHECK(a.shape == Shape{2, 3});
        CHECK(a.values == Values{1, 2, 3, 4, 5, 6});
    }
}

TEST_CASE("Fortran order is transposed to C order, in any number of dimensions") {
    const NpyArray a = parse(file(dict("<f4", "True", "(2, 3)"), raw<float>({1, 4, 2, 5, 3, 6})));
    CHECK(a.values == Values{1, 2, 3, 4, 5, 6});
    const NpyArray b = parse(file(dict("<f4", "True", "(2, 2, 2)"), raw<float>({0, 4, 2, 6, 1, 5, 3, 7})));
    CHECK(b.values == Values{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("float16: normals, subnormals, zeros and specials") {
    const NpyArray a =
        parse(file(dict("<f2", "False", "(8,)"),
                   raw<std::uint16_t>({0x3C00, 0xC000, 0x7BFF, 0x0001, 0x0400, 0x8000, 0x7C00, 0xFE00})));
    CHECK(a.shape == Shape{8});
    CHECK(Values(a.values.begin(), a.values.begin() + 5) == Values{1, -2, 65504, 0x1p-24F, 0x1p-14F});
    CHECK(a.values[5] == 0);
    CHECK(std::signbit(a.values[5]));
    CHECK(a.values[6] == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(a.values[7]));
}

TEST_CASE("float64 is rounded to the nearest float, ties to even") {
    const double tie = 1 + 0x1p-24;
    const NpyArray a =
        parse(file(dict("<f8", "False", "(4,)"), raw<double>({0.1, tie, tie + 0x1p-50, 1e300})));
    CHECK(a.values == Values{0.1F, 1, 1 + 0x1p-23F, std::numeric_limits<float>::infinity()});
}

TEST_CASE("scalars, empty arrays and other spellings of the header") {
    CHECK(parse(file(dict("<f4", "False", "()"), raw<float>({7}))).shape.empty());
    CHECK(parse(file(dict("<f4", "False", "()"), raw<float>({7}))).values == Values{7});
    CHECK(parse(file(dict("<f4", "True", "(0, 3)"), "")).size() == 0);
    CHECK(parse(file("{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"<f4\"}", raw<float>({7}))).size() ==
          1);
    CHECK(parse(file(dict("<f4", "False", "(1,1,)"), raw<float>({7}))).shape == Shape{1, 1});
}

TEST_CASE("other dtypes are refused by name") {
    for (const char* dtype :
         {"|O", "<c8", "<i4", "|u1", "<f1", "<V1", ">i4", "<f16", "=f4", "<U3", "|b1", "f4"})
        CHECK(why_refused(file(dict(dtype, "False", "(1,)"), raw<float>({1}))) ==
              "byte 20: dtype '" + std::string(dtype) + "' is not supported; valid: <f2 <f4 <f8 >f2 >f4 >f8");
    CHECK(why_refused(
              file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", raw<float>({1}))) ==
          "byte 20: structured dtype is not supported; valid: <f2 <f4 <f8 >f2 >f4 >f8");
}

TEST_CASE("big-endian arrays are read by swapping the bytes of each value, in either order of the indices") {
    CHECK(parse(file(dict(">f4", "False", "(2,)"), std::string("\x3F\xC0\x00\x00\xC0\x20\x00\x00", 8)))
              .values == Values{1.5F, -2.5F});
    CHECK(parse(file(dict(">f2", "False", "(2,)"), std::string("\x3C\x00\xC1\x00", 4))).values ==
          Values{1, -2.5F});
    CHECK(
        parse(file(dict(">f8", "True", "(1,2)"), std::string("\x3F\xF0\0\0\0\0\0\0\x40\x04\0\0\0\0\0\0", 16)))
            .values == Values{1, 2.5F});
}

TEST_CASE("truncated and oversized files are refused with the offset") {
    const std::string good = file(dict("<f4", "False", "(2,)"), raw<float>({1, 2}));
    const std::size_t start = good.size() - 8;
    for (std::size_t size = 0; size < good.size(); ++size) {
        CAPTURE(size);
        const std::string why = why_refused(good.substr(0, size));
        if (size < 6)
            CHECK(why.starts_with("byte 0: not an .npy file"));
        else if (size < start)
            CHECK(why == "byte " + std::to_string(size) + ": the file ends in its header");
        else
            CHECK(why == "byte " + std::to_string(start) + ": " + std::to_string(size - start) +
                             " bytes of data where the shape needs 8: the file is truncated");
    }
    CHECK(why_refused(good + "x").ends_with("9 bytes of data where the shape needs 8: too much data"));
}

TEST_CASE("malformed headers are refused with the offset") {
    const std::string one = raw<float>({1});
    CHECK(why_refused("PK\x03\x04 not numpy").starts_with("byte 0: not an .npy file"));
    CHECK(why_refused(file(dict("<f4", "False", "(1,)"), one, 4)).starts_with("byte 6: .npy version 4.0"));
    CHECK(why_refused(file("[1, 2]", one)) == "byte 10: malformed header: expected '{'");
    CHECK(why_refused(file("{'descr': '<f4', 'fortran_order': False}", one))
              .ends_with("must have the keys descr, fortran_order and shape"));
    CHECK(why_refused(file("{'descr': '<f4', 'descr': '<f4'}", one)) ==
          "byte 27: unexpected or repeated key 'descr'");
    CHECK(why_refused(file("{'color': 1}", one)) == "byte 11: unexpected or repeated key 'color'");
    CHECK(why_refused(file(dict("<f4", "0", "(1,)"), one)).ends_with("expected True or False"));
    CHECK(why_refused(file(dict("<f4", "False", "(1)"), one))
              .ends_with("expected ',' after the only dimension"));
    CHECK(why_refused(file(dict("<f4", "False", "(-1,)"), one)).ends_with("expected a dimension"));
    CHECK(why_refused(file(dict("<f4", "False", "(1 2)"), one))
              .ends_with("expected ',' after the only dimension"));
    CHECK(why_refused(file(dict("<f4", "False", "1"), one)).ends_with("expected '('"));
    CHECK(
        why_refused(file(dict("<f4", "False", "(1,)") + "x", one)).ends_with("text after the header's dict"));
    CHECK(why_refused(file("{'descr': '<f4", one)).ends_with("a string does not end"));
    CHECK(why_refused(file("{'descr", "")).ends_with("a string does not end"));
}

TEST_CASE("sizes that would overflow and headers above a mebibyte are refused before memory is asked for") {
    for (const char* shape : {"(18446744073709551615,)", "(4611686018427387904,)", "(4294967296, 4294967296)",
                              "(2, 9223372036854775808)"})
        CHECK(why_refused(file(dict("<f4", "False", shape), "")) == "the shape is too large");
    CHECK(why_refused(file(dict("<f4", "False", "(99999999999999999999,)"), ""))
              .ends_with("expected a dimension"));
    CHECK(why_refused(file(dict("<f4", "False", "(1000000000000,)"), "")).find("truncated") !=
          std::string::npos);
    std::string ones = "(";
    for (int i = 0; i < 65; ++i) ones += "1,";
    CHECK(why_refused(file(dict("<f4", "False", ones + ")"), raw<float>({1})))
              .ends_with("more than 64 dimensions"));
    const std::string header = dict("<f4", "False", "(1,)");
    const std::string padding(1024 * 1024 - header.size(), ' ');
    CHECK(parse(file(header + padding, raw<float>({1}), 2)).size() == 1);
    CHECK(why_refused(file(header + padding + " ", raw<float>({1}), 2)) ==
          "byte 8: the header has 1048577 bytes; at most 1048576 are read");
}

TEST_CASE("what to_npy writes is what NumPy would write") {
    const Values values = {1, -2.5F};
    const Shape shape = {2};
    const std::vector<std::byte> bytes = to_npy(values, shape);
    // numpy.save of float32 [1, -2.5]: 128 bytes of header, padded to a multiple of 64 with spaces and a
    // newline.
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    header.resize(117, ' ');
    header += '\n';
    CHECK(bytes == to_bytes(file(header, raw(values))));
}

TEST_CASE("to_npy and parse_npy are inverse, a wrong shape is refused") {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{2, 3}, Shape{0}, Shape{3, 1, 2}, Shape{4, 0}}) {
        std::size_t n = 1;
        for (const std::size_t extent : shape) n *= extent;
        Values values(n);
        for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i) / 3;
        const std::vector<std::byte> bytes = to_npy(values, shape);
        const NpyArray back = parse_npy(bytes, "x.npy");
        CHECK(back.shape == shape);
        CHECK(back.values == values);
        CHECK((bytes.size() - 4 * n) % 64 == 0);
    }
    CHECK_THROWS_AS(to_npy(Values{1, 2, 3}, Shape{2}), Error);
}

TEST_CASE("an .npy file that is not there is refused with its path") {
    CHECK_THROWS_WITH_AS(read_npy("/nonexistent/x.npy"), doctest::Contains("/nonexistent/x.npy"), Error);
}
