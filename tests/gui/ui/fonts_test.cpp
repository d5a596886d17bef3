#include "labs/ui/fonts.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "core/base/error.h"
#include "tests/gui/gui.h"

using namespace fp8lab;
using test::Gui;

TEST_CASE("every face and size of the look has its own atlas entry and all of the glyphs we print") {
    Gui gui;
    for (const Face face : {Face::sans, Face::sans_bold, Face::mono, Face::mono_bold}) {
        for (const float size : {13.0F, 15.0F, 18.0F, 24.0F, 32.0F}) {
            CAPTURE(size);
            const ImFont* font = gui.context.font({face, size});
            CHECK(gui.context.fonts.at(ui::font_key({face, size})) == font);
            for (const ImWchar glyph :
                 std::initializer_list<ImWchar>{0x41, 0xB7, 0xD7, 0x2009, 0x2019, 0x2192, 0x2212}) {
                CAPTURE(glyph);
                CHECK(font->FindGlyphNoFallback(glyph) != nullptr);
            }
        }
    }
}

TEST_CASE("fonts are rebuilt at the scale, never stretched") {
    Gui gui;
    const float before = gui.context.font({Face::mono, 13})->FontSize;
    gui.context.scale = 2;
    ui::load_fonts(gui.context);
    CHECK(gui.context.font({Face::mono, 13})->FontSize == doctest::Approx(2 * before).epsilon(0.04));
}

TEST_CASE("mono digits are of one width, and figures align") {
    Gui gui;
    const ImFont* font = gui.context.font({Face::mono, 13});
    for (ImWchar c = '1'; c <= '9'; ++c) CHECK(font->GetCharAdvance(c) == font->GetCharAdvance('0'));
}

TEST_CASE("capitals of both families stand on the same baseline") {
    Gui gui;
    for (const float size : {13.0F, 15.0F, 18.0F, 24.0F, 32.0F}) {
        CAPTURE(size);
        const float sans = gui.context.font({Face::sans, size})->FindGlyph('H')->Y1;
        const float mono = gui.context.font({Face::mono, size})->FindGlyph('H')->Y1;
        CHECK(sans == mono);
    }
}

TEST_CASE("a font file that is not a font is refused with its path") {
    Gui gui;
    setenv("FP8LAB_ASSETS", FP8LAB_SOURCE "/tests/gui/broken_assets", 1);
    CHECK_THROWS_WITH_AS(ui::load_fonts(gui.context), doctest::Contains("Inter-Regular.otf is not a font"),
                         Error);
    unsetenv("FP8LAB_ASSETS");
}
