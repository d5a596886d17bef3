// L16: what is said and done of the cases of a deal, where it stays, and what an exercise counts of it.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "labs/course/exercise_run.h"
#include "tests/unit/labs/clinic_made.h"

using namespace fp8lab;
using namespace fp8lab::clinic;

TEST_CASE(
    "L16: in a new deal and with a new draw nothing is said and done, and each deal trains other seeds") {
    for (const char* anew : {"deal=3", "seed=4"}) {
        Made made = {"diagnosis_a=9", "treatment_b=saturate", "second_c=margin"};
        made.set({"case=B"});
        made.act("rerun");
        made.act("reveal");
        made.set({anew});
        CHECK(made.lab->params.charts == Params{}.charts);
        CHECK(made.lab->params.letter == "B");
        CHECK(made.lab->unsealed().empty());
        CHECK(made.lab->sealed_again() == 1);
    }
    std::set<int> trained;
    for (int deal = 0; deal < kMostSeed; ++deal) {
        Params params;
        params.deal = deal;
        trained.insert(params.trained_seed());
        CHECK(params.patient(0).seed == static_cast<std::uint64_t>(params.trained_seed()));
    }
    CHECK(trained.size() == kMostSeed);
    Params first;
    first.deal = kOpenDeal;
    CHECK(first.trained_seed() == 1);
}

TEST_CASE("L16: what comes with a deal stays in it, as undo, a scene or a claim card brings it") {
    Made made = {"diagnosis_a=9", "treatment_b=saturate"};
    const auto before = made.lab.state();
    made.set({"deal=3"});
    made.lab.restore(before);
    made.lab.update();
    CHECK(made.lab->params.charts[0].diagnosis == "9");
    CHECK(made.lab->params.charts[1].treatment == "saturate");
    made.set({"deal=3", "treatment_a=margin"});  // of the new deal; what was said before is not
    CHECK(made.lab->params.charts[0].treatment == "margin");
    CHECK(made.lab->params.charts[0].diagnosis == "none");
    CHECK(made.lab->params.charts[1] == Chart{});
    made.lab.restore(before);  // the same words are there in part
    made.lab.update();
    CHECK(made.lab->params.charts[1].treatment == "saturate");
    ClinicLab scene;
    set_field(scene.fields(), "treatment_a=backward-e5m2");
    scene.update();
    const nlohmann::json state = {{"deal", 0}, {"treatment_a", "backward-e5m2"}};
    scene.reset();
    scene.restore(state);
    scene.update();
    CHECK(scene->params.charts[0].treatment == "backward-e5m2");
}

TEST_CASE("L16: the first diagnosis is kept, and a case is solved with a later one too") {
    Made made = {"case=D", "diagnosis_d=9", "treatment_d=history-16"};
    made.set({"diagnosis_d=1"});
    CHECK(made.lab->params.charts[3].first == "none");  // a slip before the first rerun
    made.act("rerun");
    CHECK(made.lab->params.charts[3].first == "1");
    made.set({"diagnosis_d=4"});
    CHECK(made.lab->params.charts[3].first == "1");
    made.act("rerun");
    CHECK((made("cured_d") == 1 && made("solved") == 1 && made("solved_at_once") == 0));
    CHECK_FALSE(made.lab->first_right(3));
    Made at_once = {"case=D", "diagnosis_d=4", "treatment_d=history-16"};
    at_once.act("rerun");
    CHECK((at_once("solved") == 1 && at_once("solved_at_once") == 1));
    at_once.set({"case=A"});
    CHECK(at_once("cured_d") == 1);  // whichever case is shown
    CHECK(std::isnan(at_once("cured")));
    at_once.set({"case=D"});
    at_once.act("reveal");
    CHECK((at_once("cured_d") == 1 && at_once("solved") == 0));
}

TEST_CASE("L16: an exercise begins with the deal and the cases that are there, and counts their cures") {
    Made made = {"case=B", "diagnosis_b=9", "treatment_b=saturate"};
    made.act("rerun");
    made.set({"diagnosis_b=2"});
    made.act("rerun");
    made.set({"case=A"});
    for (const Exercise& exercise : made.lab.exercises()) {
        CAPTURE(exercise.id);
        const auto kept = kept_events(made.lab, exercise);
        ClinicLab other;
        const Trail trail = replay(other, exercise, std::vector{Evidence::EventGroup{kept, {}}});
        if (exercise.id == "L16.3") {  // it has a deal of its own
            CHECK(other->params.deal == kFirstDeal);
            CHECK(other->params.charts == Params{}.charts);
            continue;
        }
        CHECK(other->params.deal == 0);
        CHECK(other->params.charts == made.lab->params.charts);
        const Verdict verdict = judge_exercise(exercise, trail, nullptr);
        if (exercise.id == "L16.1") CHECK((verdict.conditions[0].met && !verdict.conditions[1].met));
        if (exercise.id == "L16.5") {
            CHECK(verdict.conditions[0].values == std::vector<std::string>{"1"});
            CHECK(verdict.conditions[1].values == std::vector<std::string>{"0"});  // the first was 9
        }
    }
}

TEST_CASE(
    "L16: undo and another deal leave first diagnoses and reveals as they are, and Reset all does not") {
    Made made = {"case=D"};
    const auto before = made.lab.state();
    made.set({"diagnosis_d=1", "treatment_d=margin"});
    made.act("rerun");
    made.set({"case=A"});
    made.act("reveal");
    made.lab.restore(before);  // as undo does
    made.lab.update();
    CHECK(made.lab->params.charts[3].first == "1");
    CHECK(made.lab->params.charts[0].revealed);
    CHECK(made.lab->params.charts[3].diagnosis == "none");
    made.set({"deal=3"});
    CHECK(made.lab->params.charts == Params{}.charts);
    made.set({"deal=0"});
    CHECK((made.lab->params.charts[3].first == "1" && made.lab->params.charts[0].revealed));
    made.lab.reset();
    made.set({"deal=0"});
    CHECK(made.lab->params.charts == Params{}.charts);
}

TEST_CASE("L16: the exercise of the quiet ones begins in a deal that has them, whatever deal was open") {
    Made made = {"deal=777", "diagnosis_a=9", "treatment_a=margin"};
    for (const Exercise& exercise : made.lab.exercises()) {
        if (exercise.id != "L16.3") continue;
        ClinicLab other;
        const auto kept = kept_events(made.lab, exercise);
        replay(other, exercise, std::vector{Evidence::EventGroup{kept, {}}});
        CHECK(other->params.deal <= kHealthyDeals);
        CHECK(other->params.charts == Params{}.charts);
        return;
    }
    FAIL("there is no L16.3");
}

TEST_CASE("L16: a rerun that version 0.1.0 wrote, by its changes alone, still counts") {
    Made made = {"case=D", "diagnosis_d=4", "treatment_d=history-16", "rerun_d=history-16"};
    CHECK((made("cured") == 1 && made("solved_at_once") == 1));
}
