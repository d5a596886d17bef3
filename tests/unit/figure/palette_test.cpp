#include "core/figure/palette.h"

#include <doctest/doctest.h>

#include "core/base/error.h"

namespace fp8lab {
namespace {

constexpr Theme kThemes[] = {Theme::dark, Theme::light, Theme::projector, Theme::contrast};
TEST_CASE("contrast follows WCAG 2.1: black on white is 21, #777777 on white 4.48") {
    CHECK(contrast_ratio({0, 0, 0}, {255, 255, 255}) == doctest::Approx(21));
    CHECK(contrast_ratio({0x77, 0x77, 0x77}, {255, 255, 255}) == doctest::Approx(4.48).epsilon(0.001));
}

// Contrasts that look.md 3 asks for, a sample, to one decimal.
TEST_CASE("the computed ratios are those of the look's table") {
    CHECK(contrast_ratio(rgba(Theme::dark, {Role::text}), rgba(Theme::dark, {Role::surface})) ==
          doctest::Approx(16.3).epsilon(0.005));
    CHECK(contrast_ratio(rgba(Theme::light, {Role::e4m3, Tone::ink}), rgba(Theme::light, {Role::field})) ==
          doctest::Approx(5.4).epsilon(0.01));
    CHECK(contrast_ratio(rgba(Theme::projector, {Role::sat, Tone::line}),
                         rgba(Theme::projector, {Role::surface})) == doctest::Approx(7.1).epsilon(0.01));
}

TEST_CASE("fills are Okabe-Ito's, tints translucent, opacity multiplies") {
    for (const Theme theme : kThemes) CHECK(rgba(theme, {Role::e4m3, Tone::fill}) == Rgba{0xE6, 0x9F, 0x00});
    CHECK(rgba(Theme::light, {Role::e4m3, Tone::tint}).a == 56);  // 0.22 * 255
    CHECK(rgba(Theme::dark, {Role::e4m3, Tone::band}).a == 31);   // 0.12 * 255
    CHECK(rgba(Theme::dark, {Role::e4m3, Tone::line, 0.2F}).a == 51);
}

TEST_CASE("a theme is read by its name, an unknown one lists all four") {
    for (const Theme theme : kThemes) CHECK(parse_theme(to_string(theme)) == theme);
    CHECK_THROWS_WITH_AS(parse_theme("sepia"),
                         "--theme: unknown theme 'sepia'; valid: dark light projector contrast", Error);
}

}  // namespace
}  // namespace fp8lab
