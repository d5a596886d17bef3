#include "core/tensors/npz.h"

#include <doctest/doctest.h>

#include <cstring>

#include "core/base/error.h"
#include "core/files/files.h"

using namespace fp8lab;

namespace {

using Bytes = std::vector<std::byte>;

Bytes published(const char* name) {
    return read_file(std::string(FP8LAB_SOURCE "/tests/unit/tensors/published/") + name);
}

std::string refusal(std::span<const std::byte> bytes) {
    try {
        index_npz(bytes, "a.npz");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "read";
}

std::size_t find(const Bytes& bytes, std::string_view what, std::size_t from = 0) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find(what, from);
}
template <class T>
void put(Bytes& bytes, std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

bool refuses(const Bytes& bytes, std::string_view why) {
    const std::string said = refusal(bytes);
    CAPTURE(said);
    CHECK(said.find("byte ") != said.npos);
    return said.find(why) != said.npos;
}

}  // namespace

// published/: numpy 1.24.2, savez and savez_compressed.
TEST_CASE("an .npz of numpy has its arrays by name, with dtype, shape and place") {
    const Bytes bytes = published("savez.npz");
    const auto arrays = index_npz(bytes, "a.npz");
    REQUIRE(arrays.size() == 6);
    const NpyIndex& weights = arrays.at("weights");
    CHECK(weights.dtype == "<f4");
    CHECK(weights.shape == std::vector<std::size_t>{2, 3});
    REQUIRE(weights.end - weights.begin == 24);
    float second = 0;
    std::memcpy(&second, bytes.data() + weights.begin + 4, sizeof second);
    CHECK(second == -2);
    CHECK(arrays.at("ids").dtype == "<i8");
    CHECK(arrays.at("mask").dtype == "|b1");
    CHECK(arrays.at("halves").dtype == "<f2");
    CHECK(arrays.at("doubles").fortran_order);
    CHECK(arrays.at("scalar").shape.empty());
}

TEST_CASE("a compressed .npz says how to save it instead") {
    CHECK(refuses(published("savez_compressed.npz"),
                  "member 'weights.npy': is compressed; save it with numpy.savez"));
}

TEST_CASE("every shortened .npz is refused with a byte") {
    const Bytes whole = published("savez.npz");
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        REQUIRE(refusal(std::span(whole).first(size)).find("byte ") != std::string::npos);
    }
}

TEST_CASE("a changed byte of an .npz is refused or leaves every array within the file") {
    const Bytes whole = published("savez.npz");
    for (std::size_t i = 0; i < whole.size(); ++i)
        for (const int change : {0x01, 0x80, 0xFF}) {
            Bytes bytes = whole;
            bytes[i] ^= static_cast<std::byte>(change);
            try {
                for (const auto& [name, array] : index_npz(bytes, "a.npz"))
                    REQUIRE((array.begin <= array.end && array.end <= bytes.size()));
            } catch (const Error& error) {
                REQUIRE(error.kind() == ErrorKind::input);
            }
        }
}

TEST_CASE("members of an .npz that overlap, lie elsewhere, are encrypted or have two names are refused") {
    const Bytes whole = published("savez.npz");
    const std::string entry("PK\x01\x02", 4);
    const std::size_t first = find(whole, entry), second = find(whole, entry, first + 1);
    Bytes overlapping = whole;  // the second entry names the first one's record
    std::memcpy(overlapping.data() + second + 42, whole.data() + first + 42, 4);
    CHECK(refuses(overlapping, "has another name in its record"));
    std::memcpy(overlapping.data() + second, whole.data() + first, second - first);  // twice the same entry
    CHECK(refusal(overlapping) != "read");
    Bytes outside = whole;
    put(outside, first + 42, std::uint32_t{0x7FFF'FFFF});
    CHECK(refuses(outside, "the archive is truncated"));
    Bytes long_data = whole;
    put(long_data, first + 20, std::uint32_t{0x7FFF'FFFE});
    put(long_data, first + 24, std::uint32_t{0x7FFF'FFFE});
    CHECK(refuses(long_data, "go on beyond the archive's directory"));
    Bytes encrypted = whole;
    put(encrypted, first + 8, std::uint16_t{1});
    CHECK(refuses(encrypted, "is encrypted"));
    Bytes many = whole;
    put(many, whole.size() - 12, std::uint16_t{60000});
    CHECK(refuses(many, "members do not fit"));
}
