// L17's view without a display: every control acts on the model, in the parts draft, rollout and qat.
#include <doctest/doctest.h>

#include <string>

#include "labs/serve/view.h"
#include "tests/all.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::serve;

namespace {

using Screen = test::LabScreen<ServeLab, ServeView>;

// The chosen engine of the smallest transformer alone.
void show(Screen& screen, const std::string& part) {
    screen.set("others=off");
    screen.set("model=own");
    screen.set("path=" FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors");
    screen.set("experiment=" + part);
    screen.frame();
}

}  // namespace

TEST_CASE(
    "L17: a press in the figure of speed-ups sets the draft's length, Step and its key draw a verification") {
    Screen screen;
    show(screen, "draft");
    CHECK(screen.words("serve.result") == "1.89×");
    const Figure figure =
        speedup_figure(*screen.lab->drafts, screen.lab->params.price(), screen.lab->params.length);
    screen.click(screen.place("serve.speedup", figure, 8, 1.5));
    CHECK(screen.lab->params.length == 8);
    CHECK(screen.words("serve.result") == "1.78×");
    CHECK(screen.lab->round->proposed.size() == 8);
    const std::string before = screen.lab->round->context;
    screen.click("serve.step");
    CHECK(screen.lab->params.round == 2);
    CHECK(screen.lab->round->context != before);
    CHECK(screen.view.key(screen.gui.context, ui::Key::period));
    CHECK(screen.lab->params.round == 3);
    CHECK_FALSE(screen.view.keys().empty());
    screen.set("experiment=methods");
    CHECK_FALSE(screen.view.key(screen.gui.context, ui::Key::period));
    CHECK(screen.lab->params.round == 3);
}

TEST_CASE("L17: a press in the figure of sample sizes sets the tokens of an answer") {
    Screen screen;
    show(screen, "rollout");
    const std::string all = screen.words("serve.result");
    const Figure figure =
        ess_figure(*screen.lab->rollouts, screen.lab->params.tokens, screen.lab->params.truncate);
    screen.click(screen.place("serve.ess", figure, 20, 70));
    CHECK(screen.lab->params.tokens == 20);
    CHECK(screen.words("serve.result") != all);
    for (const char* region : {"ess", "ratios", "engines"})
        CHECK(screen.gui.context.regions.contains(region));
}

TEST_CASE("L17: training back shows the loss that is chosen") {
    Screen screen;
    screen.set("experiment=qat");
    screen.set("scheme=e4m3");
    screen.set("lr=0.005");
    // Trained, so that another kernel of OpenBLAS moves the last digit.
    CHECK(std::stod(screen.words("serve.result")) == doctest::Approx(0.0109).epsilon(0.03));
    screen.click("teacher.1");
    CHECK(screen.lab->params.teacher == "teacher");
    CHECK(std::stod(screen.words("serve.result")) == doctest::Approx(0.00814).epsilon(0.03));
    for (const char* region : {"train_back", "ways"}) CHECK(screen.gui.context.regions.contains(region));
}
