// L16's view without a display: chips, diagnoses by mouse and key, a rerun, the cursor, and the two parts of a low stage.
#include <doctest/doctest.h>
#include <imgui_internal.h>

#include "core/lesson/glossary.h"
#include "labs/clinic/view.h"
#include "labs/ui/stage/headings.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::clinic;

namespace {
using Screen = test::LabScreen<ClinicLab, ClinicView>;

bool says(Screen& screen, std::string_view words) {
    screen.frame();
    std::string all;  // a sentence may be in several lines
    for (const auto& text : screen.gui.context.probes.texts) all += text.words + " ";
    return all.find(words) != all.npos;
}

}  // namespace

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
    CHECK(screen.lab->params.charts[3].rerun == "4:history-16");
    REQUIRE(screen.shows("clinic.next"));
    CHECK(screen.shows("clinic.result"));
    CHECK_FALSE(screen.view.key(screen.gui.context, ui::Key::digit_0 + 2));  // cured: it stays
    CHECK(screen.lab->params.charts[3].diagnosis == "4");
    screen.click("clinic.next");
    CHECK(screen.lab->params.letter == "E");
    CHECK(screen.lab->solved_cases() == 1);
    screen.click("clinic.diagnosis.4");
    screen.click("clinic.diagnosis.4");  // a second press leaves it
    CHECK(screen.lab->params.charts[4].diagnosis == "4");
}

TEST_CASE("L16: the verdict says that a later diagnosis was right, and that a revealed case does not count") {
    Screen screen({860, 1000});
    screen.set("deal=0");
    screen.set("case=G");
    screen.click("clinic.diagnosis.9");
    screen.set("treatment_g=forward-e4m3");
    screen.click("clinic.rerun");
    screen.click("clinic.diagnosis.7");
    CHECK_FALSE(says(screen, "solved"));
    screen.click("clinic.rerun");
    CHECK(says(screen, "Case G is solved, 1 of 8."));
    CHECK(says(screen, "Your first diagnosis was another one: Margin too large."));
    screen.set("revealed_g=on");
    CHECK(says(screen, "Case G is cured. It was revealed before and does not count."));
    screen.set("case=A");
    CHECK_FALSE(says(screen, "first diagnosis"));
    screen.click("clinic.diagnosis.1");
    screen.set("treatment_a=delayed");
    screen.click("clinic.rerun");
    CHECK(says(screen, "Case A is solved, 1 of 8."));
    CHECK_FALSE(says(screen, "first diagnosis"));
}

TEST_CASE("L16: the verdict on a rerun that ends says where, and claims no end that it has not reached") {
    Screen screen({860, 1000});
    screen.set("deal=0");
    screen.set("case=B");
    screen.set("treatment_b=history-1024");
    screen.click("clinic.rerun");  // without a diagnosis it does nothing
    CHECK(screen.lab->params.charts[1].rerun.empty());
    screen.click("clinic.diagnosis.2");
    screen.click("clinic.rerun");
    CHECK(screen.words("clinic.result") == "ended");
    CHECK(says(screen, "The rerun ends in step 1, where x1 is not finite."));
    CHECK(says(screen, "Underflow at most 1 %: it ended before"));
    CHECK(says(screen, "Within 8 % of the reference: it ended before"));
    CHECK_FALSE(says(screen, "reference; before"));
    screen.set("treatment_b=saturate");
    screen.click("clinic.rerun");
    CHECK(says(screen, "against the BF16 reference; before it ended in step 1"));
    CHECK_FALSE(says(screen, "it ended before"));
}

TEST_CASE("L16: a new deal leaves no diagnosis, treatment or verdict behind, and says so") {
    Screen screen({860, 1000});
    screen.set("deal=0");
    screen.set("case=D");
    screen.click("clinic.diagnosis.4");
    screen.set("treatment_d=history-16");
    screen.click("clinic.rerun");
    REQUIRE(screen.shows("clinic.result"));
    CHECK(screen.gui.context.notice.title.empty());
    screen.set("deal=1");
    CHECK_FALSE(screen.shows("clinic.result"));
    CHECK(says(screen, "No change"));
    CHECK(screen.lab->name_of(3).empty());
    CHECK(screen.lab->solved_cases() == 0);
    CHECK(screen.gui.context.notice.title == "All cases are sealed again");
}

TEST_CASE("L16: each heading names the step that it is of, and what is of the whole run says so") {
    Screen screen({860, 1000});
    screen.set("deal=0");
    screen.set("case=G");
    screen.set("look=1049");
    CHECK(says(screen, "Tensors of the patient in step 1\u2009049"));
    CHECK(says(screen, "x1, nearest record: step 1\u2009044 (seed 1)"));
    CHECK(says(screen, "step 1\u2009000"));  // of the gauges
    CHECK(screen.words("head.overflow") == "overflow, run");
    const auto saturated = screen.lab->opened->patient->arm().tensors.front().overflow_at.size();
    CHECK(saturated > 1);
    CHECK(says(screen, std::to_string(saturated) + " steps"));
}

TEST_CASE("L16: no tooltip lies on a heading") {
    Screen screen({860, 1000});
    Glossary glossary = load_glossary();
    screen.gui.context.glossary = &glossary;
    for (const char* control : {"head.overflow", "head.scale", "head.amax", "head.sqnr", "clinic.rerun"}) {
        screen.gui.move(screen.gui.center(control));
        ImGui::GetIO().DeltaTime = 0.5F;  // it comes after a moment
        for (int i = 0; i < 3; ++i) screen.frame();
        const ImGuiWindow* tip = nullptr;
        for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
            if (window->WasActive && (window->Flags & ImGuiWindowFlags_Tooltip) != 0) tip = window;
        CAPTURE(control);
        if (std::string_view(control).starts_with("head.")) REQUIRE(tip != nullptr);
        if (tip == nullptr) continue;
        const ImRect box = tip->Rect();
        CHECK_FALSE(ui::marked_headings().empty());
        for (const Rect& heading : ui::marked_headings())
            CHECK_FALSE(box.Overlaps({heading.x0, heading.y0, heading.x1, heading.y1}));
    }
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

TEST_CASE("L16: R, pressed twice, names the disease and says what is wrong") {
    Screen screen({860, 1000});
    screen.set("deal=0");
    CHECK(screen.lab->unsealed().empty());
    CHECK(screen.view.key(screen.gui.context, ui::Key::r));
    CHECK_FALSE(screen.lab->params.charts[0].revealed);
    CHECK(screen.gui.context.notice.title == "R once more names the disease");
    CHECK(screen.view.key(screen.gui.context, ui::Key::r));
    CHECK(screen.lab->params.charts[0].revealed);
    CHECK(screen.lab->name_of(0) == "window");
    CHECK(says(screen, "The gradients are cast to E4M3 without a scale."));
    CHECK_FALSE(screen.lab->unsealed().empty());
}
