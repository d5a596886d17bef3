// A class of 200 hands in L1; 20 of the submissions were tampered with, each in its own way, the first five
// of them consistently, with fresh checksums and hashes. `check` finds these 20 and no other.
#include "labs/grade.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/seal.h"
#include "core/lesson/bundle.h"
#include "tests/scratch.h"
#include "tests/unit/made_evidence.h"

using nlohmann::json;
using namespace fp8lab;

namespace {

// A student's passes of L1. Not all do it in the same way.
std::vector<Evidence> passes(int student) {
    std::vector<Evidence> out;
    for (const ExerciseEntry& entry : all_exercises()) {
        if (entry.lab->id != "bits") continue;
        std::vector<Event> events;
        if (entry.exercise->id == "L1.1")  // bits flipped to and fro before
            for (int flip = 0; flip < student % 4; ++flip) {
                events.push_back(acts("toggle 0"));
                events.push_back(acts("toggle 0"));
            }
        std::ranges::copy(entry.exercise->solver, std::back_inserter(events));
        const Prediction guess{
            .skipped = false, .values = {double(student % 7)}, .at = "2026-11-20T10:00:00"};
        out.push_back(test::attempt(entry, events, guess));
        out.back().explanation = "student " + std::to_string(student);
    }
    return out;
}

Bundle bundle_of(int student, const std::vector<Evidence>& evidence) {
    Bundle out{.student = "Student " + std::to_string(student),
               .version = "0.1.0",
               .at = "2026-11-20T23:12:07",
               .machine = {},
               .evidence = {},
               .predictions = {}};
    for (const Evidence& one : evidence) out.evidence.push_back(evidence_text(one));
    return out;
}

// The submission's text, and what the refusal must say.
struct Tampering {
    std::string reason;
    std::function<std::string()> text;
};

// Evidence changed and written anew: every checksum and hash fits.
Tampering forged(std::string reason, std::function<void(std::vector<Evidence>&)> forge) {
    return {std::move(reason), [forge = std::move(forge)] {
                std::vector<Evidence> evidence = passes(1);
                forge(evidence);
                return bundle_text(bundle_of(1, evidence));
            }};
}

// The bundle's members changed, and the bundle sealed anew.
Tampering resealed(std::string reason, std::function<void(json&)> change) {
    return {std::move(reason), [change = std::move(change)] {
                json object = unsealed(bundle_text(bundle_of(1, passes(1))), "");
                change(object);
                return sealed(std::move(object), 1);
            }};
}

Tampering edited(std::string reason, std::function<void(std::string&)> edit) {
    return {std::move(reason), [edit = std::move(edit)] {
                std::string text = bundle_text(bundle_of(1, passes(1)));
                edit(text);
                return text;
            }};
}

void replace(std::string& text, std::string_view from, std::string_view to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
}

// One evidence inside the bundle, changed as text.
std::function<void(json&)> inside(std::string from, std::string to) {
    return [from = std::move(from), to = std::move(to)](json& object) {
        std::string text = object["evidence"][0];
        replace(text, from, to);
        object["evidence"][0] = text;
    };
}

std::vector<Tampering> tamperings() {
    return {
        // Consistent forgeries.
        forged("not 1e+06",
               [](auto& all) { std::ranges::find(all[0].values, "value", &Metric::name)->value = 1e6; }),
        forged("not met: ", [](auto& all) { all[0].deeds.pop_back(); }),
        forged("not met: ",
               [](auto& all) {
                   const ExerciseEntry entry = test::exercise("L1.2");
                   Evidence missed = test::attempt(entry, entry.exercise->near_misses[0].events, {});
                   missed.conditions = all[1].conditions;
                   for (Condition& condition : missed.conditions) condition.met = true;
                   all[1] = missed;
               }),
        forged("are cpu-emulated, not tensor-core", [](auto& all) { all[2].provenance = "tensor-core"; }),
        forged("holds the prediction against", [](auto& all) { all[0].measured = all[0].prediction.values; }),
        // Less careful ones.
        forged("there is no exercise 'L1.9'", [](auto& all) { all[3].exercise = "L1.9"; }),
        forged("is no exercise of lab 'ruler'", [](auto& all) { all[0].lab = "ruler"; }),
        forged("does not start where", [](auto& all) { all[0].start.front().second = "e5m2"; }),
        forged("has no action", [](auto& all) { all[0].deeds.push_back({{acts("win")}}); }),
        forged("unknown field 'passed'", [](auto& all) { all[0].deeds.push_back({{sets("passed", "1")}}); }),
        forged("holds this exercise twice", [](auto& all) { all.push_back(all[0]); }),
        resealed("its checksum does not fit", inside("student 1", "my words")),
        resealed("is of another version", inside("\"fp8lab_evidence\": 1", "\"fp8lab_evidence\": 0")),
        resealed("written by a newer version", [](json& object) { object["fp8lab_bundle"] = 2; }),
        resealed("expected a string, got number", [](json& object) { object["evidence"][1] = 1; }),
        resealed("holds no evidence", [](json& object) { object["evidence"] = json::array(); }),
        edited("the submission was changed",
               [](std::string& text) { replace(text, "Student 1", "Student 9"); }),
        edited("missing closing quote\n", [](std::string& text) { text.resize(text.size() / 2); }),
        edited("twice",
               [](std::string& text) { replace(text, "\"student\"", "\"student\": \"A\", \"student\""); }),
        edited("UTF-8", [](std::string& text) { replace(text, "Student 1", "Student \xFF"); }),
    };
}

}  // namespace

TEST_CASE("200 submissions of one lab, 20 tampered with in different ways: these are found and no other") {
    const Scratch home;
    std::map<std::string, std::string> expected;  // path -> reason
    const std::vector<Tampering> all = tamperings();
    REQUIRE(all.size() == 20);
    for (int student = 0; student < 200; ++student) {
        const std::string path = home / (std::to_string(1000 + student) + ".f8lab");
        if (student % 10 != 3) {
            write_file(path, bundle_text(bundle_of(student, passes(student))));
            continue;
        }
        const Tampering& tampering = all[static_cast<std::size_t>(student / 10)];
        write_file(path, tampering.text());
        expected[path] = tampering.reason;
    }
    const std::vector<std::string> folder = {home.path.string()};
    const std::vector<Graded> graded = grade(submissions_in(folder), false, [] { return false; });
    std::map<std::string, std::string> found;
    std::ptrdiff_t passed = 0;
    for (const Graded& one : graded) {
        passed += one.recheck.stands() ? 1 : 0;
        for (const std::string& problem : one.recheck.problems) found[one.path] += problem + "\n";
    }
    for (const auto& [path, reason] : expected) {
        CAPTURE(reason);
        CHECK_MESSAGE(found[path].find(reason) != std::string::npos, found[path]);
    }
    for (const auto& [path, problems] : found)
        CHECK_MESSAGE(expected.contains(path), std::string(path + ": " + problems));
    CHECK(passed >= 180 * 4);
    const std::string csv = grades_csv(graded);
    CHECK(std::count(csv.begin(), csv.end(), '\n') == static_cast<std::ptrdiff_t>(graded.size()) + 1);
    CHECK(csv.find(",Student 42,bits,") != std::string::npos);
}

TEST_CASE("what was repeated for one student is not believed of another") {
    Rechecker again;
    const std::vector<Evidence> honest = passes(1);
    CHECK(again(honest[0], false).stands());
    Evidence forged = honest[0];
    forged.values.front().text += "x";
    CHECK_FALSE(again(forged, false).stands());
    forged = honest[0];
    forged.deeds.back().events.back().name += " ";
    CHECK_FALSE(again(forged, false).stands());
    CHECK(again(honest[0], false).stands());
}

TEST_CASE("grading stops between submissions when asked, with what it has") {
    const Scratch home;
    for (int student = 0; student < 4; ++student)
        write_file(home / (std::to_string(student) + ".f8lab"),
                   bundle_text(bundle_of(student, passes(student))));
    const std::vector<std::string> folder = {home.path.string()};
    CHECK(grade(submissions_in(folder), false, [] { return true; }).empty());
}

TEST_CASE("the table is safe in a spreadsheet, and names copies") {
    const Scratch home;
    const std::vector<Evidence> evidence = passes(1);
    Bundle bundle = bundle_of(1, evidence);
    bundle.student = "=HYPERLINK(\"http://example.org\", \"x\")";
    write_file(home / "a.f8lab", bundle_text(bundle));
    bundle.student = "B";
    write_file(home / "b.f8lab", bundle_text(bundle));
    const std::vector<std::string> folder = {home.path.string()};
    const std::string csv = grades_csv(grade(submissions_in(folder), false, [] { return false; }));
    CHECK(csv.find("\"'=HYPERLINK(\"\"http://example.org\"\", \"\"x\"\")\"") != std::string::npos);
    CHECK(csv.find(",B,bits,1,") != std::string::npos);
    CHECK(csv.find("," + (home / "a.f8lab") + "\n") != std::string::npos);
}
