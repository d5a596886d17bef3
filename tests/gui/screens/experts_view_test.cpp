// L18's view without a display: every part draws what it names, and a press on a row chooses it.
#include <doctest/doctest.h>

#include <string>

#include "labs/experts/view.h"
#include "tests/all.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::experts;

namespace {

using Screen = test::LabScreen<MixtureLab, MixtureView>;

}  // namespace

TEST_CASE(
    "L18: a press on a pair chooses layers and router, and the panel tells of the choices that are kept") {
    Screen screen;
    CHECK(screen.words("experts.result") == "4.43 %");
    screen.click("experts.pair.nvfp4.nvfp4");
    CHECK(screen.lab->params.layers_in == "nvfp4");
    CHECK(screen.lab->params.router == "nvfp4");
    const std::string anew = screen.words("experts.result");
    screen.set("routes=kept");
    CHECK(screen.words("experts.result") != anew);
    for (const char* region : {"changed", "margin"}) CHECK(screen.gui.context.regions.contains(region));
}

TEST_CASE("L18: groups show rows and recorded times, a press on a hop chooses it") {
    Screen screen;
    screen.set("experiment=groups");
    CHECK(screen.words("experts.result") == "32 %");
    for (const char* region : {"rows", "time"}) CHECK(screen.gui.context.regions.contains(region));
    screen.set("experiment=hop");
    CHECK(screen.words("experts.result") == "0 %");
    screen.click("experts.hop.mxfp8.block128:pow2=0.bf16");
    CHECK(screen.lab->params.send == "block128:pow2=0");
    CHECK(screen.words("experts.result") != "0 %");
    CHECK(screen.gui.context.regions.contains("hop"));
}

TEST_CASE("L18: a training shows losses, the tokens of expert 1 and the SQNR of its dy") {
    Screen screen;
    screen.set("steps=100");
    screen.set("experiment=training");
    CHECK(screen.lab->training->arms.size() == 1);
    for (const char* region : {"loss", "expert_rows", "dy_sqnr"})
        CHECK(screen.gui.context.regions.contains(region));
    CHECK_FALSE(screen.shows("experts.result"));
}
