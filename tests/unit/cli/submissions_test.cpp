// Submissions at the command line: report makes them, check grades them.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checksum.h"
#include "child.h"
#include "tests/json.h"

namespace {

// A profile with one pass, and the submission that `report` writes for it.
struct HandedIn {
    HandedIn() {
        std::filesystem::create_directories(profile + "/exercises");
        spit(profile + "/exercises/L1.1.json", slurp(FP8LAB_SOURCE "/tests/unit/cli/evidence/L1.1.json"));
        const Finished run =
            fp8lab("report --profile " + profile + " --student Ada -o " + page + " --bundle " + bundle);
        CHECK(run.code == 0);
        CHECK(run.err.empty());
        CHECK(run.out.empty());
    }
    Scratch home;
    std::string profile = home / "profile", page = home / "r.html", bundle = home / "a.f8lab";
};

}  // namespace

TEST_CASE("report writes a page and a submission that check accepts") {
    const HandedIn ada;
    CHECK(slurp(ada.page).starts_with("<!DOCTYPE html>"));
    CHECK(slurp(ada.page).find("<h1 dir=\"auto\">Ada</h1>") != std::string::npos);
    const Finished run = fp8lab("check " + ada.bundle);
    CHECK(run.code == 0);
    CHECK(run.out == "passed  L1.1   Ada, " + ada.bundle + ", repeated\n");
    CHECK(fp8lab("report --profile " + ada.profile).err ==
          "fp8lab: report: nothing to write: name a file with -o or --bundle\n");
    CHECK(fp8lab("report --profile " + ada.profile).code == 2);
    CHECK(fp8lab("report -o " + ada.page).code == 4);  // a profile with nothing in it
    CHECK(fp8lab("report --profile " + ada.profile + " -o " + (ada.home / "no/where.html")).code == 1);
}

TEST_CASE("one submission that cannot be read is exit 4 with its place, among others it is a line") {
    const HandedIn ada;
    const std::string bad = ada.home / "b.f8lab";
    spit(bad, "{\n \"fp8lab_bundle\": oops");
    const Finished alone = fp8lab("check " + bad);
    CHECK(alone.code == 4);
    CHECK(alone.out.empty());
    CHECK(alone.err.starts_with("fp8lab: " + bad + ": "));
    CHECK(alone.err.find("line 2") != std::string::npos);
    for (const std::string& paths : {ada.bundle + " " + bad, ada.home.path.string() + "/*.f8lab"}) {
        const Finished both = fp8lab("check " + paths);
        CHECK(both.code == 1);
        CHECK(both.out.find("failed         " + bad) != std::string::npos);
        CHECK(both.out.find("passed  L1.1   Ada, ") != std::string::npos);
        CHECK(both.err == "fp8lab: check: 1 of 2 did not pass\n");
    }
}

TEST_CASE("a folder's submissions and loose evidence are graded together, one row each") {
    const HandedIn ada;
    const Finished run = fp8lab("check --csv - " + ada.home.path.string());
    CHECK(run.code == 0);
    CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 3);
    CHECK(run.out.find(",Ada,bits,") != std::string::npos);
    CHECK(run.out.find(",,bits,") != std::string::npos);
    CHECK(run.out.find("," + ada.bundle + ",,\n") != std::string::npos);  // the very same evidence
}

TEST_CASE("a changed submission fails as a whole") {
    const HandedIn ada;
    std::string text = slurp(ada.bundle);
    text.replace(text.find("\"Ada\""), 5, "\"Eve\"");
    spit(ada.bundle, text);
    const Finished run = fp8lab("check " + ada.bundle);
    CHECK(run.code == 1);
    CHECK(run.out.find("failed  L1.1   Eve, ") != std::string::npos);
    CHECK(run.out.find("the submission was changed: its checksum does not fit") != std::string::npos);
}

TEST_CASE("evidence with a wrong checksum has the row of the exercise that it claims") {
    const HandedIn ada;
    auto bundle = parsed(slurp(ada.bundle));
    auto one = bundle["evidence"][0].get<std::string>();
    const auto at = one.find("\"hints\": ");
    REQUIRE(at != one.npos);
    one.insert(at + 9, "1");
    bundle["evidence"] = {one, bundle["evidence"][0], "{\"exercise\": \"L3.2\""};
    bundle.erase("checksum");
    bundle["checksum"] = hash_of(bundle);
    spit(ada.bundle, bundle.dump());
    const Finished run = fp8lab("check " + ada.bundle + " --csv -");
    CHECK(run.code == 1);
    std::istringstream lines(run.out);
    std::string head, changed, whole, broken;
    for (std::string* line : {&head, &changed, &whole, &broken}) REQUIRE(std::getline(lines, *line));
    CHECK(changed.starts_with(ada.bundle + ",L1.1,0,,,,"));
    CHECK(changed.find("checksum") != std::string::npos);
    CHECK(whole.starts_with(ada.bundle + ",L1.1,1,repeated,1,"));
    CHECK(broken.starts_with(ada.bundle + ",L3.2,0,,,,"));
    CHECK(fp8lab("check " + ada.bundle).out.starts_with("failed  L1.1   Ada, "));
}

TEST_CASE("whatever was named has a row, and the rest is graded: tables of rows and of totals") {
    const HandedIn ada;
    namespace fs = std::filesystem;
    const std::string folder = ada.home / "class";
    fs::create_directories(folder + "/folder.f8lab");
    spit(folder + "/ada.f8lab", slurp(ada.bundle));
    REQUIRE(::mkfifo((folder + "/pipe.f8lab").c_str(), 0600) == 0);
    fs::create_symlink("loop.f8lab", folder + "/loop.f8lab");
    fs::create_symlink("nowhere", folder + "/gone.f8lab");
    spit(folder + "/sparse.f8lab", "{");
    fs::resize_file(folder + "/sparse.f8lab", std::uintmax_t{3} << 30);
    const std::string rows = ada.home / "rows.csv", totals = ada.home / "totals.csv";
    const Finished run = fp8lab("check " + folder + " /dev/zero " + (ada.home / "absent.json") + " --csv " +
                                rows + " --totals " + totals);
    CHECK(run.code == 1);
    CHECK(run.err == "fp8lab: check: 7 of 8 did not pass\n");
    CHECK(run.out.starts_with("passed  L1.1   Ada, " + folder + "/ada.f8lab, repeated\n"));
    const std::string table = slurp(rows);
    CHECK(std::count(table.begin(), table.end(), '\n') == 1 + 8);
    for (const char* cells :
         {"/folder.f8lab,,0,,,,,,\"is a folder, not a file\",",
          "/pipe.f8lab,,0,,,,,,\"is a pipe, not a file\",",
          "/sparse.f8lab,,0,,,,,,is 3.22 GB; such a file has at most 67.1 MB,",
          "/gone.f8lab,,0,,,,,,No such file or directory,",
          "/loop.f8lab,,0,,,,,,Too many levels of symbolic links,",
          "/dev/zero,,0,,,,,,\"is a device, not a file\",", "absent.json,,0,,,,,,No such file or directory,"})
        CHECK_MESSAGE(table.find(cells) != std::string::npos, cells);
    const std::string sums = slurp(totals);
    CHECK(
        sums.starts_with("student,path,files,exercises,passed,failed,unreadable,predicted,hints,alike\nAda," +
                         folder + "/ada.f8lab,1,1,1,0,0,1,1,0\n"));
    CHECK(std::count(sums.begin(), sums.end(), '\n') == 1 + 8);
    const Finished json = fp8lab("check --json " + folder + "/pipe.f8lab " + ada.bundle);
    CHECK(json.out.find("\"predicted\": null") != std::string::npos);
    CHECK(json.out.find("\"hints\": null") != std::string::npos);
}

TEST_CASE("a copy under another name is said on the terminal, and changes no verdict") {
    const HandedIn ada;
    const std::string copy = ada.home / "e.f8lab";  // another name, and a checksum that fits
    CHECK(fp8lab("report --profile " + ada.profile + " --student Eve --bundle " + copy).code == 0);
    const Finished run = fp8lab("check " + ada.bundle + " " + copy);
    CHECK(run.code == 0);
    CHECK(run.out.ends_with("alike   L1.1   Eve, " + copy + " and " + ada.bundle +
                            ": the very same evidence\n"));
    // On a slow machine a line about the progress stands before it.
    CHECK(fp8lab("check --csv - " + ada.bundle + " " + copy)
              .err.ends_with(
                  "fp8lab: check: 1 of 2 rows are much like an earlier one: see same_as and similar_to\n"));
}

namespace {

struct Used {
    int code;
    double seconds;  // of the processor
    long kilobytes;
};

Used used_by(const std::vector<std::string>& arguments, const std::string& out) {
    std::vector<char*> words = {const_cast<char*>(FP8LAB_BINARY)};
    for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        if (std::freopen(out.c_str(), "w", stdout) == nullptr) ::_exit(126);
        ::execv(FP8LAB_BINARY, words.data());
        ::_exit(127);
    }
    int status = 0;
    rusage used{};
    REQUIRE(::wait4(child, &status, 0, &used) == child);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, seconds(used.ru_utime) + seconds(used.ru_stime),
            used.ru_maxrss};
}

}  // namespace

TEST_CASE("a submission of 27 MB with 300,001 events is refused with the reason, in little memory") {
    const Scratch home;
    std::string groups;
    for (int i = 0; i < 300'001; ++i)
        groups += std::string(i == 0 ? "" : ",") + "{\n   \"events\": [[\"act\", \"toggle 0\"]]\n  }";
    const std::string evidence = "{\"exercise\": \"L1.1\", \"fp8lab_evidence\": 1, \"scene\": {\"deeds\": [" +
                                 groups + "], \"lab\": \"bits\"}}";
    const nlohmann::json bundle = {{"fp8lab_bundle", 1},
                                   {"student", "Ada"},
                                   {"version", "0.1.0"},
                                   {"at", ""},
                                   {"machine", nlohmann::json::object()},
                                   {"evidence", {std::string(13'000'000, ' ') + evidence}},
                                   {"predictions", nlohmann::json::object()},
                                   {"checksum", ""}};
    spit(home / "a.f8lab", bundle.dump());
    CHECK(std::filesystem::file_size(home / "a.f8lab") > 27'000'000);
    const Used run = used_by({"check", home / "a.f8lab"}, home / "out");
    CHECK(run.code == 1);
    CHECK(slurp(home / "out").find("holds 300001 events of L1.1, and at most 5000 are judged") !=
          std::string::npos);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(run.kilobytes < 300'000);
    CHECK(run.seconds < 10);
#endif
    MESSAGE(run.seconds, " s of the processor, ", run.kilobytes, " kB");
}

namespace {

// The evidence of L1.1 with pairs of flips in front that change nothing.
std::string long_way(int pairs) {
    nlohmann::json json = parsed(slurp(FP8LAB_SOURCE "/tests/unit/cli/evidence/L1.1.json"));
    nlohmann::json& groups = json["scene"]["deeds"];
    const nlohmann::json flip = {
        {"events", nlohmann::json::array({nlohmann::json::array({"act", "toggle 0"})})}};
    groups.insert(groups.begin(), static_cast<std::size_t>(2 * pairs), flip);
    json["scene_hash"] = hash_of(json["scene"]);
    json.erase("checksum");
    json["checksum"] = hash_of(json);
    return json.dump();
}

}  // namespace

TEST_CASE("what an attempt takes to judge grows with its events and not faster") {
    const Scratch home;
    const auto seconds = [&](int flips) {
        spit(home / "a.json", long_way(flips / 2));
        const Used run = used_by({"check", home / "a.json"}, home / "out");
        CHECK(run.code == 0);
        return run.seconds;
    };
    const double some = seconds(1'000), many = seconds(4'000);
    CAPTURE(some);
    CAPTURE(many);
    CHECK(many < 6 * some);
}

TEST_CASE("a signal keeps the rows that are known, before it they lie beside the table") {
    const Scratch home;
    const std::string folder = home / "class", table = home / "t/rows.csv";
    std::filesystem::create_directories(folder);
    std::filesystem::create_directories(home / "t");
    spit(folder + "/000.json", long_way(0));
    for (int i = 0; i < 20; ++i) spit(folder + "/" + std::to_string(100 + i) + ".json", long_way(2000 + i));
    const auto rows_in = [&](const std::filesystem::path& file) {
        const std::string text = slurp(file.string());
        return std::count(text.begin(), text.end(), '\n') - 1;
    };
    const auto hidden = [&] {
        for (const auto& entry : std::filesystem::directory_iterator(home / "t"))
            if (entry.path().filename().string().starts_with(".rows.csv.")) return entry.path();
        return std::filesystem::path();
    };
    Child child(home, {"check", folder, "--csv", table}, {});
    REQUIRE(Child::until([&] { return !hidden().empty() && rows_in(hidden()) >= 1; }));
    CHECK_FALSE(std::filesystem::exists(table));
    child.signal(SIGTERM);
    CHECK(child.wait() == 143);
    CHECK(hidden().empty());
    const auto rows = rows_in(table);
    CHECK(rows >= 1);
    CHECK(rows < 21);
    const std::string text = slurp(table);
    CHECK(std::count(text.begin(), text.end(), '\n') == rows + 1);
    CHECK(text.find("/000.json,L1.1,1,repeated,") != std::string::npos);
    CHECK(text.find(",L1.1,0,") == std::string::npos);  // none was cut short
    CHECK(child.err().find("ended by SIGTERM") != std::string::npos);
    CHECK(child.out().starts_with("passed  L1.1   " + folder + "/000.json"));
}

TEST_CASE("a signal while stdin is waited for keeps the rows that are known") {
    const Scratch home;
    std::filesystem::create_directories(home / "t");
    spit(home / "a.json", long_way(0));
    const std::string table = home / "t/rows.csv";
    Child child(home, {"check", home / "a.json", "-", "--csv", table}, {.input_ends = false});
    REQUIRE(Child::until([&] { return child.out().find("passed  L1.1") != std::string::npos; }));
    child.signal(SIGINT);
    CHECK(child.wait() == 130);
    CHECK(slurp(table).find("/a.json,L1.1,1,repeated,") != std::string::npos);
    CHECK(child.err().find("after 1 rows of 2 files") != std::string::npos);
}
