#include "core/figure/palette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/base/error.h"

namespace fp8lab {

namespace {

constexpr std::array<std::string_view, 4> kThemes = {"dark", "light", "projector", "contrast"};

constexpr Rgba hex(std::uint32_t rgb) {
    return {static_cast<std::uint8_t>(rgb >> 16), static_cast<std::uint8_t>(rgb >> 8 & 0xFF),
            static_cast<std::uint8_t>(rgb & 0xFF)};
}

// The roles of look.md 2; columns in the order of Theme. In the fourth every text and stroke has 7:1 or more.
using PerTheme = std::array<std::uint32_t, 4>;

struct InterfaceRow {
    Role role;
    PerTheme value;
};
constexpr std::array<InterfaceRow, 11> kInterface = {{
    {Role::surface, {0x0F1114, 0xFFFFFF, 0xFFFFFF, 0x000000}},
    {Role::raised, {0x16191E, 0xF6F7F9, 0xF2F4F6, 0x0B0D10}},
    {Role::field, {0x222831, 0xE7EAEE, 0xE3E7EB, 0x1E2329}},
    {Role::line, {0x2D343E, 0xD3D8DE, 0xBFC6CE, 0xA3ACB8}},
    {Role::grid, {0x1D2228, 0xECEEF1, 0xE3E7EB, 0x3A424C}},
    {Role::axis, {0x717B88, 0x6C7580, 0x4A525C, 0xFFFFFF}},
    {Role::text, {0xECEEF1, 0x14171B, 0x000000, 0xFFFFFF}},
    {Role::muted, {0xA3ACB8, 0x545D68, 0x3A424C, 0xDDE2E8}},
    {Role::accent, {0xECEEF1, 0x14171B, 0x000000, 0xFFFFFF}},
    {Role::inverse, {0x0F1114, 0xFFFFFF, 0xFFFFFF, 0x000000}},
    {Role::warning, {0xF5793A, 0xA84700, 0x7A3300, 0xFFA66B}},
}};

struct DataRow {
    Role role;
    PerTheme fill, line, ink;
};
constexpr std::array<DataRow, 7> kData = {{
    {Role::truth,
     {0xECEEF1, 0x14171B, 0x000000, 0xFFFFFF},
     {0xECEEF1, 0x14171B, 0x000000, 0xFFFFFF},
     {0xECEEF1, 0x14171B, 0x000000, 0xFFFFFF}},
    {Role::bf16,
     {0x0072B2, 0x0072B2, 0x0072B2, 0x0072B2},
     {0x3C9FE0, 0x0072B2, 0x0072B2, 0x6FC0F5},
     {0x62B5EE, 0x00629A, 0x004B78, 0x8ACBF7}},
    {Role::e4m3,
     {0xE69F00, 0xE69F00, 0xE69F00, 0xE69F00},
     {0xE69F00, 0xB27800, 0xA86F00, 0xFFB81F},
     {0xF2B53A, 0x7F5500, 0x5E3F00, 0xFFC84D}},
    {Role::e5m2,
     {0xCC79A7, 0xCC79A7, 0xCC79A7, 0xCC79A7},
     {0xCC79A7, 0xA3427A, 0x8E2F66, 0xEBA3CB},
     {0xDF9BC1, 0x963B70, 0x6E2450, 0xF2B8D7}},
    {Role::sat,
     {0xD55E00, 0xD55E00, 0xD55E00, 0xD55E00},
     {0xE8661A, 0xB23C00, 0x9E3500, 0xFF9047},
     {0xFF8A4C, 0xA84700, 0x7A3300, 0xFFA66B}},
    {Role::under,
     {0x5C6672, 0x87909B, 0x7C858F, 0x87909B},
     {0x727C89, 0x7D8691, 0x737C87, 0xB4BDC8},
     {0xA3ACB8, 0x545D68, 0x3A424C, 0xDDE2E8}},
    {Role::block,
     {0x009E73, 0x009E73, 0x009E73, 0x009E73},
     {0x0FB386, 0x008561, 0x007A59, 0x38D6A8},
     {0x33C79C, 0x006B4E, 0x00523B, 0x5CE0BA}},
}};

constexpr std::array<float, 4> kTint = {0.20F, 0.22F, 0.28F, 0.28F};  // a format's window
constexpr float kBand = 0.12F;                                        // the pass band

std::uint8_t alpha(float opacity) {
    return static_cast<std::uint8_t>(std::lround(255.0F * std::clamp(opacity, 0.0F, 1.0F)));
}

double luminance(Rgba color) {
    const auto linear = [](std::uint8_t channel) {
        const double c = channel / 255.0;
        return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b);
}

}  // namespace

Theme parse_theme(std::string_view text, std::string_view where) {
    const auto found = std::find(kThemes.begin(), kThemes.end(), text);
    if (found == kThemes.end())
        throw unknown_name(std::string(where), "theme", text, kThemes, [](auto name) { return name; });
    return static_cast<Theme>(found - kThemes.begin());
}

std::string_view to_string(Theme theme) { return kThemes.at(static_cast<std::size_t>(theme)); }

Rgba rgba(Theme theme, Color color) {
    const auto column = static_cast<std::size_t>(theme);
    for (const InterfaceRow& row : kInterface) {
        if (row.role != color.role) continue;
        Rgba out = hex(row.value.at(column));
        out.a = alpha(color.opacity);
        return out;
    }
    const auto& row =
        *std::find_if(kData.begin(), kData.end(), [&](const DataRow& r) { return r.role == color.role; });
    const PerTheme& values = color.tone == Tone::line  ? row.line
                             : color.tone == Tone::ink ? row.ink
                                                       : row.fill;
    Rgba out = hex(values.at(column));
    const float tint = color.tone == Tone::tint ? kTint.at(column) : color.tone == Tone::band ? kBand : 1.0F;
    out.a = alpha(tint * color.opacity);
    return out;
}

Rgba blend(Rgba over, Rgba under) {
    const auto mix = [&](std::uint8_t a, std::uint8_t b) {
        return static_cast<std::uint8_t>((a * over.a + b * (255 - over.a) + 127) / 255);
    };
    return {mix(over.r, under.r), mix(over.g, under.g), mix(over.b, under.b)};
}

double contrast_ratio(Rgba foreground, Rgba background) {
    const double a = luminance(blend(foreground, background)), b = luminance(background);
    return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

}  // namespace fp8lab
