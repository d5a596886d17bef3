// Words cut to a width.
#include "labs/ui/fit.h"

#include <doctest/doctest.h>

#include "labs/ui/widgets.h"
#include "tests/gui/gui.h"

using namespace fp8lab;

TEST_CASE(
    "names that begin alike differ after they were cut in the middle, and fit, and sentences lose their "
    "end") {
    test::Gui gui;
    gui.frame([](ui::Context& c) {
        const std::string down = "model.layers.12.mlp.down_proj.weight",
                          up = "model.layers.12.mlp.up_proj.weight";
        for (const float width : {60.0F, 120.0F, 180.0F}) {
            const std::string cut = ui::cut_middle(c, down, kMono13, width);
            CHECK(ui::text_width(c, cut, kMono13) <= width);
            CHECK(cut.find("\u2026") != std::string::npos);
            CHECK(cut.starts_with("m"));
            CHECK(cut.ends_with("t"));
        }
        CHECK(ui::cut_middle(c, down, kMono13, 160) != ui::cut_middle(c, up, kMono13, 160));
        CHECK(ui::cut_middle(c, down, kMono13, 1000) == down);
        CHECK(ui::cut_end(c, "tensors that lose more", kSans13, 90).starts_with("tensors"));
        CHECK(ui::cut_end(c, "tensors that lose more", kSans13, 90).ends_with("\u2026"));
        CHECK(ui::cut_middle(c, "αβγδεζηθικλμνξ", kSans13, 60).find("\u2026") != std::string::npos);
        CHECK(ui::cut_middle(c, "abc", kSans13, 1) == "\u2026");  // nothing fits
        CHECK(ui::cut_middle(c, "", kSans13, 0).empty());
    });
}
