// Pictures as tensors. The files were written by Python's zlib and struct, from the PNG specification.
#include "core/tensors/picture.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/tensors/file.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

// 3x2, RGB: red, green, blue; black, white, 51 of 255.
constexpr std::uint8_t kColours[] = {
    137, 80,  78,  71,  13,  10,  26,  10,  0, 0,   0,  13,  73,  72,  68, 82,  0,  0,  0,  3,
    0,   0,   0,   2,   8,   2,   0,   0,   0, 18,  22, 241, 77,  0,   0,  0,   22, 73, 68, 65,
    84,  120, 218, 99,  248, 207, 192, 192, 0, 195, 12, 255, 255, 255, 55, 54,  54, 6,  0,  61,
    10,  6,   148, 107, 235, 11,  23,  0,   0, 0,   0,  73,  69,  78,  68, 174, 66, 96, 130};
// 256x4, grey: 127 black columns, 129 white ones.
constexpr std::uint8_t kWide[] = {
    137, 80, 78,  71,  13,  10,  26,  10,  0,  0,   0,   13, 73,  72, 68,  82,  0,  0,  1,  0,   0,
    0,   0,  4,   8,   0,   0,   0,   0,   68, 255, 190, 24, 0,   0,  0,   24,  73, 68, 65, 84,  120,
    218, 99, 96,  24,  88,  240, 127, 160, 1,  195, 104, 0,  140, 6,  192, 200, 14, 0,  0,  182, 242,
    2,   27, 102, 173, 115, 253, 0,   0,   0,  0,   73,  69, 78,  68, 174, 66,  96, 130};
// 2x1, grey of 16 bits: 0 and 65535.
constexpr std::uint8_t kDeep[] = {
    137, 80, 78, 71, 13, 10,  26,  10,  0,  0,   0, 13, 73, 72, 68, 82, 0,  0,   0,   2,  0,  0,  0,   1,
    16,  0,  0,  0,  0,  129, 217, 252, 21, 0,   0, 0,  13, 73, 68, 65, 84, 120, 218, 99, 96, 96, 248, 255,
    31,  0,  3,  2,  1,  255, 57,  41,  25, 190, 0, 0,  0,  0,  73, 69, 78, 68,  174, 66, 96, 130};

template <std::size_t N>
std::span<const std::byte> bytes(const std::uint8_t (&file)[N]) {
    return std::as_bytes(std::span(file));
}

}  // namespace

TEST_CASE("a PNG is a tensor of its grey values") {
    const Tensor picture = read_picture(bytes(kColours), "colours.png");
    CHECK(picture.picture);
    CHECK((picture.rows == 2 && picture.cols == 3));
    CHECK(picture.name == "colours");
    const float expected[] = {0.299F, 0.587F, 0.114F, 0, 1, 0.2F};
    for (std::size_t i = 0; i < 6; ++i)
        CHECK(picture.values[i] == doctest::Approx(static_cast<double>(expected[i])));
    CHECK(read_picture(bytes(kDeep), "x").values == std::vector<float>{0, 1});
}

TEST_CASE("a PNG that is cut short or damaged is refused with the byte and a reason") {
    const auto why = [](std::span<const std::byte> file) -> std::string {
        try {
            read_picture(file, "x.png");
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            return error.what();
        }
        return "";
    };
    CHECK(why(bytes(kColours)) == "");
    // At every length from behind its head on.
    for (std::size_t n = 33; n < std::size(kColours); ++n)
        CHECK(why(bytes(kColours).first(n)) == "x.png: byte " + std::to_string(n) + ": the PNG is cut short");
    // Each bit of the packed pixels, and of their checksum.
    for (std::size_t at = 41; at < 67; ++at)
        for (int bit = 0; bit < 8; ++bit) {
            std::vector<std::byte> damaged(bytes(kColours).begin(), bytes(kColours).end());
            damaged[at] ^= std::byte{1} << bit;
            CHECK(why(damaged) ==
                  "x.png: byte 33: the PNG is damaged: the checksum of its part IDAT is wrong");
        }
}

TEST_CASE("a large picture is reduced to 128 pixels, each the mean of those that it covers") {
    const Tensor picture = read_picture(bytes(kWide), "wide.png");
    CHECK((picture.rows == 2 && picture.cols == 128));
    CHECK(picture.values[62] == 0);
    CHECK(picture.values[63] == doctest::Approx(0.5));  // one column black, one white
    CHECK(picture.values[64] == 1);
}

TEST_CASE("a PNG is read by its content, and a broken one is refused with its name") {
    const Scratch scratch;
    write_file(scratch / "photo", bytes(kColours));
    CHECK(read_tensor(scratch / "photo").picture);
    CHECK_THROWS_WITH_AS(read_tensor(scratch / "photo:x"), doctest::Contains("leave out ':x'"), Error);
    for (const std::size_t kept : {std::size_t{8}, std::size_t{30}, sizeof kColours - 20}) {
        write_file(scratch / "cut.png", bytes(kColours).first(kept));
        CAPTURE(kept);
        CHECK_THROWS_WITH_AS(read_tensor(scratch / "cut.png"), doctest::Contains("cut.png: "), Error);
    }
    CHECK_FALSE(is_png(bytes(kColours).first(7)));
}
