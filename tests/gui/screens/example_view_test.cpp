#include <doctest/doctest.h>

#include "labs/example/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using Screen = test::LabScreen<example::ExampleLab, example::ExampleView>;

TEST_CASE("the lab to copy draws its figure, and Explore the controls of its rows") {
    Screen screen;
    const auto& items = screen.gui.context.probes.items;
    CHECK(items.contains("example.gaps"));
    CHECK(items.contains("format"));
    CHECK(items.contains("x"));
    CHECK_FALSE(items.contains("example.more"));
    screen.set("x=300");
    CHECK(screen.lab.figures().front().title == "Around 300 the gap is 32");
}
