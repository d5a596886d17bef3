#include <doctest/doctest.h>

#include <cmath>

#include "labs/bits/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::bits;

namespace {

using Screen = test::LabScreen<BitsLab, BitsView>;

}  // namespace

TEST_CASE("a click on the last bit turns 448 into NaN, and the keys do the same") {
    Screen screen;
    screen.click("bits.bit0");
    CHECK(screen.lab->outcome->reading.code == 0x7F);
    CHECK(screen.view.key(screen.gui.context, ui::Key::digit_0));
    CHECK(screen.lab->outcome->reading.code == 0x7E);
    CHECK(screen.view.key(screen.gui.context, ui::Key::digit_7));
    CHECK(screen.lab->outcome->reading.value == -448);
    CHECK_FALSE(screen.view.key(screen.gui.context, ui::Key::a));
    for (int bit = 0; bit < 8; ++bit) {
        const std::uint32_t before = screen.lab->outcome->reading.code;
        screen.click("bits.bit" + std::to_string(bit));
        CHECK(screen.lab->outcome->reading.code == (before ^ (1U << bit)));
    }
}

TEST_CASE("a click in the map selects the code of its row and column, a drag follows") {
    Screen screen;
    const Rect map = screen.gui.rect("bits.map");
    const auto cell = [&](int code) {
        return Point{map.x0 + (static_cast<float>(code % 16) + 0.5F) * map.width() / 16,
                     map.y0 + (static_cast<float>(code / 16) + 0.5F) * map.height() / 16};
    };
    screen.click(cell(0x38));
    CHECK(screen.lab->outcome->reading.value == 1);
    screen.gui.move(cell(0x40));
    screen.frame();
    screen.gui.mouse(true);
    screen.frame();
    screen.gui.move(cell(0xC0));
    screen.frame();
    screen.gui.mouse(false);
    screen.frame();
    CHECK(screen.lab->outcome->reading.value == -2);
}

TEST_CASE("in 16 bits the map selects the high byte and keeps the low one") {
    Screen screen;
    screen.lab->select_format("fp16");
    screen.lab.update();
    screen.lab->select(0x3C01);
    screen.lab.update();
    screen.frame();
    const Rect map = screen.gui.rect("bits.map");
    screen.click(Point{map.x0 + 0.5F * map.width() / 16, map.y0 + 4.5F * map.height() / 16});
    CHECK(screen.lab->outcome->reading.code == 0x4001);
}

TEST_CASE("the list at the end of the line selects, and the tabs switch the format") {
    Screen screen;
    screen.click("bits.end.0x7D");
    CHECK(screen.lab->outcome->reading.value == 416);
    screen.click("bits.specials.1");
    CHECK(screen.lab->outcome->rules == "ieee");
    const std::vector<Field> fields = screen.lab.fields();  // tabs stand in rows of four
    for (std::size_t i = 0; i < fields[0].choices.size(); ++i) {
        screen.click("bits.format" + std::to_string(i / 4) + "." + std::to_string(i % 4));
        CHECK(screen.lab->params.format == fields[0].choices[i].id);
    }
}

TEST_CASE("a code or number typed into the field is taken on Enter, a wrong one is answered") {
    Screen screen;
    const auto type = [&](std::string_view text) {
        screen.click("bits.entry");
        for (int i = 0; i < 3; ++i) screen.frame();  // the input takes the keyboard
        ui::feed_text(text);
        screen.frame();
        test::tap(ui::Key::enter, [&] { screen.frame(); });
    };
    type("300");
    CHECK(screen.lab->outcome->reading.value == 288);
    type("0x38");
    CHECK(screen.lab->outcome->reading.value == 1);
    type("0x99Z");
    CHECK(screen.lab->outcome->reading.value == 1);
    type("-2");  // the refused text was selected, so this replaces it
    CHECK(screen.lab->outcome->reading.value == -2);
    CHECK(test::draw_data_fault().empty());
}

TEST_CASE("every format fits every stage: nothing outside it, no bit under another") {
    const ImVec2 sizes[] = {{560, 536}, {860, 760}, {944, 540}, {1500, 1000}};
    for (const ImVec2 size : sizes) {
        for (const float scale : {0.75F, 1.0F, 2.0F}) {
            Screen screen({size.x * scale, size.y * scale}, scale, Theme::light);
            for (const char* format : {"e4m3", "e5m2", "e3m2", "e2m1", "e8m0", "fp16", "bf16", "custom"}) {
                CAPTURE(size.x);
                CAPTURE(scale);
                CAPTURE(format);
                screen.lab->select_format(format);
                screen.lab.update();
                screen.gui.context.probes.items.clear();
                screen.frame();
                screen.frame();
                CHECK(test::draw_data_fault().empty());
                const Rect map = screen.gui.rect("bits.map");
                CHECK(map.width() > 100 * scale);
                CHECK(map.y1 <= screen.area.y1 + 1);
                for (const auto& [name, item] : screen.gui.context.probes.items) {
                    if (!name.starts_with("bits.bit") && !name.starts_with("bits.end") && name != "bits.map")
                        continue;
                    CAPTURE(name);
                    CHECK(item.rect.x0 >= screen.area.x0 - 1);
                    CHECK(item.rect.x1 <= screen.area.x1 + 1);
                    CHECK(item.rect.y1 <= screen.area.y1 + 1);
                }
                const int bit_count = width_bits(screen.lab->outcome->format);
                for (int bit = 1; bit < bit_count; ++bit) {
                    const Rect left = screen.gui.rect("bits.bit" + std::to_string(bit));
                    CHECK(left.x1 <= screen.gui.rect("bits.bit" + std::to_string(bit - 1)).x0);
                }
            }
        }
    }
}

TEST_CASE("walking over the format tabs with Tab leaves the format alone, an arrow key chooses") {
    Screen screen;
    const auto tap = [&](ui::Key key) { test::tap(key, [&] { screen.frame(); }); };
    screen.click("bits.format0.0");
    tap(ui::Key::tab);  // the second row
    CHECK(screen.lab->params.format == "e4m3");
    tap(ui::Key::right);
    CHECK(screen.lab->params.format == "e2m3");
    for (int i = 0; i < 40; ++i) tap(ui::Key::tab);
    CHECK(screen.lab->params.format == "e2m3");
}
