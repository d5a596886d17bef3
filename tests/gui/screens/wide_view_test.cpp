// L14's view without a display: every control acts on the model, in every experiment and size.
#include <doctest/doctest.h>

#include <cmath>

#include "labs/wide/view.h"
#include "tests/all.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::wide;

namespace {

using Screen = test::LabScreen<WideLab, WideView>;

}  // namespace

TEST_CASE("L14: the switch shows one experiment, its controls and its result") {
    Screen screen;
    CHECK((screen.shows("wide.mass") && screen.shows("keys") && !screen.shows("margin")));
    const std::string lost = screen.words("wide.result");
    screen.click("experiment.1");
    CHECK(screen.lab->params.experiment == "swiglu");
    CHECK((screen.shows("wide.timeline") && screen.shows("margin")));
    CHECK(screen.words("wide.result") != lost);
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK_FALSE(screen.shows("wide.mass"));
    CHECK_FALSE(screen.shows("keys"));
    screen.click("experiment.2");
    CHECK(screen.lab->params.experiment == "optimiser");
    CHECK((screen.shows("wide.forget") && screen.shows("v_format.1")));
    CHECK(screen.words("wide.result") == "35.0 %");
}

TEST_CASE("L14: a press on a row chooses the cast, one on the figure the number of keys") {
    Screen screen;
    screen.click("wide.cast.exp448");
    CHECK(screen.lab->params.cast == "exp448");
    const Rect figure = screen.gui.rect("wide.length");
    screen.click(Point{figure.x1 - 2, figure.y0 + 20});
    CHECK(screen.lab->params.keys == "131072");
    screen.click(Point{figure.x0 + 2, figure.y0 + 20});
    CHECK(screen.lab->params.keys == "64");
    // The slider knows powers of two only.
    screen.drag("keys", 40);
    const double keys = screen.lab->params.attention_spec().keys;
    CHECK(std::exp2(std::round(std::log2(keys))) == keys);
    CHECK(keys > 64);
}

TEST_CASE("L14: the step by its column and its slider, the norm by its knob") {
    Screen screen;
    CHECK(screen.view.keys().empty());  // attention has no steps
    CHECK_FALSE(screen.view.key(screen.gui.context, ui::Key::period));
    screen.set("experiment=swiglu");
    for (const ViewKey& key : screen.view.keys()) CHECK(screen.view.key(screen.gui.context, key.first));
    CHECK(screen.view.keys().size() == 2);
    const Rect columns = screen.gui.rect("wide.steps");
    screen.click(Point{columns.x0 + 19.5F / 24 * columns.width(), columns.y0 + 30});
    CHECK(screen.lab->params.step == 19);
    const Rect scrub = screen.gui.rect("wide.scrub");
    screen.click(Point{scrub.x0 + 2.5F / 24 * scrub.width(), scrub.y0 + 9});
    CHECK(screen.lab->params.step == 2);
    screen.view.key(screen.gui.context, ui::Key::period);
    CHECK(screen.lab->params.step == 3);
    screen.view.key(screen.gui.context, ui::Key::comma);
    screen.view.key(screen.gui.context, ui::Key::comma);
    CHECK(screen.lab->params.step == 1);
    const Rect norms = screen.gui.rect("wide.norm");
    screen.click(Point{norms.x0 + 0.75F * norms.width(), norms.y0 + 30});
    CHECK(screen.lab->params.swiglu.k == doctest::Approx(8).epsilon(0.05));
}

TEST_CASE("L14: the pointer on Alignment shows the weight rows, and the end of one can be dragged") {
    Screen screen;
    screen.set("experiment=swiglu");
    CHECK_FALSE(screen.shows("wide.pair"));
    screen.gui.move(screen.gui.center("rho"));
    screen.frame();
    screen.frame();
    REQUIRE(screen.shows("wide.pair"));
    set_field(screen.lab.fields(), "rho=0.5");
    screen.frame();
    screen.frame();
    const Rect knob = screen.gui.rect("wide.pair");
    set_field(screen.lab.fields(), "rho=1");
    screen.frame();
    const Rect flat = screen.gui.rect("wide.pair");
    CHECK(knob.y0 < flat.y0 - 20);  // 60 degrees up
}

TEST_CASE("L14: a switch without an effect does not move, Train with it leads to L8 where L8 can take it") {
    Screen screen({860, 1200});
    screen.set("experiment=optimiser");
    CHECK_FALSE(screen.shows("wide.train"));
    screen.set("signal=noise");
    screen.click("v_scale.0");
    CHECK(screen.lab->params.optimiser.scale == "one");
    screen.set("experiment=attention");
    CHECK_FALSE(screen.shows("wide.train"));
    screen.set("experiment=swiglu");
    screen.set("margin=2");
    screen.click("wide.train");
    CHECK(screen.gui.context.wanted_lab.lab == "train");
    CHECK(screen.gui.context.wanted_lab.fields.front() == "arm_b=delayed");
    CHECK(screen.gui.context.wanted_lab.fields.back() == "options=margin=2");
    screen.set("fix=gelu");
    CHECK_FALSE(screen.shows("wide.train"));
}

TEST_CASE("L14: the stage is whole at every size, in every experiment") {
    for (const ImVec2 size : {ImVec2{560, 536}, {860, 760}, {944, 540}, {1500, 1000}})
        for (const float scale : {0.75F, 1.0F, 2.0F})
            for (const char* experiment : {"attention", "swiglu", "optimiser"}) {
                if (scale < 1 && !tests_all()) continue;  // each computes the experiments anew
                Screen screen({size.x * scale, size.y * scale}, scale);
                CAPTURE(size.x);
                CAPTURE(scale);
                CAPTURE(experiment);
                screen.set(std::string("experiment=") + experiment);
                CHECK(test::draw_data_fault().empty());
                const bool narrow = size.x < 700, swiglu = experiment[0] == 's',
                           attention = experiment[0] == 'a';
                const char* upper = attention ? "wide.mass" : swiglu ? "wide.timeline" : "wide.forget";
                const char* left = attention ? "wide.keys" : swiglu ? "wide.quadratic" : "wide.gap";
                for (const char* name : {upper, left}) {
                    const Rect figure = screen.gui.rect(name);
                    CHECK(figure.height() > 35 * scale);
                    CHECK(figure.x1 <= screen.area.x1 + 1);
                    CHECK(figure.y1 <= screen.area.y1 + 1);
                }
                CHECK(screen.shows("wide.part.0") == narrow);
                if (!narrow) continue;
                screen.click("wide.part.1");
                const char* right = attention ? "wide.cast.exp448" : swiglu ? "wide.strip" : "wide.cliff";
                CHECK(screen.shows(right));
                CHECK(screen.gui.rect(right).y1 <= screen.area.y1 + 1);
            }
}

TEST_CASE("L14: before the first result every experiment has a dash for its number") {
    test::Gui gui({1240, 780});
    for (const char* experiment : {"attention", "swiglu", "optimiser"}) {
        CAPTURE(experiment);
        WideLab lab;
        WideView view{lab};
        set_field(lab.fields(), std::string("experiment=") + experiment);
        gui.raw_frame([&](ui::Context& c) {  // without update(): as in a window while a job computes
            ImGui::SetNextWindowPos({0, 0});
            ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
            ImGui::Begin("screen", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
            view.stage(c, {24, 24, 836, 756});
            ImGui::SetCursorScreenPos({884, 24});
            ImGui::BeginChild("panel", {312, 0});
            view.explore(c, 312);
            ImGui::EndChild();
            ImGui::End();
        });
        CHECK(test::draw_data_fault().empty());
        CHECK(gui.context.probes.items.at("wide.result").words == "–");
    }
}
