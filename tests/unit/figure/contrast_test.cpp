// Every pair of text and ground, and of mark and ground, that the window or a figure draws, in all four
// themes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "core/figure/legible.h"

namespace fp8lab {
namespace {

constexpr Theme kThemes[] = {Theme::dark, Theme::light, Theme::projector, Theme::contrast};
constexpr Role kPlain[] = {Role::surface, Role::raised, Role::field};
constexpr Role kData[] = {Role::truth, Role::bf16,  Role::e4m3, Role::e5m2,
                          Role::sat,   Role::under, Role::block};
constexpr Role kWords[] = {Role::text, Role::muted, Role::warning};

Rgba on(Theme theme, Color over, Role under = Role::surface) {
    return blend(rgba(theme, over), rgba(theme, {under}));
}
double ratio(Theme theme, Color ink, Rgba ground) { return contrast_ratio(rgba(theme, ink), ground); }

// "projector: role 6 tone 2 on 3f4a52": what failed, in a capture.
struct Pair {
    Theme theme;
    Color ink;
    Rgba ground;
};
doctest::String toString(const Pair& pair) {
    const auto hex = [](Rgba c) {
        char text[8];
        std::snprintf(text, sizeof text, "%02x%02x%02x", c.r, c.g, c.b);
        return std::string(text);
    };
    return (std::string(to_string(pair.theme)) + ": role " + std::to_string(static_cast<int>(pair.ink.role)) +
            " tone " + std::to_string(static_cast<int>(pair.ink.tone)) + " on " + hex(pair.ground))
        .c_str();
}
void check_text(Theme theme, Color ink, Rgba ground) {
    const Pair pair{theme, ink, ground};
    CAPTURE(toString(pair));
    CHECK(ratio(theme, ink, ground) >= text_contrast(theme));
}
void check_mark(Theme theme, Color mark, Rgba ground) {
    const Pair pair{theme, mark, ground};
    CAPTURE(toString(pair));
    CHECK(ratio(theme, mark, ground) >= kMarkContrast);
}

TEST_CASE("every text reads on every ground: 4.5, and 7 for projector and contrast") {
    CHECK(text_contrast(Theme::dark) == 4.5);
    CHECK(text_contrast(Theme::projector) == 7);
    for (const Theme theme : kThemes) {
        for (const Role ground : kPlain) {
            for (const Role role : kWords) check_text(theme, {role}, rgba(theme, {ground}));
            for (const Role role : kData) check_text(theme, {role, Tone::ink}, rgba(theme, {ground}));
        }
        // Rows under the mouse and the cursor's column: a part of the field over surface and panel.
        for (const Role under : {Role::surface, Role::raised})
            for (const float part : {0.5F, 0.75F})
                for (const Role role : kWords)
                    check_text(theme, {role}, on(theme, {Role::field, Tone::fill, part}, under));
    }
}

TEST_CASE("a filled button reads: its words, and its key hint at three quarters") {
    for (const Theme theme : kThemes)
        for (const float opacity : {1.0F, 0.75F})
            check_text(theme, {Role::inverse, Tone::line, opacity}, rgba(theme, {Role::accent}));
}

TEST_CASE("what is typed reads while it is selected") {
    for (const Theme theme : kThemes)
        check_text(theme, {Role::text}, on(theme, {Role::axis, Tone::line, 0.3F}));
}

// look.md 2 and 3: text on the tint of a window. Half of it is the zone of subnormals; a band is fainter than
// both.
TEST_CASE("words on the window of a format, on its subnormals and on a pass band") {
    for (const Theme theme : kThemes)
        for (const Role role : {Role::e4m3, Role::e5m2})
            for (const Color area : {Color{role, Tone::tint}, {role, Tone::tint, 0.5F}, {role, Tone::band}}) {
                const Rgba ground = on(theme, area);
                for (const Color ink : {Color{Role::text}, {Role::muted}, {role, Tone::ink}})
                    check_text(theme, ink, ground);
                if (role == Role::e4m3 && theme != Theme::contrast)
                    check_text(theme, {Role::sat, Tone::ink}, ground);
            }
    for (const Theme theme : kThemes)
        for (const Role role : kData) {
            check_text(theme, {Role::text}, on(theme, {role, Tone::band}));
            check_text(theme, {Role::muted}, on(theme, {role, Tone::band}));
        }
}

TEST_CASE("words on a fill of any opacity read, and a fill that lets them read stays as it is") {
    for (const Theme theme : kThemes)
        for (const Role role : kData)
            for (int level = 0; level <= 63; ++level) {
                const Color asked{role, Tone::fill, static_cast<float>(level) / 63};
                const Ground ground = ground_for_words(theme, asked);
                const Rgba seen = on(theme, ground.fill);
                check_text(theme, ground.ink, seen);
                const double best = std::max(ratio(theme, {Role::text}, on(theme, asked)),
                                             ratio(theme, {Role::inverse}, on(theme, asked)));
                if (best >= text_contrast(theme)) CHECK(ground.fill == asked);
                // 7:1 leaves out a wide band of greys: strong shades look alike there, and the words tell
                // them apart.
                const float most = text_contrast(theme) > 4.5 ? 0.4F : 0.1F;
                CHECK(std::abs(ground.fill.opacity - asked.opacity) <= most);
            }
    // look.md 3: light text on the e4m3 fill has 1.9, dark text 8.0.
    CHECK(ground_for_words(Theme::dark, {Role::e4m3, Tone::fill}).ink.role == Role::inverse);
    CHECK(ground_for_words(Theme::light, {Role::e4m3, Tone::fill}).ink.role == Role::text);
}

TEST_CASE("every line and every marker stands out from the surface: 3, lines of the contrast theme 7") {
    for (const Theme theme : kThemes) {
        const Rgba surface = rgba(theme, {Role::surface});
        for (const Role role : kData) {
            check_mark(theme, {role, Tone::line}, surface);
            if (theme == Theme::contrast) CHECK(ratio(theme, {role, Tone::line}, surface) >= 7);
            // A fill that is too faint has a border in its line value.
            check_mark(theme, {role, bordered(theme, role) ? Tone::line : Tone::fill}, surface);
        }
        for (const Role ground : kPlain) {
            check_mark(theme, {Role::axis}, rgba(theme, {ground}));
            check_mark(theme, {Role::text}, rgba(theme, {ground}));  // knobs, focus ring
        }
        for (const Role ground : {Role::surface, Role::raised})  // the thumb of what scrolls
            check_mark(theme, {Role::axis, Tone::line, 0.8F}, rgba(theme, {ground}));
    }
}

TEST_CASE("a format's curve stands out from its own window") {
    for (const Theme theme : kThemes)
        for (const Role role : {Role::e4m3, Role::e5m2, Role::truth, Role::bf16})
            check_mark(theme, {role, Tone::line}, on(theme, {Role::e4m3, Tone::tint}));
}

TEST_CASE("the orange and the grey of white themes have a border, as look.md 2 has it, nothing else has") {
    for (const Theme theme : kThemes)
        for (const Role role : kData) {
            const bool white = theme == Theme::light || theme == Theme::projector;
            CHECK(bordered(theme, role) == (white && (role == Role::e4m3 || role == Role::under)));
        }
}

}  // namespace
}  // namespace fp8lab
