#include "labs/ui/widgets.h"

#include <doctest/doctest.h>

#include <array>
#include <set>

#include "tests/gui/gui.h"

using namespace fp8lab;
using test::Gui;

namespace {

const std::vector<std::string> kThree = {"max", "gap", "class"};

// ImGui takes characters from the second frame on after a field was opened.
void open_frames(Gui& gui, const Gui::Draw& draw) {
    gui.frame(draw);
    gui.frame(draw);
}

}  // namespace

TEST_CASE("a click on a button is reported once, in the frame of the release") {
    Gui gui;
    int clicks = 0;
    const Gui::Draw draw = [&](ui::Context& c) { clicks += ui::button(c, "go", "Go") ? 1 : 0; };
    gui.frame(draw);
    gui.click("go", draw);
    gui.frame(draw);
    CHECK(clicks == 1);
}

TEST_CASE("a disabled button does nothing") {
    Gui gui;
    int clicks = 0;
    const Gui::Draw draw = [&](ui::Context& c) {
        clicks += ui::button(c, "go", "Go", {.disabled = true}) ? 1 : 0;
    };
    gui.frame(draw);
    gui.click("go", draw);
    gui.press_key(ui::Key::tab, draw);
    gui.press_key(ui::Key::enter, draw);
    CHECK(clicks == 0);
}

TEST_CASE("a key hint on the accent button keeps a contrast of 4.5 in every theme") {
    for (const Theme theme : {Theme::dark, Theme::light, Theme::projector, Theme::contrast}) {
        CAPTURE(std::string(to_string(theme)));
        const Rgba ground = rgba(theme, {Role::accent});
        const ImU32 accent = IM_COL32(ground.r, ground.g, ground.b, ground.a);
        Gui gui{{800, 600}, theme};
        const auto inks = [&](std::string_view key) {  // of all vertices, the button's own ground aside
            gui.frame([&](ui::Context& c) { ui::button(c, "go", "Run", {.key = key, .primary = true}); });
            std::set<ImU32> colors;
            const ImDrawData& data = *ImGui::GetDrawData();
            for (int i = 0; i < data.CmdListsCount; ++i) {
                for (const ImDrawVert& v : data.CmdLists[i]->VtxBuffer) colors.insert(v.col);
            }
            colors.erase(accent);
            return colors;
        };
        const std::set<ImU32> without = inks("");
        int hints = 0;
        for (const ImU32 ink : inks("Space")) {
            if (without.contains(ink)) continue;
            ++hints;
            const auto channel = [ink](int shift) { return static_cast<std::uint8_t>(ink >> shift & 0xFFU); };
            const Rgba over{channel(IM_COL32_R_SHIFT), channel(IM_COL32_G_SHIFT), channel(IM_COL32_B_SHIFT),
                            channel(IM_COL32_A_SHIFT)};
            CHECK(contrast_ratio(blend(over, ground), ground) >= 4.5);
        }
        CHECK(hints == 1);  // quieter than the words, which have the full inverse
    }
}

TEST_CASE("dragging a slider to its ends gives exactly the range") {
    Gui gui;
    double value = 5;
    const Gui::Draw draw = [&](ui::Context& c) { ui::slider(c, "lr", "Learning rate", "", value, 0.25, 10); };
    gui.frame(draw);
    const Rect r = gui.rect("lr");
    const float y = (r.y0 + r.y1) / 2;
    gui.move({(r.x0 + r.x1) / 2, y});
    gui.frame(draw);
    gui.mouse(true);
    gui.frame(draw);
    gui.move({r.x1 + 50, y});
    gui.frame(draw);
    CHECK(value == 10);
    gui.move({r.x0 - 50, y});
    gui.frame(draw);
    CHECK(value == 0.25);
    gui.mouse(false);
    gui.frame(draw);
}

TEST_CASE("the middle of a logarithmic slider is the geometric mean, to three digits") {
    Gui gui;
    double value = 1;
    const Gui::Draw draw = [&](ui::Context& c) {
        ui::slider(c, "s", "Scale", "scale", value, 1e-4, 1e4, {.logarithmic = true});
    };
    gui.frame(draw);
    value = 77;
    gui.click("s", draw);
    CHECK(value == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("arrow keys move a focused slider by its step and stop at the range") {
    Gui gui;
    double value = 7;
    const Gui::Draw draw = [&](ui::Context& c) {
        ui::slider(c, "m", "Margin", "margin", value, 0, 8, {.step = 1});
    };
    gui.frame(draw);
    gui.press_key(ui::Key::tab, draw);  // the value field
    gui.press_key(ui::Key::tab, draw);  // the track
    gui.press_key(ui::Key::right, draw);
    CHECK(value == 8);
    gui.press_key(ui::Key::right, draw);
    CHECK(value == 8);
    gui.press_key(ui::Key::left, draw);
    CHECK(value == 7);
    gui.press_key(ui::Key::home, draw);
    CHECK(value == 0);
}

TEST_CASE("arrow keys change a whole number on a logarithmic slider wherever it stands") {
    Gui gui;
    double value = 1;
    const Gui::Draw draw = [&](ui::Context& c) {
        ui::slider(c, "h", "History", "", value, 1, 4096, {.logarithmic = true, .step = 1});
    };
    gui.frame(draw);
    gui.press_key(ui::Key::tab, draw, true);  // backwards: the track is the last control
    for (const double expected : {2.0, 3.0, 4.0}) {
        gui.press_key(ui::Key::right, draw);
        CHECK(value == expected);
    }
    value = 1000;
    gui.press_key(ui::Key::right, draw);
    CHECK(value > 1001);
    CHECK(value == std::floor(value));
}

TEST_CASE("a value that is typed is taken exactly, clamped to the range, and nonsense is refused") {
    Gui gui;
    double value = 0.5;
    const Gui::Draw draw = [&](ui::Context& c) { ui::slider(c, "lr", "Learning rate", "", value, 0, 1); };
    const auto type_value = [&](std::string_view words) {
        gui.click("lr.value", draw);
        open_frames(gui, draw);
        gui.type(words, draw);
        gui.press_key(ui::Key::enter, draw);
        gui.frame(draw);
    };
    gui.frame(draw);
    type_value("0.123456789");
    CHECK(value == 0.123456789);
    type_value("7");
    CHECK(value == 1);
    type_value("fast");
    CHECK(value == 1);
    type_value("nan");
    CHECK(value == 1);
}

TEST_CASE("Escape leaves a value as it was") {
    Gui gui;
    double value = 0.5;
    const Gui::Draw draw = [&](ui::Context& c) { ui::slider(c, "lr", "Learning rate", "", value, 0, 1); };
    gui.frame(draw);
    gui.click("lr.value", draw);
    open_frames(gui, draw);
    gui.type("0.9", draw);
    gui.press_key(ui::Key::escape, draw);
    gui.frame(draw);
    CHECK(value == 0.5);
    CHECK(gui.context.typing.name.empty());
}

TEST_CASE("Tab leaves a field that is edited and keeps what was typed, a field after it is edited at once") {
    Gui gui;
    std::string first = "a", second = "b";
    double number = 1;
    bool pressed = false;
    const Gui::Draw draw = [&](ui::Context& c) {
        ui::text_input(c, "first", first);
        ui::text_input(c, "second", second);
        ui::slider(c, "number", "Number", "", number, 0, 10);
        pressed |= ui::button(c, "go", "Go");
    };
    gui.frame(draw);
    gui.click("first", draw);
    open_frames(gui, draw);
    gui.type("x", draw);
    gui.press_key(ui::Key::tab, draw);
    CHECK(first == "ax");  // a click puts the caret at the end
    open_frames(gui, draw);
    gui.type("y", draw);
    gui.press_key(ui::Key::tab, draw, true);  // back
    CHECK(second == "y");                     // the keyboard selects what it comes to
    open_frames(gui, draw);
    gui.type("z", draw);
    gui.press_key(ui::Key::tab, draw);
    CHECK(first == "z");
    open_frames(gui, draw);
    gui.press_key(ui::Key::tab, draw);
    CHECK(second == "y");
    CHECK(gui.context.focus.name == "number.value");  // shows its number: Enter edits it
    CHECK(gui.context.typing.name.empty());
    gui.press_key(ui::Key::enter, draw);
    open_frames(gui, draw);
    gui.type("7", draw);
    gui.press_key(ui::Key::tab, draw);
    CHECK(number == 7);
    CHECK(gui.context.focus.name == "number");
    gui.press_key(ui::Key::tab, draw);
    gui.press_key(ui::Key::enter, draw);
    CHECK(pressed);
}

TEST_CASE("a field is as tall while it is edited as it was before, and as its text needs") {
    Gui gui;
    std::string text = "short";
    const Gui::Draw draw = [&](ui::Context& c) {
        ui::text_input(c, "text", text, {}, {Face::sans, 13}, 2);
        ui::button(c, "below", "Below");
    };
    gui.frame(draw);
    const auto top = [&] { return gui.rect("below").y0; };
    const float before = top();
    gui.click("text", draw);
    open_frames(gui, draw);
    CHECK(top() == before);
    gui.type(" and then so long that it does not fit the two lines that it has from the start on", draw);
    gui.type(", not at all, however narrow the letters are, and whatever the face", draw);
    gui.frame(draw);
    const float grown = top();
    CHECK(grown > before);
    gui.press_key(ui::Key::enter, draw);
    CHECK(top() == grown);
}

TEST_CASE("a segmented switch takes clicks and arrow keys") {
    Gui gui;
    int selected = 0;
    const Gui::Draw draw = [&](ui::Context& c) { ui::segmented(c, "shade", kThree, selected); };
    gui.frame(draw);
    gui.click("shade.2", draw);
    CHECK(selected == 2);
    gui.press_key(ui::Key::tab, draw);
    gui.press_key(ui::Key::left, draw);
    CHECK(selected == 1);
    gui.press_key(ui::Key::left, draw);
    gui.press_key(ui::Key::left, draw);
    CHECK(selected == 0);
}

TEST_CASE("a list opens at a click, takes a row, and closes") {
    Gui gui;
    int selected = 0;
    const Gui::Draw draw = [&](ui::Context& c) { ui::dropdown(c, "arm", kThree, selected); };
    gui.frame(draw);
    gui.click("arm", draw);
    gui.frame(draw);
    gui.click("arm.1", draw);
    CHECK(selected == 1);
    gui.frame(draw);
    CHECK_FALSE(gui.context.probes.items.contains("arm.1"));
}

TEST_CASE("a list is usable with the keyboard alone") {
    Gui gui;
    int selected = 0;
    const Gui::Draw draw = [&](ui::Context& c) { ui::dropdown(c, "arm", kThree, selected); };
    gui.frame(draw);
    gui.press_key(ui::Key::tab, draw);
    gui.press_key(ui::Key::down, draw);
    CHECK(selected == 1);
    gui.press_key(ui::Key::enter, draw);
    gui.frame(draw);
    gui.press_key(ui::Key::down, draw);
    CHECK(selected == 1);  // only Enter takes the row
    gui.press_key(ui::Key::enter, draw);
    CHECK(selected == 2);
    gui.press_key(ui::Key::enter, draw);
    gui.frame(draw);
    gui.press_key(ui::Key::up, draw);
    gui.press_key(ui::Key::escape, draw);
    CHECK(selected == 2);
}

TEST_CASE("Tab walks the controls in their order, Shift+Tab back, and wraps") {
    Gui gui;
    std::string pressed;
    const Gui::Draw draw = [&](ui::Context& c) {
        for (const char* name : {"a", "b", "c"}) {
            if (ui::button(c, name, name)) pressed += name;
        }
    };
    gui.frame(draw);
    for (int i = 0; i < 4; ++i) {
        gui.press_key(ui::Key::tab, draw);
        gui.press_key(ui::Key::space, draw);
    }
    gui.press_key(ui::Key::tab, draw, true);
    gui.press_key(ui::Key::enter, draw);
    CHECK(pressed == "abcac");
}

TEST_CASE("a field's control follows from its type") {
    Gui gui;
    double rate = 0.5;
    int history = 16;
    bool on = false;
    std::string algo = "max";
    std::vector<Field> fields = {
        number({.name = "rate", .label = "Rate"}, &rate, 0, 1),
        integer({.name = "history", .label = "History"}, &history, 1, 1024, true),
        toggle({.name = "on", .label = "On"}, &on),
        choice({.name = "algo", .label = "Reducer"}, &algo, {{"max", "max"}, {"recent", "most recent"}})};
    const Gui::Draw draw = [&](ui::Context& c) {
        for (const Field& field : fields) ui::edit(c, field);
    };
    gui.frame(draw);
    gui.click("on", draw);
    CHECK(on);
    gui.click("algo.1", draw);
    CHECK(algo == "recent");
    gui.click("history", draw);
    CHECK(history == 32);  // the middle of 1..1024 in log space
    gui.click("rate", draw);
    CHECK(rate == 0.5);
}

TEST_CASE("exponents are narrower than the same text unraised, and take no caret") {
    Gui gui;
    gui.frame([](ui::Context& c) {
        const Font font{Face::mono, 18};
        CHECK(ui::text_width(c, "2^-6", font) ==
              doctest::Approx(ui::text_width(c, "2", font) + ui::text_width(c, "-6", {Face::mono, 13})));
        CHECK(ui::text_width(c, "2^3 = 8", font) ==
              doctest::Approx(ui::text_width(c, "2", font) + ui::text_width(c, "3", {Face::mono, 13}) +
                              ui::text_width(c, " = 8", font)));
    });
}

TEST_CASE("every control draws finite vertices at every scale and in every theme") {
    for (const Theme theme : {Theme::dark, Theme::light}) {
        for (const float scale : {0.75F, 1.0F, 1.5F, 2.0F, 3.0F}) {
            CAPTURE(scale);
            Gui gui{{1000, 1000}, theme, scale};
            double value = 3;
            int selected = 1;
            const std::array cells = {ui::Cell{"loss", Role::text, Tone::ink, false, false, Anchor::left},
                                      ui::Cell{"0.0411"}};
            const std::array<float, 2> columns = {100, 100};
            const std::array<double, 3> ticks = {1, 4, 8};
            gui.frame([&](ui::Context& c) {
                ui::text(c, "2^-6 = 0.0156", Role::text, {Face::mono, 32});
                ui::wrapped(c,
                            "A third of dy1 is flushed to zero. Judged by its loss alone, this run passes.");
                ui::slider(c, "s", "Margin", "margin", value, 0, 8,
                           {.step = 1, .format = "2^{0:.0f} = ×{1:g}", .ticks = ticks});
                ui::segmented(c, "seg", kThree, selected);
                ui::dropdown(c, "drop", kThree, selected);
                ui::button(c, "b", "Play", {.key = "Space", .primary = true});
                ui::badge(c, Provenance::gpu_emulated);
                ui::badge(c, Provenance::recorded);
                ui::divider(c);
                ui::table_row(c, cells, columns);
            });
            CHECK(test::draw_data_fault() == "");
        }
    }
}

TEST_CASE("a number is copied from its menu by mouse and by keys, and exactly with Ctrl+C") {
    Gui gui;
    const double value = 1.0 / 17;
    const auto draw = [&](ui::Context& c) {
        const std::array cells = {ui::Cell{.text = "relative", .anchor = Anchor::left},
                                  ui::Cell{.text = "0.05882", .value = value}};
        const std::array<float, 2> columns = {100, 100};
        ui::table_row(c, cells, columns);
    };
    const auto copied = [] { return std::string(ImGui::GetClipboardText()); };
    gui.frame(draw);
    gui.click("value.relative.1", draw);
    gui.frame(draw);
    REQUIRE(gui.context.probes.items.contains("value.relative.1.4"));
    gui.click("value.relative.1.4", draw);
    CHECK(copied() == "np.float64(0.058823529411764705)");
    gui.frame(draw);
    CHECK_FALSE(gui.context.probes.items.contains("value.relative.1.4"));
    CHECK(gui.context.probes.items.contains("value.relative.1.copied"));  // says so for a moment
    ImGui::GetIO().DeltaTime = 2;
    gui.frame(draw);
    gui.frame(draw);
    CHECK_FALSE(gui.context.probes.items.contains("value.relative.1.copied"));
    ImGui::GetIO().DeltaTime = 1.0F / 60;
    CHECK(gui.context.focus.modal == 0);

    gui.press_key(ui::Key::tab, draw);
    test::tap(
        ui::Key::c, [&] { gui.frame(draw); }, true);
    CHECK(copied() == "0.058823529411764705");
    gui.press_key(ui::Key::enter, draw);
    gui.press_key(ui::Key::down, draw);
    gui.press_key(ui::Key::enter, draw);
    CHECK(copied() == "0x1.e1e1e1e1e1e1ep-5");
    gui.frame(draw);
    CHECK(gui.context.focus.modal == 0);
}

TEST_CASE("text is broken at its line ends and keeps the indentation of code") {
    Gui gui;
    gui.frame([&](ui::Context& c) {
        const auto lines = ui::wrap_lines(c, "f(\n    a, b)\n\nend", {Face::mono, 13}, 600);
        CHECK(lines == std::vector<std::string_view>{"f(", "    a, b)", "", "end"});
        CHECK(ui::wrap_lines(c, "one line", {Face::sans, 13}, 600).size() == 1);
    });
}

TEST_CASE("a segmented switch whose words are wider than its parts has rows, and each part can be pressed") {
    Gui gui({400, 300});
    int selected = 0;
    const std::vector<std::string> labels = {"attention", "inputs of block 1", "token embedding", "MLP"};
    const auto draw = [&](ui::Context& c) { ui::segmented(c, "choice", labels, selected); };
    gui.frame(draw);
    CHECK(gui.rect("choice").height() == 64);
    CHECK(gui.rect("choice.0").y0 == gui.rect("choice.1").y0);
    CHECK(gui.rect("choice.2").y0 == gui.rect("choice.0").y1);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const Rect part = gui.rect("choice." + std::to_string(i));
        CHECK(ui::text_width(gui.context, labels[i], kBold15) <= part.width());
    }
    gui.click("choice.2", draw);
    CHECK(selected == 2);
}
