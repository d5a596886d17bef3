// Submissions as files: written and read back, and refused with the place.
#include "core/lesson/bundle.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/json/checksum.h"

using namespace fp8lab;

namespace {

const Bundle kBundle{.student = "Zo\u00eb \"Z\" <b>",
                     .version = "0.1.0",
                     .at = "2026-11-20T23:12:07",
                     .machine = {{"processor", "AMD EPYC"}, {"threads", "2"}},
                     .evidence = {"{\n \"any\": \"text\"\n}\n", ""},
                     .predictions = {{"L1.1", {.skipped = false, .values = {2, std::nan("")}, .at = "now"}},
                                     {"L2.2", {.skipped = true, .values = {}, .at = ""}}}};

// Sealed anew after a change of one member.
std::string with(const char* member, const nlohmann::json& value) {
    auto json = parse_with_checksum(bundle_text(kBundle), "");
    json[member] = value;
    return with_checksum(std::move(json), 1);
}

void check_refused(const std::string& text, const std::string& why) {
    CAPTURE(why);
    CHECK_THROWS_WITH_AS(parse_bundle(text, "a.f8lab"), doctest::Contains(why.c_str()), Error);
}

}  // namespace

TEST_CASE("a submission reads back as it was written, evidence byte for byte") {
    const std::string text = bundle_text(kBundle);
    const Bundle back = parse_bundle(text, "a.f8lab");
    CHECK(back.intact);
    CHECK(back.student == kBundle.student);
    CHECK(back.at == kBundle.at);
    CHECK(back.machine == kBundle.machine);
    CHECK(back.evidence == kBundle.evidence);
    CHECK(back.predictions.at("L1.1").values.front() == 2);
    CHECK(std::isnan(back.predictions.at("L1.1").values.back()));
    CHECK(back.predictions.at("L2.2").skipped);
    CHECK(back.others.empty());
    CHECK(bundle_text(back) == text);
}

TEST_CASE("members that this version does not know are kept") {
    const std::string text = with("course", {{"name", "Numerics"}, {"year", 2026}});
    CHECK(bundle_text(parse_bundle(text, "a.f8lab")) == text);
}

TEST_CASE("a changed submission is read, and says that it was changed") {
    std::string text = bundle_text(kBundle);
    text.replace(text.find("23:12"), 5, "22:12");
    const Bundle changed = parse_bundle(text, "a.f8lab");
    CHECK_FALSE(changed.intact);
    CHECK(changed.student == kBundle.student);
}

TEST_CASE("what is no submission is refused with line and column") {
    check_refused("", "a.f8lab: ");
    check_refused("{}", "line 1, column 1: is no submission");
    check_refused("[1]", "is no submission");
    check_refused("{\n  oops", "line 2");
    check_refused(bundle_text(kBundle).substr(0, 100), "line");
    check_refused(with("fp8lab_bundle", 2), "written by a newer version (schema 2; this one reads 1)");
    check_refused(with("fp8lab_bundle", "1"), "expected the schema's number");
    check_refused(with("student", 7), ": expected a string, got number");
    check_refused(with("evidence", "text"), ": expected an array, got string");
    check_refused(with("evidence", {"a", 1}), ": expected a string, got number");
    check_refused(with("machine", 1), ": expected an object, got number");
    check_refused(with("machine", {{"cores", 2}}), ": expected a string, got number");
    check_refused(with("predictions", {{"L1.1", 2}}), "is no prediction");
    check_refused("{\n \"fp8lab_bundle\": 1\n}", "line 1, column 1: 'student' is missing");
    auto json = parse_with_checksum(bundle_text(kBundle), "");
    check_refused(json.dump(), "'checksum' is missing");
    check_refused(std::string(kLargestBundle + 1, ' '), "at most 67.1 MB");
}

TEST_CASE("a place is the line and column of the member itself") {
    std::string text = with("evidence", {"a", 1});
    const auto at = text.find("  1\n");
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    check_refused(text, "line " + std::to_string(line) + ", column 3: expected a string");
}

TEST_CASE("a name that is not UTF-8 cannot be written") {
    Bundle bundle = kBundle;
    bundle.student = "\xFF";
    CHECK_THROWS_AS(bundle_text(bundle), Error);
}
