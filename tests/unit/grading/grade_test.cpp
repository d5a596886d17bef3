// A class of 200 hands in L1; 20 of the submissions were tampered with, each in its own way, the first five
// of them consistently, with fresh checksums and hashes. `check` finds these 20 and no other.
#include "labs/grading/grade.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/json/checksum.h"
#include "core/lesson/bundle.h"
#include "core/threads/parallel.h"
#include "labs/grading/grade_table.h"
#include "labs/grading/submission_files.h"
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

// The bundle's members changed, and the bundle given a new checksum.
Tampering with_new_checksum(std::string reason, std::function<void(json&)> change) {
    return {std::move(reason), [change = std::move(change)] {
                json object = parse_with_checksum(bundle_text(bundle_of(1, passes(1))), "");
                change(object);
                return with_checksum(std::move(object), 1);
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
        forged("not met: ", [](auto& all) { all[0].groups.pop_back(); }),
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
        forged("has no action", [](auto& all) { all[0].groups.push_back({{acts("win")}}); }),
        forged("unknown field 'passed'", [](auto& all) { all[0].groups.push_back({{sets("passed", "1")}}); }),
        forged("holds this exercise twice", [](auto& all) { all.push_back(all[0]); }),
        with_new_checksum("its checksum does not fit", inside("student 1", "my words")),
        with_new_checksum("is of another version",
                          inside("\"fp8lab_evidence\": 1", "\"fp8lab_evidence\": 0")),
        with_new_checksum("written by a newer version", [](json& object) { object["fp8lab_bundle"] = 2; }),
        with_new_checksum("expected a string, got number", [](json& object) { object["evidence"][1] = 1; }),
        with_new_checksum("holds no evidence", [](json& object) { object["evidence"] = json::array(); }),
        edited("the submission was changed",
               [](std::string& text) { replace(text, "Student 1", "Student 9"); }),
        edited("syntax error while parsing value", [](std::string& text) { text.resize(text.size() / 2); }),
        edited("twice",
               [](std::string& text) { replace(text, "\"student\"", "\"student\": \"A\", \"student\""); }),
        edited("UTF-8", [](std::string& text) { replace(text, "Student 1", "Student \xFF"); }),
    };
}

std::vector<Graded> grade_all(std::vector<std::string> paths, std::function<bool()> stop = {}) {
    std::vector<Graded> out;
    grade(submissions_in(paths),
          {.stop = std::move(stop), .each = [&](const Graded& one) { out.push_back(one); }});
    return out;
}

std::string problems_of(const std::vector<Graded>& graded, const std::string& path) {
    std::string out;
    for (const Graded& one : graded)
        if (one.path == path)
            for (const std::string& problem : one.recheck.problems) out += problem + "\n";
    return out;
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
    const std::vector<Graded> graded = grade_all({home.path.string()});
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
    CHECK(std::ranges::is_sorted(graded, {}, &Graded::path));
    GradeTotals totals;
    std::string csv = grades_head();
    for (const Graded& one : graded) {
        csv += grades_row(one);
        totals.add(one);
    }
    CHECK(std::count(csv.begin(), csv.end(), '\n') == static_cast<std::ptrdiff_t>(graded.size()) + 1);
    CHECK(csv.find(",Student 42,bits,") != std::string::npos);
    CHECK(totals.csv().find("\nStudent 42," + (home / "1042.f8lab") + ",1,4,4,0,0,4,0,") !=
          std::string::npos);
}

TEST_CASE("what was repeated for one student is not believed of another") {
    Rechecker again;
    const std::vector<Evidence> honest = passes(1);
    CHECK(again(honest[0], false).stands());
    Evidence forged = honest[0];
    forged.values.front().text += "x";
    CHECK_FALSE(again(forged, false).stands());
    forged = honest[0];
    forged.groups.back().events.back().name += " ";
    CHECK_FALSE(again(forged, false).stands());
    CHECK(again(honest[0], false).stands());
}

TEST_CASE("grading stops between submissions when asked, with what it has") {
    const Scratch home;
    for (int student = 0; student < 4; ++student)
        write_file(home / (std::to_string(student) + ".f8lab"),
                   bundle_text(bundle_of(student, passes(student))));
    CHECK(grade_all({home.path.string()}, [] { return true; }).empty());
    // With one thread the first submission is whole before the second one begins. How often is asked in it:
    const int cores = threads();
    set_threads(1);
    std::atomic<int> asked = 0;
    grade_all({home / "0.f8lab"}, [&] { return ++asked < 0; });
    const int in_the_first = asked;
    asked = 0;
    const auto some = grade_all({home.path.string()}, [&] { return ++asked > in_the_first; });
    set_threads(cores);
    CHECK(some.size() >= 4);
    CHECK(some.size() < 16);
    for (const Graded& one : some) CHECK(one.recheck.stands());  // none was cut short
}

TEST_CASE("the table is safe in a spreadsheet, and names copies") {
    const Scratch home;
    const std::vector<Evidence> evidence = passes(1);
    Bundle bundle = bundle_of(1, evidence);
    bundle.student = "=HYPERLINK(\"http://example.org\", \"x\")";
    write_file(home / "a.f8lab", bundle_text(bundle));
    bundle.student = "B";
    write_file(home / "b.f8lab", bundle_text(bundle));
    std::string csv;
    for (const Graded& one : grade_all({home.path.string()})) csv += grades_row(one);
    CHECK(csv.find("\"'=HYPERLINK(\"\"http://example.org\"\", \"\"x\"\")\"") != std::string::npos);
    CHECK(csv.find(",B,bits,1,") != std::string::npos);
    CHECK(csv.find("," + (home / "a.f8lab") + "," + (home / "a.f8lab") + ",\"explanation 100 %, ") !=
          std::string::npos);
}

TEST_CASE("a copy with another name, other times and new checksums is still named, nobody else is") {
    const Scratch home;
    const ExerciseEntry entry = test::exercise("L1.1");
    Evidence ada = passes(0)[0];
    ada.explanation =
        "The exponent 1111 is used up for numbers as well, only the last code of all is kept for NaN.";
    Evidence copied = ada;
    copied.at = copied.prediction.at = "2026-12-01T09:00:00";
    copied.prediction.values = {77};
    copied.device = "another";
    copied.explanation =
        "the exponent 1111 is used up for numbers as well - only the LAST code of all is kept "
        "for NaN, I think";
    Evidence own = ada;  // the same three flips, in words of one's own
    own.explanation = "Because there is no infinity in E4M3, most of the top binade still holds numbers.";
    Evidence brief = ada, brief_copy = copied;
    brief.explanation = "No infinity!";
    brief_copy.explanation = "no infinity";
    Evidence silent = ada;
    silent.explanation = "";
    std::vector<Event> many;
    for (int i = 0; i < 6; ++i) many.push_back(acts("toggle " + std::to_string(i)));
    for (int i = 5; i >= 0; --i) many.push_back(acts("toggle " + std::to_string(i)));
    std::ranges::copy(entry.exercise->solver, std::back_inserter(many));
    Evidence long_way = test::attempt(entry, many, {.skipped = true, .values = {}, .at = "1"});
    Evidence same_way = long_way;
    same_way.at = "2";
    // A copy of somebody who took half of a third one's words: neither had 60 % of its phrases first.
    Evidence first = ada, half = ada, whole = ada;
    first.explanation = "Half of all codes lie between minus one and plus one in every such small format.";
    half.explanation = whole.explanation =
        "Half of all codes lie between minus one and plus one because the exponents are spread evenly around "
        "zero.";
    // Nothing was done in either, and the same was said of it.
    Evidence idle = ada;
    idle.groups.clear();
    idle.explanation = "This is what one writes who has not touched anything at all.";
    const std::vector<std::pair<std::string, Evidence>> all = {
        {"a", ada},    {"b", copied}, {"c", own},      {"d", brief},    {"e", brief_copy},
        {"f", silent}, {"g", silent}, {"h", long_way}, {"i", same_way}, {"j", first},
        {"k", half},   {"l", whole},  {"m", idle},     {"n", idle}};
    for (const auto& [name, evidence] : all) {
        Bundle bundle = bundle_of(0, {evidence});
        bundle.student = "student " + name;
        write_file(home / (name + ".f8lab"), bundle_text(bundle));
    }
    std::map<std::string, Likeness> like;
    for (const Graded& one : grade_all({home.path.string()})) {
        CHECK(one.recheck.stands() == (one.student != "student m" && one.student != "student n"));
        like[one.student.substr(8)] = one.like;
    }
    CHECK(like["b"].path == home / "a.f8lab");
    CHECK(like["b"].student == "student a");
    CHECK(like["b"].in == "explanation 88 %, 3 events");
    CHECK(like["e"].path == home / "d.f8lab");
    CHECK(like["i"].path == home / "h.f8lab");
    CHECK(like["i"].in == "15 events");
    CHECK(like["l"].path == home / "k.f8lab");
    CHECK(like["l"].in == "explanation 100 %, 3 events");
    CHECK(like["n"].path == home / "m.f8lab");
    CHECK(like["n"].in == "explanation 100 %");  // and not "0 events"
    for (const char* honest : {"a", "c", "d", "f", "g", "h", "j", "k", "m"})
        CHECK_MESSAGE(like[honest].path.empty(), honest);
}

TEST_CASE(
    "a file that is none, a link in a circle, a folder that is no submission: a row each, the rest graded") {
    const Scratch home;
    namespace fs = std::filesystem;
    fs::create_directories(home / "class/sub");
    write_file(home / "class/sub/good.f8lab", bundle_text(bundle_of(1, passes(1))));
    fs::create_symlink("loop.f8lab", home / "class/loop.f8lab");
    fs::create_symlink("circle", home / "class/circle");
    fs::create_symlink("nowhere", home / "class/gone.f8lab");
    fs::create_symlink("nowhere", home / "class/gone.txt");  // somebody else's
    fs::create_symlink("/dev/zero", home / "class/zero.f8lab");
    fs::create_directory_symlink(".", home / "class/itself");
    fs::create_directory(home / "class/folder.f8lab");
    REQUIRE(::mkfifo((home / "class/pipe.f8lab").c_str(), 0600) == 0);
    write_file(home / "class/sparse.f8lab", std::string_view("{"));
    fs::resize_file(home / "class/sparse.f8lab", std::uintmax_t{3} << 30);
    const std::vector<Graded> graded =
        grade_all({home / "class", home / "absent.f8lab", home / "class/pipe.f8lab"});
    const auto why = [&](const std::string& name) { return problems_of(graded, home / name); };
    CHECK(why("class/loop.f8lab").find("symbolic links") != std::string::npos);
    CHECK(why("class/circle").find("symbolic links") != std::string::npos);
    CHECK(why("class/gone.f8lab") == "No such file or directory\n");
    CHECK(why("class/gone.txt").empty());
    CHECK(why("class/zero.f8lab") == "is a device, not a file\n");
    CHECK(why("class/folder.f8lab") == "is a folder, not a file\n");
    CHECK(why("class/pipe.f8lab") == "is a pipe, not a file\n");  // named twice, counted once
    CHECK(why("class/sparse.f8lab") == "is 3.22 GB; such a file has at most 67.1 MB\n");
    CHECK(why("absent.f8lab") == "No such file or directory\n");
    CHECK(graded.size() == 8 + 4);  // good.f8lab has four exercises
    CHECK(std::ranges::count_if(graded, [](const Graded& one) { return one.recheck.stands(); }) == 4);
    CHECK(grades_row(graded.front()).find(",,0,,,,,,") !=
          std::string::npos);  // predicted and hints: not known
}

TEST_CASE("a folder that cannot be read is a row") {
    const Scratch home;
    // Root reads every folder; a name that is too long is refused to everyone.
    const std::string deep = home / std::string(255, 'a');
    std::filesystem::create_directories(deep);
    write_file(home / "good.f8lab", bundle_text(bundle_of(1, passes(1))));
    const std::string too_long = deep + "/" + std::string(4'000, 'b');
    const std::vector<Graded> graded = grade_all({too_long, home / "good.f8lab"});
    CHECK(problems_of(graded, too_long) == "File name too long\n");
    CHECK(graded.size() == 1 + 4);
    std::filesystem::permissions(deep, std::filesystem::perms::none);
    std::filesystem::permissions(home.path, std::filesystem::perms::all);  // another user looks into it
    const bool root = ::geteuid() == 0;
    constexpr uid_t kNobody = 65534;
    const bool other = root && ::seteuid(kNobody) == 0;  // root could read the folder all the same
    // Not judged: labs read assets, which the other user may not see.
    const std::vector<SubmissionFile> found = submissions_in(std::array{home.path.string()});
    if (other) REQUIRE(::seteuid(0) == 0);
    std::filesystem::permissions(deep, std::filesystem::perms::owner_all);
    if (root && !other) {
        MESSAGE("root may not become another user here: the closed folder is not tested");
        return;
    }
    const auto closed = std::ranges::find(found, std::filesystem::path(deep), &SubmissionFile::path);
    REQUIRE(closed != found.end());
    CHECK(closed->problem == "Permission denied");
    CHECK(found.size() == 2);
}

TEST_CASE("more events than one attempt can have are refused, with the reason, and not repeated") {
    const Scratch home;
    std::vector<Evidence> all = passes(1);
    const Evidence::EventGroup flip{.events = {acts("toggle 0")}};
    all[0].groups.insert(all[0].groups.begin(), kMostEvents + 5, flip);
    write_file(home / "a.f8lab", bundle_text(bundle_of(1, all)));
    const std::vector<Graded> graded = grade_all({home.path.string()});
    REQUIRE(graded.size() == 4);
    CHECK(
        graded[0].recheck.problems.front() ==
        "evidence 1 holds 5010 events of L1.1, and at most 5000 are judged. Each repeat of a held key is an "
        "event. Begin the exercise again.");
    CHECK(graded[1].recheck.stands());
    // What the window says of such an attempt: it does not pass either.
    Trail trail;
    trail.steps.assign(kMostEvents + 1, Step{.events = {acts("toggle 0")}, .after = {}});
    const Verdict verdict = judge_exercise(*test::exercise("L1.1").exercise, trail, nullptr);
    CHECK(verdict.conditions.back().text == "The attempt has at most 5,000 events. Begin again.");
    CHECK_FALSE(verdict.conditions.back().met);
    // Over all exercises of a submission there is no limit; of one exercise only the first is judged.
    std::vector<Evidence> five;
    for (int i = 0; i < 5; ++i) {
        five.push_back(passes(1)[0]);
        five.back().exercise = "L99." + std::to_string(i);  // judged fast: there is none
        five.back().groups.assign(kMostEvents, flip);
    }
    five.push_back(five.front());
    write_file(home / "a.f8lab", bundle_text(bundle_of(1, five)));
    const std::vector<Graded> in_all = grade_all({home.path.string()});
    REQUIRE(in_all.size() == 6);
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(in_all[i].recheck.problems ==
              std::vector<std::string>{"there is no exercise 'L99." + std::to_string(i) + "'"});
    CHECK(in_all[5].recheck.problems == std::vector<std::string>{"the submission holds this exercise twice"});
}

TEST_CASE("of millions of values that differ twenty are named") {
    Evidence forged = passes(1)[0];
    for (int i = 0; i < 1'000; ++i)
        forged.values.push_back({.name = "made_up_" + std::to_string(i), .value = 1});
    const std::vector<std::string> problems = recheck(forged, false).problems;
    REQUIRE(problems.size() == 21);
    CHECK(problems[19] == "made_up_19 is no value of this lab");
    CHECK(problems[20] == "more values differ");
}

TEST_CASE("bundles are found in a folder whatever they are named, and a file that is named besides once") {
    const Scratch home;
    const std::string text = bundle_text(bundle_of(1, passes(1)));
    for (const char* name : {"a.F8LAB", "anna.json", "b.JSON"}) write_file(home / name, text);
    write_file(home / "empty.json", bundle_text(bundle_of(1, {})));
    write_file(home / "other.json", std::string_view("{}"));
    std::vector<std::string> found;
    for (const SubmissionFile& file :
         submissions_in(std::vector<std::string>{home.path.string(), home.path.string() + "/./anna.json"}))
        found.push_back(file.path.filename().string());
    CHECK(found == std::vector<std::string>{"a.F8LAB", "anna.json", "b.JSON", "empty.json"});
    const std::vector<Graded> graded = grade_all({home.path.string()});
    CHECK(graded.size() == 3 * 4 + 1);
    CHECK(problems_of(graded, home / "empty.json") == "the submission holds no evidence\n");
}

TEST_CASE("a scene is a row, and neither a student nor an attempt") {
    Graded scene;
    scene.path = "a.f8scene";
    scene.evidence.exercise = "scene";
    scene.scene = true;
    CHECK(grades_row(scene).starts_with("a.f8scene,scene,1,,,,"));
    GradeTotals totals;
    totals.add(scene);
    CHECK(std::ranges::count(totals.csv(), '\n') == 1);
}
