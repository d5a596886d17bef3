// L16. Oracles: the table of levels below, which says of each disease what its instruments show, and the step that the data give
// (a spike in step 656, 1,024 entries of history).
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <set>

#include "core/base/error.h"
#include "core/figure/csv.h"
#include "core/files/files.h"
#include "core/lesson/claim.h"
#include "core/lesson/exercise.h"
#include "core/lesson/scene.h"
#include "labs/clinic/model.h"
#include "tests/all.h"
#include "tests/unit/labs/clinic_made.h"

using namespace fp8lab;
using namespace fp8lab::clinic;

namespace {

// gap, twin, plateau, underflow, scale, overflow, SQNR, moved, products, non-finite: in the order of the diseases.
const std::array<Signature, kDiseases> kTable = {{
    {"20 to 200", "healthy", "none", "dy", "1", "none", "dy low", "all", "exact", "none"},
    {"ends", "healthy", "none", "ended", "ended", "some", "ended", "ended", "ended", "x"},
    {"above 200", "healthy", "yes", "none", "fixed", "some", "w exact", "few", "exact", "none"},
    {"20 to 200", "healthy", "yes", "x", "falls", "some", "usual", "all", "exact", "none"},
    {"below 8", "sick", "none", "none", "moves", "some", "x high", "all", "exact", "none"},
    {"ends", "healthy", "none", "ended", "Inf", "none", "ended", "ended", "ended", "w"},
    {"8 to 20", "healthy", "none", "none", "beyond 448", "some", "x low", "all", "exact", "none"},
    {"20 to 200", "healthy", "none", "none", "moves", "some", "usual", "all", "off", "none"},
    {"below 8", "healthy", "none", "none", "moves", "some", "usual", "all", "exact", "none"},
}};

Signature signature(Disease disease, std::uint64_t seed) {
    const RunSpec spec = patient_of(disease, seed);
    return signature_of(*run_of(spec), *run_of(twin_of(spec)), *run_of(reference_of(spec)));
}

std::string recipe_after(Disease disease, std::string_view treatment) {
    return treated(patient_of(disease, 1), find_treatment(treatment, "treatment")).recipe();
}

}  // namespace

TEST_CASE(
    "L16: any two diseases differ in two instruments or more, also where one instrument is taken away") {
    for (std::size_t a = 0; a < kDiseases; ++a)
        for (std::size_t b = 0; b < a; ++b) CHECK_MESSAGE(distance(kTable[a], kTable[b]) >= 2, a << " " << b);
}

TEST_CASE(
    "L16: each disease shows what the table says, and no other is as near, for ten seeds and ten others") {
    for (const std::uint64_t seed : tested_seeds(20))
        for (std::size_t d = 0; d < kDiseases; ++d) {
            const Signature shown = signature(static_cast<Disease>(d), seed);
            CAPTURE(seed);
            CAPTURE(fmt::format("{}", fmt::join(shown, "; ")));
            CHECK(distance(shown, kTable[d]) <= 1);
            for (std::size_t other = 0; other < kDiseases; ++other)
                if (other != d) CHECK(distance(shown, kTable[other]) > distance(shown, kTable[d]));
        }
}

TEST_CASE("L16: a spike in step 656 stops the run while the history has it, and no longer") {
    Made made = {"case=D", "look=900"};
    CHECK(made("plateau_from") == 657);
    CHECK(made("plateau_steps") == doctest::Approx(1024).epsilon(.01));
    CHECK(made("underflow_pct_x1") == doctest::Approx(100));
    CHECK(made("scale_x1") < 1e-3);
    made.set({"look=655"});
    CHECK(made("scale_x1") > 10);
    made.set({"look=1700"});
    CHECK(made("scale_x1") > 10);
    CHECK(made("underflow_pct_x1") < 1);
}

TEST_CASE("L16: runs that end say where, and their instruments show why") {
    Made made = {"case=F"};
    CHECK(made("first_nonfinite_step") == 0);
    CHECK(made.word("first_nonfinite_tensor") == "w3");
    CHECK(made("amax_w3") == 0);
    CHECK(std::isinf(made("scale_w3")));
    CHECK(std::isnan(made("gap_pct")));
    CHECK(made.lab.figures()[0].title == "The run ends in step 0 of 2\u2009000 (seed 1)");
    made.set({"case=B", "look=1"});
    CHECK(made("first_nonfinite_step") == 1);
    CHECK(made("amax_x1") * made("scale_x1") > 464);  // beyond the largest value that E4M3 rounds to
    CHECK(std::isnan(made("amax_dy1")));              // step 1 has none: that of step 0 is not shown as its
    made.set({"look=0"});
    CHECK(made("amax_dy1") > 0);
    made.set({"case=E"});
    CHECK(made("twin_ratio") > kSickTwin);
    CHECK(made.lab.figures()[0].title.starts_with("Patient and twin both end 3."));
}

TEST_CASE(
    "L16: a treatment changes one option, keeps those that the new recipe has, and nothing that it has not") {
    CHECK(recipe_after(Disease::small_gradients, "delayed") == "delayed:bwd=e4m3");
    CHECK(recipe_after(Disease::small_gradients, "backward-e5m2") == "unscaled:bwd=e5m2");
    CHECK(recipe_after(Disease::small_gradients, "margin") == "unscaled:bwd=e4m3");
    CHECK(recipe_after(Disease::long_history, "history-16") == "delayed:history=16");
    CHECK(recipe_after(Disease::long_history, "current") == "current");
    CHECK(recipe_after(Disease::few_bits, "current") == "current:fwd=e5m2");
    CHECK(recipe_after(Disease::few_bits, "mxfp8") == "mxfp8");
    CHECK(recipe_after(Disease::no_master, "mxfp8") == "mxfp8:master=none");
    CHECK(recipe_after(Disease::zero_scale, "zero-amax") == "current:zero_amax=keep");
    CHECK(treated(patient_of(Disease::high_rate, 1), find_treatment("rate", "")).lr == kDefaultRate);
    for (std::size_t d = 0; d < kDiseases; ++d)
        for (const Treatment& treatment : treatments()) {
            const RunSpec spec = treated(patient_of(static_cast<Disease>(d), 3), treatment);
            CHECK_NOTHROW(spec.train_spec());
            CHECK(spec.seed == 3);
        }
    CHECK_THROWS_WITH_AS(find_treatment("aspirin", "treatment"), doctest::Contains("none, delayed, current"),
                         Error);
}

TEST_CASE("L16: a deal permutes the diseases, and above 499 a healthy run is among them") {
    std::set<std::array<Disease, kLetters.size()>> orders;
    for (int deal = 0; deal <= kMostDeal; ++deal) {
        const auto order = dealt(deal);
        const std::set<Disease> all(order.begin(), order.end());
        CHECK(all.size() == kLetters.size());
        CHECK(all.contains(Disease::healthy) == (deal > kHealthyDeals));
        CHECK(all.contains(Disease::narrow_sum) == (deal <= kHealthyDeals));
        orders.insert(order);
    }
    CHECK(orders.size() > 950);  // of 1,000 among 40,320 permutations
    for (std::size_t i = 0; i < kLetters.size(); ++i) CHECK(dealt(0)[i] == static_cast<Disease>(i));
}

TEST_CASE("L16: a cure needs the cause, one change, and a rerun that agrees") {
    Made made = {"case=D", "treatment_d=history-16"};
    CHECK(std::isnan(made("cured")));  // no rerun yet
    CHECK(std::isnan(made("diagnosis_right")));
    made.act("rerun");
    CHECK((made("cured") == 0 && made("diagnosis_right") == 0));  // no diagnosis
    made.set({"diagnosis_d=1"});
    CHECK(std::isnan(made("cured")));  // another one needs a rerun
    made.act("rerun");
    CHECK(made("cured") == 0);  // a wrong one
    made.set({"diagnosis_d=4"});
    CHECK((std::isnan(made("cured")) && made("solved") == 0));
    made.act("rerun");
    CHECK((made("cured") == 1 && made("solved") == 1));
    CHECK(made("rerun_gap_pct") < kCuredPct);
    made.set({"second_d=margin"});
    CHECK(std::isnan(made("cured")));  // not trained
    CHECK(made("solved") == 0);
    made.act("rerun");
    CHECK((made("cured") == 0 && made("rerun_gap_pct") < kCuredPct));  // two changes
    made.set({"second_d=none", "treatment_d=margin"});
    made.act("rerun");
    CHECK((made("cured") == 0 && made("rerun_gap_pct") > kCuredPct));  // the right cause, a wrong change
    made.set({"treatment_d=none"});
    made.act("rerun");
    CHECK(made.lab->changed_nothing());
    CHECK(made("cured") == 0);
}

TEST_CASE("L16: a loss that comes back is no cure while a gradient is lost") {
    Made made = {"case=A", "diagnosis_a=1", "treatment_a=backward-e5m2"};
    made.act("rerun");
    CHECK(made("rerun_gap_pct") < kCuredPct);
    CHECK(made("rerun_worst_underflow_pct") > 20);
    CHECK(made("cured") == 0);
    made.set({"treatment_a=delayed"});
    made.act("rerun");
    CHECK(made("cured") == 1);
}

TEST_CASE("L16: a healthy run is solved by seeing that it is, and not by a change") {
    int deal = kHealthyDeals + 1;
    const auto order = dealt(deal);
    const auto place = static_cast<std::size_t>(std::ranges::find(order, Disease::healthy) - order.begin());
    const char letter = kLetters[place], small = static_cast<char>('a' + place);
    Made made = {fmt::format("deal={}", deal), fmt::format("case={}", letter),
                 fmt::format("diagnosis_{}=10", small)};
    made.act("rerun");
    CHECK(made("cured") == 1);
    made.set({fmt::format("treatment_{}=current", small)});
    made.act("rerun");
    CHECK((made("rerun_gap_pct") < kCuredPct && made("cured") == 0));
}

TEST_CASE("L16: a margin of 1 cures the run whose overflow turns into NaN, as the lesson says") {
    for (const std::uint64_t seed : tested_seeds(10)) {
        const CureSpec spec{patient_of(Disease::nan_overflow, seed), "margin", "none"};
        const table::Told<Cure> nobody{};
        const Outcome outcome = outcome_of(Disease::nan_overflow, {.diagnosis = "2", .treatment = "margin"},
                                           cure_of(spec, nobody));
        CHECK_MESSAGE(outcome.cured(), seed);  // finite: what overflows would be NaN
    }
}

TEST_CASE("L16: the instruments show the rerun where it is asked for and is there") {
    Made made = {"case=A",        "tensor=dy1",          "look=1000",
                 "diagnosis_a=1", "treatment_a=delayed", "instruments=rerun"};
    CHECK(made("scale_dy1") == 1);  // none yet: the patient
    made.act("rerun");
    CHECK(made("scale_dy1") > 1000);
    CHECK(made("underflow_pct_dy1") < 5);
    made.set({"instruments=patient"});
    CHECK(made("scale_dy1") == 1);
}

TEST_CASE("L16: Next leads to a case that is not solved") {
    Made made = {"case=B", "diagnosis_b=2", "treatment_b=saturate"};
    made.act("rerun");
    made.set({"case=A"});
    made.act("next");
    CHECK(made.lab->params.letter == "C");
}

TEST_CASE("L16: what is solved follows from the fields, and a revealed case does not count") {
    Made made = {"case=B", "diagnosis_b=2", "treatment_b=saturate"};
    made.act("rerun");
    CHECK(made.lab->name_of(1) == "NaN");
    made.act("next");
    CHECK(made.lab->params.letter == "C");
    CHECK(made("solved") == 1);
    ClinicLab other;
    other.restore(made.lab.state());
    other.update();
    CHECK(other->solved_cases() == 1);
    CHECK(other->name_of(1) == "NaN");
    made.set({"case=B"});
    CHECK(made.lab->unsealed() ==
          "fp8lab train --recipe bf16,delayed:overflow=nonsaturate --steps 2000 --schedule cosine --seed 1");
    made.act("reveal");
    CHECK(made("solved") == 0);
    CHECK_FALSE(made.lab->unsealed().empty());
    made.set({"case=A"});
    CHECK(made.lab->unsealed().empty());
}

TEST_CASE("L16: no title, word, number or file of a sealed case names its recipe") {
    const std::array<std::string_view, 12> kNames = {"delayed", "unscaled", "saturate", "e5m2",
                                                     "e4m3",    "E5M2",     "E4M3",     "history",
                                                     "margin",  "acc=",     "master",   "zero"};
    for (const char letter : kLetters) {
        Made made = {fmt::format("case={}", letter), "tensor=dy1"};
        std::string text;
        for (const Metric& metric : made.lab.metrics()) text += metric.name + " " + metric.text + "\n";
        for (const Figure& figure : made.lab.figures()) {
            text += to_csv(figure) + figure.title + "\n";
            for (const Series& series : figure.series) text += series.name + series.style.end_label + "\n";
        }
        for (const std::string_view name : kNames)
            CHECK_MESSAGE(text.find(name) == std::string::npos, letter << ": " << name);
    }
}

TEST_CASE(
    "L16: the deal that a learner begins with is told by no file: what names a letter names another deal") {
    ClinicLab lab;
    CHECK(field_text(*find_field(lab.fields(), "deal")) == std::to_string(kFirstDeal));
    for (std::size_t i = 0; i < kLetters.size(); ++i)  // nor by the order of the diagnoses
        CHECK(dealt(kFirstDeal)[i] != dealt(kOpenDeal)[i]);
    const auto names_a_case = [](std::string_view event) {
        return event.starts_with("case=") || event.find('_') < event.find('=');
    };
    int checked = 0;
    const auto check_events = [&](const auto& events, auto text_of) {
        bool dealt_before = false;
        for (const auto& event : events) {
            const std::string text = text_of(event);
            dealt_before = dealt_before || text == "deal=0";
            if (!names_a_case(text)) continue;
            CHECK_MESSAGE(dealt_before, text);
            ++checked;
        }
    };
    const auto text_of = [](const Event& event) {
        return event.kind == Event::Kind::set ? event.name + "=" + event.value : event.name;
    };
    const std::regex letter("[Cc]ase [A-H]\\b|\\b[A-H]: ");
    for (const Exercise& exercise : lab.exercises()) {
        check_events(exercise.solver, text_of);
        for (const NearMiss& miss : exercise.near_misses) check_events(miss.events, text_of);
        for (const std::string& start : exercise.start)
            CHECK((start.find('=') == start.npos || start == fmt::format("deal={}", kFirstDeal)));
        for (const std::string& words : {exercise.question, exercise.predict, exercise.explanation,
                                         exercise.hints[0], exercise.hints[1], exercise.hints[2]})
            CHECK_MESSAGE(!std::regex_search(words, letter), words);
    }
    for (const Claim& claim : load_claims())
        if (claim.lab == "clinic") {
            check_events(claim.experiment, text_of);
            CHECK_MESSAGE(!std::regex_search(claim.verdict, letter), claim.verdict);
        }
    for (const auto& path : shipped_scenes()) {
        const Scene scene = read_scene(path);
        if (scene.lab != "clinic") continue;
        REQUIRE(scene.state.contains("deal"));
        CHECK(scene.state["deal"] != kFirstDeal);
        ++checked;
    }
    CHECK(checked > 100);
    CHECK_FALSE(std::regex_search(read_text(asset("text/" + std::string(lab.info().id) + ".md")), letter));
}

TEST_CASE("L16: a title tells the loss curve of a case, with the same words for several, and no cause") {
    const std::regex title(
        "The run ends in step [0-9] of 2.{1,3}000|"
        "The patient’s loss is above 3 times its twin’s from step [0-9]+ to 1.{1,3}[0-9]{3}|"
        "Patient and twin both end [34][.][0-9] × the BF16 reference|"
        "The patient ends [0-9.]+ % (above|below) its twin");
    for (const std::uint64_t seed : tested_seeds(10))
        for (std::size_t d = 0; d < kDiseases; ++d) {
            const RunSpec spec = patient_of(static_cast<Disease>(d), seed);
            const std::string words =
                loss_title({run_of(spec), run_of(twin_of(spec)), run_of(reference_of(spec))});
            CHECK_MESSAGE(std::regex_match(words, title), words);
        }
}

TEST_CASE("L16: of a run that ends early each tensor that was cast has a histogram, and no other") {
    for (const Disease disease : {Disease::nan_overflow, Disease::zero_scale})
        for (const std::uint64_t seed : tested_seeds(10)) {
            const RunPtr run = run_of(patient_of(disease, seed));
            REQUIRE(run->ended());
            const int last = steps_of(*run) - 1;
            CAPTURE(seed);
            for (const live::TensorTrack& track : run->arm().tensors) {
                CAPTURE(track.spec.name);
                const Figure histogram = histogram_figure(run, track.id, last);
                const bool cast =
                    std::ranges::any_of(track.amax.values(), [](double a) { return !std::isnan(a); });
                CHECK(cast == (run->view(track.id, last) != nullptr));
                CHECK(cast != histogram.title.ends_with("was not reached"));
                if (cast) CHECK(histogram.title.starts_with(track.spec.name + ", "));
            }
            const auto first = run->plan.find(run->arm().stopped->tensor);
            REQUIRE(first);
            CHECK(histogram_figure(run, *first, last).title.ends_with(": cast not finite"));
        }
}

TEST_CASE("L16: a view of a tensor is the newest at the step or before it, and a run is trained once") {
    const RunSpec spec = patient_of(Disease::healthy, 1);
    const RunPtr run = run_of(spec);
    CHECK(run_of(spec) == run);
    const auto dy1 = run->plan.find("dy1");
    REQUIRE(dy1);
    for (const int step : {0, 1, 2, 3, 500, kSteps - 1}) {
        const TensorView* view = run->view(*dy1, step);
        REQUIRE(view != nullptr);
        CHECK(view->id == *dy1);
        const int tensors = static_cast<int>(run->plan.tensors.size());
        if (step >= tensors) CHECK((view->step <= step && view->step > step - tensors));
    }
    CHECK(run_of(twin_of(spec))->views.empty());
}

TEST_CASE("L16: what is no case, step or seed is refused") {
    ClinicLab lab;
    CHECK_THROWS_WITH_AS(set_field(lab.fields(), "case=I"), doctest::Contains("valid: A B C D E F G H"),
                         Error);
    CHECK_THROWS_AS(set_field(lab.fields(), "look=2000"), Error);
    CHECK_THROWS_AS(set_field(lab.fields(), "seed=11"), Error);
    CHECK_THROWS_AS(set_field(lab.fields(), "treatment_a=aspirin"), Error);
    CHECK_THROWS_AS(lab.act("operate"), Error);
}
