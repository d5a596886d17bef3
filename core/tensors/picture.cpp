#include "core/tensors/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/json/read_json.h"
#include "core/tensors/inflate.h"
#include "core/tensors/stb.h"

namespace fp8lab {
namespace {

constexpr std::size_t kMostPixels = std::size_t{1} << 26;

double square(double x) { return x * x; }

// 0 below `from`, 1 above `to`, smooth between.
double rise(double from, double to, double x) {
    const double t = std::clamp((x - from) / (to - from), 0.0, 1.0);
    return t * t * (3 - 2 * t);
}

// The height of the hills at a column, in rows from the top.
double ridge(double x) { return 88 + 6 * std::sin(x / 17) + 3 * std::sin(x / 6.5 + 1); }

double sky(double x, double y) {
    const double distance = std::sqrt(square(x - 92) + square(y - 30));
    const double dusk = 0.1 + 0.42 * std::pow(y / 96, 1.5), glow = 0.22 * std::exp(-distance / 18),
                 moon = 1 - rise(10.0, 11.5, distance);
    const double sea = 0.05 * std::exp(-(square(x - 84) + square(y - 26)) / 18);  // a grey spot of the moon
    return dusk + glow + moon * (0.62 - 5 * sea);
}

void put_stars(Tensor& picture) {
    Rng rng(12);
    for (int i = 0; i < 40; ++i) {
        const std::size_t row = rng.below(64), col = rng.below(static_cast<std::uint32_t>(kPictureSide));
        const double size = 0.7 + 0.3 * rng.uniform();
        float& pixel = picture.values[row * picture.cols + col];
        pixel = std::max(pixel, static_cast<float>(size));
    }
}

// A row of houses before the hills: walls darker than the sky, windows that are lit or not.
void put_houses(Tensor& picture) {
    Rng rng(7);
    const auto side = static_cast<int>(kPictureSide);
    for (int left = 2; left + 14 < side;) {
        const int width = 9 + static_cast<int>(rng.below(7)), top = 92 + static_cast<int>(rng.below(14));
        const double wall = 0.05 + 0.06 * rng.uniform();
        for (int r = top; r < side; ++r)
            for (int c = left; c < std::min(left + width, side); ++c) {
                const bool window =
                    (r - top) % 6 >= 2 && (r - top) % 6 <= 3 && (c - left) % 4 == 2 && r < 122;
                const bool lit = window && rng.uniform() < 0.55;
                picture.values[static_cast<std::size_t>(r * side + c)] =
                    static_cast<float>(lit ? 0.7 + 0.3 * rng.uniform() : wall + 0.003 * (r - top));
            }
        left += width + 1 + static_cast<int>(rng.below(4));
    }
}

}  // namespace

Tensor draw_picture() {
    Tensor out{kPictureSide, kPictureSide, std::vector<float>(kPictureSide * kPictureSide),
               "picture",    {},           true};
    for (std::size_t r = 0; r < out.rows; ++r)
        for (std::size_t c = 0; c < out.cols; ++c) {
            const auto x = static_cast<double>(c), y = static_cast<double>(r);
            const double hill = rise(ridge(x) - 1, ridge(x) + 1, y), land = 0.14 + 0.1 * (y - 80) / 48;
            out.values[r * out.cols + c] =
                static_cast<float>(std::min(1.0, sky(x, y) * (1 - hill) + land * hill));
        }
    put_stars(out);
    put_houses(out);
    return out;
}

namespace {

std::uint32_t big_endian(std::span<const std::byte> bytes) {
    std::uint32_t out = 0;
    for (const std::byte byte : bytes.first(4)) out = out << 8 | std::to_integer<std::uint32_t>(byte);
    return out;
}

// Every chunk is there, up to IEND, with the checksum that it says (ISO/IEC 15948, 5.3: that of ZIP). stb_image reads on over both.
void check_chunks(std::span<const std::byte> bytes, const std::string& file) {
    constexpr std::size_t kAround = 12;  // length, type, checksum
    for (std::size_t at = 8;;) {
        const auto cut = [&] {
            return input_error(file, fmt::format("byte {}: the PNG is cut short", bytes.size()));
        };
        if (bytes.size() - at < kAround) throw cut();
        const std::size_t length = big_endian(bytes.subspan(at));
        if (length > bytes.size() - at - kAround) throw cut();
        const auto chunk = bytes.subspan(at + 4, 4 + length);
        const std::string type(reinterpret_cast<const char*>(chunk.data()), 4);
        if (crc32(chunk) != big_endian(bytes.subspan(at + 8 + length)))
            throw input_error(
                file, fmt::format("byte {}: the PNG is damaged: the checksum of its part {} is wrong", at,
                                  quote_from(type)));
        if (type == "IEND") return;
        at += kAround + length;
    }
}

}  // namespace

bool is_png(std::span<const std::byte> bytes) {
    constexpr std::uint8_t kHead[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    return bytes.size() >= std::size(kHead) &&
           std::equal(std::begin(kHead), std::end(kHead), bytes.begin(),
                      [](std::uint8_t a, std::byte b) { return std::byte{a} == b; });
}

Tensor read_picture(std::span<const std::byte> bytes, const std::string& file) {
    // From the header itself: which faults stbi_info_from_memory() sees differs between its versions.
    constexpr std::size_t kHeader = 33;  // signature and IHDR
    const bool has_header =
        is_png(bytes) && bytes.size() >= kHeader && big_endian(bytes.subspan(12)) == 0x49484452;
    const std::size_t cols = has_header ? big_endian(bytes.subspan(16)) : 0,
                      rows = has_header ? big_endian(bytes.subspan(20)) : 0;
    if (cols == 0 || rows == 0) throw input_error(file, "byte 0: not a PNG");
    if (rows > kMostPixels / cols) throw input_error(file, "byte 16: more than 2^26 pixels");
    check_chunks(bytes, file);
    int width = 0, height = 0, channels = 0;
    const auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
    const auto size = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
    const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
        stbi_load_from_memory(data, size, &width, &height, &channels, 3), stbi_image_free);
    if (!pixels) {
        const char* const reason = stbi_failure_reason();
        throw input_error(file, std::string("the PNG cannot be read: ") +
                                    (reason && *reason ? reason : "its pixels cannot be unpacked"));
    }
    // Each pixel of the tensor is the mean of a rectangle of the file's.
    const std::size_t longer = std::max(rows, cols);
    const auto reduced = [&](std::size_t side) {
        return longer <= kPictureSide ? side : std::max<std::size_t>(1, side * kPictureSide / longer);
    };
    Tensor out{reduced(rows), reduced(cols), {}, std::filesystem::path(file).stem().string(), {}, true};
    out.values.reserve(out.rows * out.cols);
    for (std::size_t r = 0; r < out.rows; ++r)
        for (std::size_t c = 0; c < out.cols; ++c) {
            const std::size_t top = r * rows / out.rows, bottom = (r + 1) * rows / out.rows;
            const std::size_t left = c * cols / out.cols, right = (c + 1) * cols / out.cols;
            double sum = 0;
            for (std::size_t y = top; y < bottom; ++y)
                for (std::size_t x = left; x < right; ++x) {
                    const stbi_uc* p = pixels.get() + 3 * (y * cols + x);
                    sum += 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
                }
            const auto count = static_cast<double>((bottom - top) * (right - left));
            out.values.push_back(static_cast<float>(sum / count / 255));
        }
    return out;
}

}  // namespace fp8lab
