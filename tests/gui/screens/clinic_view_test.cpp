// L16's view without a display: chips, diagnoses by mouse and key, a rerun, the cursor, and the two parts of a low stage.
#include <doctest/doctest.h>

#include "labs/clinic/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::clinic;

namespace {
using Screen = test::LabScreen<ClinicLab, ClinicView>;
}

TEST_CASE("L16: a chip opens a case, and arrow keys go on from it") {
    Screen screen;
    screen.click("clinic.case.D");
    CHECK(screen.lab->params.letter == "D");
    CHECK(screen.view.key(screen.gui.context, ui::Key::right));
    CHECK(screen.lab->params.letter == "E");
    CHECK(screen.view.key(screen.gui.context, ui::Key::left));
    CHECK(screen.view.key(screen.gui.context, ui::Key::left));
    CHECK(screen.lab->params.letter == "C");
    screen.set("case=A");
    CHECK(screen.view.key(screen.gui.context, ui::Key::left));
    CHECK(screen.lab->params.letter == "H");
    CHECK_FALSE(screen.view.key(screen.gui.context, ui::Key::x));
}

TEST_CASE("L16: a diagnosis, a treatment and a rerun solve a case, and Next leads on") {
    Screen screen({860, 1000});
    screen.set("deal=0");
    screen.click("clinic.case.D");
    screen.click("clinic.diagnosis.2");
    CHECK(screen.lab->params.charts[3].diagnosis == "2");
    CHECK(screen.view.key(screen.gui.context, ui::Key::digit_0));
    CHECK(screen.lab->params.charts[3].diagnosis == "10");
    CHECK(screen.view.key(screen.gui.context, ui::Key::digit_0 + 4));
    CHECK(screen.lab->params.charts[3].diagnosis == "4");
    screen.set("treatment_d=history-16");
    CHECK_FALSE(screen.shows("clinic.result"));
    screen.click("clinic.rerun");
    CHECK(screen.lab->params.charts[3].rerun == "history-16");
    REQUIRE(screen.shows("clinic.next"));
    CHECK(screen.shows("clinic.result"));
    screen.click("clinic.next");
    CHECK(screen.lab->params.letter == "E");
    CHECK(screen.lab->solved_cases() == 1);
    screen.click("clinic.diagnosis.4");
    screen.click("clinic.diagnosis.4");  // a second press takes it back
    CHECK(screen.lab->params.charts[4].diagnosis == "none");
}

TEST_CASE("L16: a press in a curve moves the cursor, and a row of the table chooses the tensor") {
    Screen screen({860, 900});
    const std::vector<Figure> figures = screen.lab.figures();
    Figure loss = figures[0];
    screen.click(screen.place("clinic.loss", loss, 1500, .1));
    CHECK(screen.lab->params.look == doctest::Approx(1500).epsilon(.01));
    screen.drag(screen.place("clinic.loss", loss, 1500, .1), -200);
    CHECK(screen.lab->params.look < 1300);
    screen.click("clinic.tensor.dy2");
    CHECK(screen.lab->params.tensor == "dy2");
    CHECK(screen.lab.figures()[3].x.label.starts_with("|dy2|"));
}

TEST_CASE("L16: a low stage shows curves or tensors, a narrow one the table or the histogram") {
    Screen screen({560, 520});
    CHECK((screen.shows("clinic.loss") && !screen.shows("clinic.tensor.x1")));
    screen.click("clinic.part.1");
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK((!screen.shows("clinic.loss") && screen.shows("clinic.tensor.x1") &&
           !screen.shows("clinic.histogram")));
    screen.click("clinic.tensors.1");
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK(screen.shows("clinic.histogram"));
}

TEST_CASE("L16: R names the disease") {
    Screen screen({860, 1000});
    screen.set("deal=0");
    CHECK(screen.lab->unsealed().empty());
    CHECK(screen.view.key(screen.gui.context, ui::Key::r));
    CHECK(screen.lab->params.charts[0].revealed);
    CHECK(screen.lab->name_of(0) == "no scale");
    CHECK_FALSE(screen.lab->unsealed().empty());
}
