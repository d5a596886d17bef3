// fp8lab validate --report, as a script sees it: one page and one JSON with the same data.
#include <filesystem>

#include "process.h"
#include "validate_page.h"

namespace {

std::string exactly(const json& number) { return number.dump(); }

}  // namespace

TEST_CASE("validate --report writes a page and a JSON with the same data") {
    const Scratch scratch;
    const std::string html = scratch / "out.html", file = scratch / "out.json";
    const Finished first = fp8lab("validate --backend cpu --report " + file);
    REQUIRE(first.code == 0);
    CHECK(first.out.starts_with("ok  "));
    const json report = parsed(slurp(file));
    for (const char* member : {"provenance", "device", "version", "seed", "date"})
        CHECK(report.contains(member));
    CHECK(report["passed"] == true);
    CHECK(report["complete"] == true);
    CHECK(report["checks"] == parsed(fp8lab("validate --backend cpu --json").out)["checks"]);
    const json& arms = report["recipes"]["arms"];
    CHECK(arms.size() > 10);
    CHECK(arms[0]["recipe"] == "bf16");
    CHECK(arms[0]["gap_pct"] == 0);
    std::set<std::string> names, checksums;
    for (const json& arm : arms) {
        names.insert(arm["recipe"]);
        checksums.insert(arm["losses_checksum"]);
        CHECK(arm["losses_checksum"].get<std::string>().size() == 16);
        CHECK(arm["steps"] == 200);
    }
    CHECK(names.size() == arms.size());
    CHECK(checksums.size() > arms.size() / 2);  // recipes are not all one
    for (const char* part : {"gpu_against_cpu", "speed"})
        CHECK(report[part]["reason"] == "--backend cpu: no GPU was asked for");
    CHECK(report["memory"]["peak_bytes"] > report["memory"]["recipes_bytes"]);
    // A call of its own has the same losses.
    REQUIRE(fp8lab("validate --backend cpu --report " + html).code == 0);
    const std::string written = slurp(html);
    check_loads_nothing(written);
    for (const json& arm : arms) {
        CHECK(written.find(arm["losses_checksum"].get<std::string>()) != std::string::npos);
        CHECK(written.find("data-value=\"" + exactly(arm["tail_loss"]) + "\"") != std::string::npos);
    }
}

TEST_CASE("the losses of the report are those of the training that it names") {
    const Scratch scratch;
    REQUIRE(fp8lab("validate --backend cpu --report " + (scratch / "r.json")).code == 0);
    const json recipes = parsed(slurp(scratch / "r.json"))["recipes"];
    const json trained =
        parsed(fp8lab("train --backend cpu " + recipes["command_line"].get<std::string>() + " --json -")
                   .out)["arms"];
    REQUIRE(trained.size() == recipes["arms"].size());
    for (std::size_t i = 0; i < trained.size(); ++i)
        for (const char* member : {"recipe", "tail_loss", "gap_pct", "first_loss"})
            CHECK(trained[i][member] == recipes["arms"][i][member]);
}

TEST_CASE("what --report refuses is said before the checks") {
    const Scratch scratch;
    const struct {
        std::string file;
        int code;
        const char* says;
    } cases[] = {
        {scratch / "out.txt", 2, "ends neither in .html nor in .json"},
        {"-", 2, "ends neither in .html nor in .json"},
        {scratch / "none/out.html", 1, "--report"},
    };
    for (const auto& c : cases) {
        CAPTURE(c.file);
        const Finished run = fp8lab("validate --backend cpu --report " + c.file);
        CHECK(run.code == c.code);
        CHECK(run.out.empty());
        CHECK(run.err.starts_with("fp8lab: --report: "));
        CHECK(run.err.find(c.says) != std::string::npos);
        CHECK(std::ranges::count(run.err, '\n') == 1);
    }
    CHECK(fp8lab("validate --backend cuda --report " + (scratch / "gpu.html")).code == 3);
    CHECK_FALSE(std::filesystem::exists(scratch / "gpu.html"));
}
