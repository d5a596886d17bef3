// Evidence of every exercise: a pass is accepted again, what was tampered with is refused, also with a fresh
// checksum.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/lesson/progress.h"
#include "labs/course/exercise_run.h"
#include "labs/grading/recheck.h"
#include "tests/scratch.h"
#include "tests/unit/made_evidence.h"

using namespace fp8lab;
using test::exercise;

namespace {

Evidence pass(const ExerciseEntry& entry, std::span<const Event> events) {
    CAPTURE(entry.exercise->id);
    Evidence evidence = test::attempt(entry, events, {.skipped = true, .values = {}, .at = local_time()});
    CHECK(std::ranges::all_of(evidence.conditions, &Condition::met));
    return evidence;
}

Recheck again(const Evidence& evidence, bool rerun = false) {
    return recheck(parse_evidence(evidence_text(evidence), "test"), rerun);
}

std::string problems(const Recheck& recheck) {
    std::string out;
    for (const std::string& problem : recheck.problems) out += problem + "\n";
    return out;
}

// Changes that leave the evidence consistent in form, and what its refusal must say.
struct Forgery {
    std::string what;
    std::vector<std::string> reasons;
    std::function<void(Evidence&)> forge;
};

std::vector<Forgery> other_deeds(const ExerciseEntry& entry) {
    const std::string idle = "not met: something done by yourself";
    std::vector<Forgery> out = {{"nothing was done", {idle}, [](Evidence& e) { e.groups.clear(); }},
                                {"the last group is missing", {}, [](Evidence& e) { e.groups.pop_back(); }},
                                {"a scene that begins where the learner ended", {idle}, [](Evidence& e) {
                                     for (const Evidence::EventGroup& group : e.groups)
                                         for (const Event& event : group.events)
                                             for (auto& [name, value] : e.start)
                                                 if (event.kind == Event::Kind::set && event.name == name)
                                                     value = event.value;
                                     e.groups.clear();
                                 }}};
    for (const NearMiss& miss : entry.exercise->near_misses)
        out.push_back({miss.why, {"not met: "}, [&miss](Evidence& e) {
                           e.groups.clear();
                           for (const Event& event : miss.events) e.groups.push_back({{event}});
                       }});
    return out;
}

// Each of these has a sentence of its own in the refusal, so that it would be refused alone too.
Forgery other_claims(bool live, bool trained) {
    Forgery out{"every claim is another",
                {"does not start where the exercise does", "table of conditions", "seed is ",
                 "holds the prediction against"},
                [live, trained](Evidence& e) {
                    e.start.front().second += "0";
                    if (trained)
                        e.conditions.front().text += "0";
                    else
                        e.conditions.front().values = {"better"};
                    e.seed += "0";
                    e.measured.push_back(1);
                    if (!live) e.provenance = "tensor-core";
                }};
    if (!live) out.reasons.emplace_back("not tensor-core");
    return out;
}

// Every value, some at a time: a refusal names that many.
std::vector<Forgery> other_values(const Evidence& honest) {
    constexpr std::size_t kAtOnce = 20;
    std::vector<Forgery> out;
    for (std::size_t from = 0; from < honest.values.size(); from += kAtOnce) {
        const std::size_t to = std::min(from + kAtOnce, honest.values.size());
        Forgery forgery{fmt::format("values {} to {} are others", from, to - 1), {}, [=](Evidence& e) {
                            for (std::size_t i = from; i < to; ++i) {
                                Metric& m = e.values[i];
                                m.text.empty() ? void(m.value += 1 + std::abs(m.value)) : void(m.text += "0");
                            }
                        }};
        for (std::size_t i = from; i < to; ++i) {
            const Metric& m = honest.values[i];
            if (!m.text.empty() || std::isfinite(m.value)) forgery.reasons.push_back(m.name + " is ");
        }
        if (!forgery.reasons.empty()) out.push_back(std::move(forgery));
    }
    return out;
}

// By one Rechecker: what was done alike is repeated once.
void check_forgeries(const ExerciseEntry& entry, const Evidence& evidence) {
    Rechecker rechecker;
    const auto again = [&](const Evidence& e) {
        return rechecker(parse_evidence(evidence_text(e), "test"), false);
    };
    const Recheck honest = again(evidence);
    CHECK_MESSAGE(honest.stands(), problems(honest));
    std::vector<Forgery> all = other_deeds(entry);
    all.push_back(other_claims(entry.lab->make()->live(), entry.lab->make()->info().trained));
    if (!entry.lab->make()->info().trained)  // their values differ from one processor to the next
        std::ranges::move(other_values(evidence), std::back_inserter(all));
    all.push_back(
        {"another exercise", {"there is no exercise 'L99.1'"}, [](Evidence& e) { e.exercise = "L99.1"; }});
    all.push_back(
        {"another lab", {"is no exercise of lab 'nowhere'"}, [](Evidence& e) { e.lab = "nowhere"; }});
    for (const Forgery& forgery : all) {
        CAPTURE(forgery.what);
        Evidence forged = evidence;
        forgery.forge(forged);
        const Recheck found = again(forged);  // written with fresh checksums, and read again
        CHECK_FALSE(found.stands());
        for (const std::string& reason : forgery.reasons)
            CHECK_MESSAGE(problems(found).find(reason) != std::string::npos, problems(found));
    }
}

}  // namespace

TEST_CASE("one value changed is refused with the value that was found") {
    const ExerciseEntry entry = exercise("L6.1");
    Evidence forged = pass(entry, entry.exercise->solver);
    const auto metric = std::ranges::find(forged.values, "nvfp4.bits_per_element", &Metric::name);
    REQUIRE(metric != forged.values.end());
    metric->value = 4;
    CHECK(problems(again(forged)).starts_with("nvfp4.bits_per_element is 4.50048828125, not 4\n"));
}

TEST_CASE("every exercise: the evidence of its solver is accepted again, and no forgery of it") {
    for (const ExerciseEntry& entry : all_exercises()) {
        if (entry.lab->make()->live()) continue;
        CAPTURE(entry.exercise->id);
        check_forgeries(entry, pass(entry, entry.exercise->solver));
    }
}

TEST_CASE(
    "a condition in its earlier words stands, with other values only where the judge shows other ones") {
    const ExerciseEntry entry = exercise("L4.3");
    Evidence earlier = pass(entry, entry.exercise->solver);
    REQUIRE(earlier.conditions.size() == 2);
    earlier.conditions[0].text = "E4M3’s other elements lose 3 to 6 dB";
    earlier.conditions[0].values = {"23.7 dB now"};
    earlier.conditions[1].text = "INT8’s lose 20 dB, by an outlier of 64 or less";
    CHECK_MESSAGE(again(earlier).stands(), problems(again(earlier)));
    Evidence forged = earlier;
    forged.conditions[1].values = {"99 dB"};
    CHECK(problems(again(forged)).find("table of conditions") != std::string::npos);
    forged = earlier;
    forged.conditions[0].text = "E4M3’s other elements lose nothing";
    CHECK(problems(again(forged)).find("table of conditions") != std::string::npos);
    forged = earlier;
    std::swap(forged.conditions[0].text, forged.conditions[1].text);
    CHECK(problems(again(forged)).find("table of conditions") != std::string::npos);
}

TEST_CASE(
    "names that only the code has, beside a condition of version 0.1.0, stand, and names of other things do "
    "not") {
    struct Case {
        std::string exercise, condition, was, is, other;
    };
    const std::string kBoth = "A in BF16, B in FP8 in all layers, no other options",
                      kPromise = "another recipe, promised at least 8 % too much";
    for (const Case& c :
         {Case{"L3.4", "a Gaussian tensor", "normal", "Gaussian", "laplace"},
          Case{"L3.4", "scaled by its amax", "amax", "amax scale", "one"},
          Case{"W.1", "no recipe that meets them has fewer bits", "current", "E4M3, one scale", "rowwise"}}) {
        CAPTURE(c.condition);
        const ExerciseEntry entry = exercise(c.exercise);
        Evidence earlier = pass(entry, entry.exercise->solver);
        const auto at = std::ranges::find(earlier.conditions, c.condition, &Condition::text);
        REQUIRE(at != earlier.conditions.end());
        CHECK(at->values == std::vector{c.is});
        at->values = {c.was};
        CHECK_MESSAGE(again(earlier).stands(), problems(again(earlier)));
        at->values = {c.other};
        CHECK(problems(again(earlier)).find("table of conditions") != std::string::npos);
    }
    const ExerciseEntry promise = exercise("L9.5");
    Evidence earlier = pass(promise, promise.exercise->solver);
    const auto error = std::ranges::find(earlier.conditions, kPromise, &Condition::text);
    REQUIRE(error != earlier.conditions.end());
    REQUIRE(error->values.at(0).starts_with("FP8 HYBRID, current, "));
    const std::string percent = error->values[0].substr(21);
    for (Condition& condition : earlier.conditions)
        if (condition.text.starts_with("delayed scaling on"))
            condition.text = "recipe delayed on this layer: right within 2 %";
    error->values[0] = "current, " + percent;
    CHECK_MESSAGE(again(earlier).stands(), problems(again(earlier)));
    error->values[0] = "rowwise, " + percent;
    CHECK(problems(again(earlier)).find("table of conditions") != std::string::npos);
    const ExerciseEntry twins = exercise("L8.1");
    earlier = pass(twins, twins.exercise->solver);
    const auto arms = std::ranges::find(earlier.conditions, kBoth, &Condition::text);
    REQUIRE(arms != earlier.conditions.end());
    CHECK(arms->values == std::vector<std::string>{"BF16; FP8 HYBRID, delayed"});
    arms->text = "A in BF16, B in FP8";
    arms->values = {"bf16, delayed"};
    CHECK_MESSAGE(again(earlier).stands(), problems(again(earlier)));
    arms->values = {"bf16, current"};
    CHECK(problems(again(earlier)).find("table of conditions") != std::string::npos);
}

TEST_CASE("exercise L4.3 keeps E4M3's loss beside E4M3's condition while INT8 is shown") {
    const ExerciseEntry entry = exercise("L4.3");
    const std::vector<Condition> conditions = pass(entry, entry.exercise->solver).conditions;
    const Evidence first = test::attempt(entry, std::span(entry.exercise->solver).first(1),
                                         {.skipped = true, .values = {}, .at = local_time()});
    REQUIRE(first.conditions[0].met);
    CHECK(first.conditions[0].values.size() == 1);
    CHECK(conditions[0].values == first.conditions[0].values);
}

TEST_CASE("exercise L5.1 says of its margin only whether it is small enough") {
    const ExerciseEntry entry = exercise("L5.1");
    const Evidence shown = test::attempt(entry, std::array{sets("compare", "b")},
                                         {.skipped = true, .values = {}, .at = local_time()});
    CHECK_FALSE(shown.conditions[1].met);
    CHECK(shown.conditions[2].met);  // margin 0
}

TEST_CASE("a training's evidence is judged from its series, a forged series is found by training again") {
    const ExerciseEntry lies = exercise("L8.2");
    const Evidence evidence = pass(lies, lies.exercise->solver);
    check_forgeries(lies, evidence);
    CHECK(again(evidence).how == "judged from its series");
    const Recheck retrained = again(evidence, true);
    CHECK(retrained.how == "retrained");
    CHECK_MESSAGE(retrained.stands(), problems(retrained));

    // Consistent in itself: the run of an unscaled arm said to be that of the BF16-like default.
    Evidence forged = evidence;
    for (Evidence::EventGroup& group : forged.groups) {
        std::erase_if(group.events, [](const Event& event) { return event.name == "arm_b"; });
        for (std::size_t at; (at = group.record.find("\"unscaled\"")) != std::string::npos;)
            group.record.replace(at, 10, "\"delayed\"");
    }
    const std::string consistent = problems(again(forged));
    CHECK(problems(again(forged, true)).find("retrained") != std::string::npos);
    CAPTURE(consistent);
    CHECK(consistent.find("not met") == std::string::npos);
}

TEST_CASE("evidence reads back as it was written, and says where it is not whole") {
    const ExerciseEntry entry = exercise("L1.1");
    Evidence evidence = pass(entry, entry.exercise->solver);
    evidence.explanation = "Two codes are NaN, \u201cnone\u201d is infinite.";
    evidence.prediction = {.skipped = false, .values = {16, std::nan("")}, .at = "2026-01-01T12:00:00"};
    const std::string text = evidence_text(evidence);
    CHECK(evidence_text(parse_evidence(text, "x")) == text);

    std::string changed = text;
    changed.replace(changed.find("Two codes"), 3, "Six");
    CHECK_THROWS_WITH_AS(parse_evidence(changed, "a.json"), "a.json: was changed: its checksum does not fit",
                         Error);
    CHECK_THROWS_WITH_AS(parse_evidence("{}", "a.json"), "a.json: is no evidence of an exercise", Error);
    CHECK_THROWS_WITH_AS(parse_evidence("{\"fp8lab_evidence\": 1}", "a.json"), doctest::Contains("checksum"),
                         Error);
    CHECK_THROWS_WITH_AS(parse_evidence("{\n  oops", "a.json"), doctest::Contains("line 2"), Error);
    CHECK_THROWS_AS(parse_evidence("[1]", "a.json"), Error);
}

TEST_CASE("a drag is one event, and an action is not an edit") {
    const ExerciseEntry entry = exercise("L1.1");
    const auto lab = entry.lab->make();
    ExerciseRun run(*lab, *entry.exercise, {});
    const auto move = [&](const char* code, bool hands_off) {
        set_field(lab->fields(), std::string("code=") + code);
        lab->update();
        return run.follow(hands_off);
    };
    CHECK_FALSE(move("57", false));
    CHECK_FALSE(move("60", false));
    CHECK(move("61", true));
    CHECK(run.trail().steps.back().events == std::vector{sets("code", "61")});
    lab->act("toggle 0");
    CHECK(run.follow(false));
    CHECK(run.trail().steps.back().events == std::vector{acts("toggle 0")});
    CHECK(run.trail().now().text("code_hex") == "0x3C");
    CHECK_FALSE(run.follow(true));
    CHECK(run.trail().steps.size() == 2);
}

TEST_CASE("passes and predictions are there at the next start, a broken file is set aside") {
    const Scratch home;
    const ExerciseEntry entry = exercise("L1.4");
    {
        Progress progress(home.path);
        CHECK(progress.passed("L1.4") == nullptr);
        progress.keep("L1.1", Prediction{.skipped = false, .values = {12}, .at = "2026-01-01T12:00:00"});
        progress.keep(pass(entry, entry.exercise->solver));
    }
    Progress progress(home.path);
    REQUIRE(progress.passed("L1.4") != nullptr);
    CHECK(progress.count("bits") == 1);
    CHECK(progress.count("train") == 0);
    REQUIRE(progress.prediction("L1.1") != nullptr);
    CHECK(progress.prediction("L1.1")->values == std::vector{12.0});
    CHECK(progress.problem().empty());

    write_file(progress.file("L1.4"), "{ broken");
    const Progress after(home.path);
    CHECK(after.passed("L1.4") == nullptr);
    CHECK(after.problem() == "L1.4.json is damaged; it is kept as L1.4.json.damaged");
    CHECK(std::filesystem::exists(home / "exercises/L1.4.json.damaged"));
}

TEST_CASE(
    "evidence from before a condition was added or reworded stands, but another order or an empty table does "
    "not") {
    const ExerciseEntry entry = test::exercise("L4.1");
    const Evidence today = test::attempt(entry, entry.exercise->solver, {});
    REQUIRE(recheck(today, false).stands());
    Evidence earlier = today;
    REQUIRE(earlier.conditions.back().text == "still the seven numbers");
    earlier.conditions.pop_back();
    earlier.conditions.front().text = "E4M3 cut off the top";
    CHECK(recheck(earlier, false).stands());
    Evidence swapped = today;
    std::swap(swapped.conditions[0], swapped.conditions[1]);
    CHECK_FALSE(recheck(swapped, false).stands());
    Evidence none = today;
    none.conditions.clear();
    CHECK_FALSE(recheck(none, false).stands());
}
