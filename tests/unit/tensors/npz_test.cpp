#include "core/tensors/npz.h"

#include <doctest/doctest.h>

#include <cstring>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/tensors/inflate.h"

using namespace fp8lab;

namespace {

using Bytes = std::vector<std::byte>;

Bytes published(const char* name) {
    return read_bytes(std::string(FP8LAB_SOURCE "/tests/unit/tensors/published/") + name);
}

RandomFile archive(std::span<const std::byte> bytes) { return {{bytes.begin(), bytes.end()}, "a.npz"}; }

std::string refusal(std::span<const std::byte> bytes) {
    try {
        index_npz(archive(bytes));
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
    const auto arrays = index_npz(archive(bytes));
    REQUIRE(arrays.size() == 6);
    const NpyIndex& weights = arrays.at("weights").index;
    CHECK(weights.dtype == "<f4");
    CHECK(weights.shape == std::vector<std::size_t>{2, 3});
    REQUIRE(weights.end - weights.begin == 24);
    float second = 0;
    std::memcpy(&second, bytes.data() + weights.begin + 4, sizeof second);
    CHECK(second == -2);
    CHECK(arrays.at("ids").index.dtype == "<i8");
    CHECK(arrays.at("mask").index.dtype == "|b1");
    CHECK(arrays.at("halves").index.dtype == "<f2");
    CHECK(arrays.at("doubles").index.fortran_order);
    CHECK(arrays.at("scalar").index.shape.empty());
}

TEST_CASE("a compressed member is unpacked to the bytes that are not compressed") {
    const Bytes plain = published("savez.npz");
    const RandomFile packed = archive(published("savez_compressed.npz"));
    const auto arrays = index_npz(packed);
    REQUIRE(arrays.size() == 1);
    const auto& [index, member] = arrays.at("weights");
    const NpyIndex same = index_npz(archive(plain)).at("weights").index;
    CHECK(index.dtype == same.dtype);
    CHECK(index.shape == same.shape);
    const Bytes bytes = unpack(packed, member);
    REQUIRE(bytes.size() == member.size);
    REQUIRE(index.end == bytes.size());
    CHECK(std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(index.begin), bytes.end(),
                     plain.begin() + static_cast<std::ptrdiff_t>(same.begin)));
}

namespace {

void add(Bytes& bytes, std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i, value >>= 8) bytes.push_back(static_cast<std::byte>(value & 0xFF));
}
void add(Bytes& bytes, std::string_view text) {
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
}

// An archive of one deflated member, by APPNOTE.TXT, that says it has that size and that checksum.
Bytes one_member(const Bytes& packed, std::uint64_t size, std::uint32_t crc) {
    Bytes out;
    const auto record = [&](std::uint32_t signature, bool entry) {
        add(out, signature, 4);
        if (entry) add(out, 20, 2);
        add(out, 20, 2), add(out, 0, 2), add(out, 8, 2), add(out, 0, 4), add(out, crc, 4);
        add(out, packed.size(), 4), add(out, size, 4), add(out, 5, 2), add(out, 0, 2);
        if (entry) add(out, 0, 14);
        add(out, "x.npy");
    };
    record(0x04034b50, false);
    out.insert(out.end(), packed.begin(), packed.end());
    const std::size_t directory = out.size();
    record(0x02014b50, true);
    const std::size_t end = out.size();
    add(out, 0x06054b50, 4), add(out, 0, 4), add(out, 1, 2), add(out, 1, 2);
    add(out, end - directory, 4), add(out, directory, 4), add(out, 0, 2);
    return out;
}

// Deflate without compression: RFC 1951, 3.2.4.
Bytes in_blocks(const Bytes& bytes, std::size_t block) {
    Bytes out;
    for (std::size_t at = 0; at < bytes.size(); at += block) {
        const std::size_t size = std::min(block, bytes.size() - at);
        add(out, at + size == bytes.size() ? 1 : 0, 1), add(out, size, 2), add(out, ~size, 2);
        out.insert(out.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                   bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
    }
    return out;
}

}  // namespace

TEST_CASE("the checksum of ZIP is that of its test vector") {
    CHECK(crc32(std::as_bytes(std::span("123456789", 9))) == 0xCBF43926);  // ISO 3309, as catalogues have it
    CHECK(crc32({}) == 0);
}

TEST_CASE("data that do not compress come in blocks of any size") {
    std::vector<float> values(60'000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 65'521);
    const Bytes whole = to_npy(values, std::vector<std::size_t>{values.size()});
    for (const std::size_t block : {65'535U, 40'000U, 300U}) {
        const RandomFile file = archive(one_member(in_blocks(whole, block), whole.size(), crc32(whole)));
        const NpzArray array = index_npz(file).at("x");
        CHECK(array.index.shape == std::vector<std::size_t>{values.size()});
        CHECK(unpack(file, array.packed) == whole);
    }
}

TEST_CASE("a compressed member never becomes more than it says, and nothing else than its checksum says") {
    const Bytes whole = to_npy(std::vector<float>{1, 2, 3}, std::vector<std::size_t>{3});
    const Bytes packed = in_blocks(whole, 1000);
    const auto unpacked = [&](std::uint64_t size, std::uint32_t crc) -> std::string {
        try {
            const RandomFile file = archive(one_member(packed, size, crc));
            unpack(file, index_npz(file).at("x").packed);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            return error.what();
        }
        return "read";
    };
    CHECK(unpacked(whole.size(), crc32(whole)) == "read");
    CHECK(unpacked(whole.size(), crc32(whole) ^ 1).find("damaged") != std::string::npos);
    CHECK(unpacked(whole.size() - 4, crc32(whole)) != "read");
    CHECK(unpacked(whole.size() + 4, crc32(whole)) != "read");
    CHECK(unpacked(packed.size() * 2000, crc32(whole)).find("at most") != std::string::npos);
    CHECK(unpacked(0xF000'0000, crc32(whole)).find("at most 2147483647 are read") != std::string::npos);
}

TEST_CASE("a changed byte of a compressed .npz is refused, or changes no value") {
    const Bytes whole = published("savez_compressed.npz");
    const RandomFile good = archive(whole);
    const Bytes values = unpack(good, index_npz(good).at("weights").packed);
    for (std::size_t i = 0; i < whole.size(); ++i)
        for (const int change : {0x01, 0x80, 0xFF}) {
            Bytes bytes = whole;
            bytes[i] ^= static_cast<std::byte>(change);
            try {
                const RandomFile file = archive(bytes);
                for (const auto& [name, array] : index_npz(file)) {
                    if (array.packed.size == 0) continue;
                    const Bytes unpacked = unpack(file, array.packed);
                    REQUIRE((unpacked == values));
                }
            } catch (const Error& error) {
                REQUIRE(error.kind() == ErrorKind::input);
            }
        }
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
                for (const auto& [name, array] : index_npz(archive(bytes)))
                    REQUIRE((array.index.begin <= array.index.end && array.index.end <= bytes.size()));
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
