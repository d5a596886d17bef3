// The report: its numbers are the evidence's, its text is text, and it asks nothing of anybody.
#include "labs/grading/report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/files.h"
#include "core/lesson/progress.h"
#include "labs/grading/submission.h"
#include "tests/scratch.h"
#include "tests/unit/made_evidence.h"

using namespace fp8lab;

namespace {

const char* const kHostile =
    "</script><script>alert('x')</script> & <img src=\"http://example.org/a.png\" onerror=\"x\">";

// One exercise with each kind of prediction, and one that is only predicted.
std::vector<Evidence> some_passes() {
    std::vector<Evidence> out;
    for (const char* id : {"L1.1", "L2.3", "L3.1", "L6.1"}) {
        const ExerciseEntry entry = test::exercise(id);
        Prediction prediction{.skipped = false, .values = {1}, .at = "2026-11-20T10:00:00"};
        if (const auto* curve = std::get_if<CurvePrediction>(&entry.exercise->prediction))
            prediction.values.assign(curve->at.size() * curve->lines.size(), 0.0123456789);
        if (entry.exercise->predict.empty()) prediction = {.skipped = true, .values = {}, .at = {}};
        out.push_back(test::attempt(entry, entry.exercise->solver, prediction));
        out.back().explanation = kHostile;
    }
    return out;
}

Bundle some_submission() {
    Bundle out{.student = kHostile,
               .version = "0.1.0",
               .at = "2026-11-20T23:12:07",
               .machine = {{"processor", kHostile}},
               .evidence = {},
               .predictions = {}};
    for (const Evidence& evidence : some_passes()) out.evidence.push_back(evidence_text(evidence));
    out.predictions["L4.4"] = {.skipped = false, .values = {450}, .at = "2026-11-20T10:00:00"};
    return out;
}

// The page from this exercise's article to its end.
std::string article(const std::string& page, const std::string& id) {
    const auto at = page.find("<article id=\"" + id + "\"");
    REQUIRE(at != std::string::npos);
    return page.substr(at, page.find("</article>", at) - at);
}

std::vector<double> values_after(const std::string& page, const std::string& mark) {
    std::vector<double> out;
    const std::string number = " data-value=\"";
    for (std::size_t at = 0; (at = page.find(mark, at)) != std::string::npos; at += mark.size()) {
        const auto from = page.find(number, at) + number.size();
        out.push_back(std::strtod(page.c_str() + from, nullptr));
    }
    return out;
}

void check_values(const std::string& part, const Evidence& evidence) {
    for (const Metric& metric : evidence.values) {
        CAPTURE(metric.name);
        const std::string shown = metric.text.empty()
                                      ? "<span class=\"n\" data-value=\"" + shortest(metric.value) + "\">" +
                                            format_number(metric.value, 4, true) + "</span></td>"
                                      : metric.text + "</td>";
        CHECK(part.find("data-metric=\"" + metric.name + "\">" + shown) != std::string::npos);
    }
    if (!evidence.prediction.skipped) {
        CHECK(values_after(part, "data-of=\"predicted\"") == evidence.prediction.values);
        CHECK(values_after(part, "data-of=\"measured\"") == evidence.measured);
    }
    for (const Condition& condition : evidence.conditions)
        CHECK(part.find(condition.text) != std::string::npos);
    CHECK(part.find("<dd data-of=\"hash\">" + scene_hash(evidence) + "</dd>") != std::string::npos);
    CHECK(part.find("every value is the same") != std::string::npos);
    CHECK(part.find("<svg ") != std::string::npos);
}

}  // namespace

TEST_CASE("every number of the report is the evidence's") {
    const Bundle submission = some_submission();
    const std::string page = report_html(submission);
    for (const std::string& text : submission.evidence) {
        const Evidence evidence = parse_evidence(text, "test");
        CAPTURE(evidence.exercise);
        check_values(article(page, evidence.exercise), evidence);
    }
    CHECK(page.find("data-count=\"passed\">4 ") != std::string::npos);
    CHECK(page.find("data-count=\"explained\">4<") != std::string::npos);
    CHECK(article(page, "L4.4").find("not passed yet") != std::string::npos);
    CHECK(values_after(article(page, "L4.4"), "data-of=\"predicted\"") == std::vector<double>{450});
}

TEST_CASE("a predicted curve lies over its figure") {
    const std::string page = report_html(some_submission());
    CHECK(article(page, "L3.1").find(", predicted") != std::string::npos);
}

TEST_CASE("the submission is inside the report, whole") {
    const Bundle submission = some_submission();
    const std::string page = report_html(submission),
                      head = "<script type=\"application/json\" id=\"submission\">";
    const auto from = page.find(head) + head.size();
    const std::string inside = page.substr(from, page.find("</script>", from) - from);
    const Bundle back = parse_bundle(inside, "inside");
    CHECK(back.intact);
    CHECK(back.student == submission.student);
    CHECK(back.evidence == submission.evidence);
}

TEST_CASE("what a student types stays text: no element, no attribute, no address") {
    const std::string page = report_html(some_submission());
    CHECK(page.find("<img") == std::string::npos);
    CHECK(page.find("<script>") == std::string::npos);
    CHECK(page.find("&lt;img src=&quot;http://") != std::string::npos);
    std::size_t scripts = 0;
    for (std::size_t at = 0; (at = page.find("<script", at)) != std::string::npos; ++at) ++scripts;
    CHECK(scripts == 1);  // the data
}

TEST_CASE("the report forbids itself every request, and names no address but namespaces") {
    const std::string page = report_html(some_submission());
    CHECK(page.find("content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action "
                    "'none'\"") != std::string::npos);
    for (const char* asking : {" src=\"", "<link", "@import", "<iframe", "<object", "href=\"http"})
        CHECK_MESSAGE(page.find(asking) == std::string::npos, asking);
    static const std::regex kUrl(R"(url\(([^)]*)\))");
    std::size_t clips = 0;
    for (std::sregex_iterator it(page.begin(), page.end(), kUrl), end; it != end; ++it, ++clips) {
        const std::string target = (*it)[1];
        REQUIRE(target.starts_with("#"));
        const std::string id = "id=\"" + target.substr(1) + "\"";
        const auto first = page.find(id);
        REQUIRE(first != std::string::npos);
        CHECK_MESSAGE(page.find(id, first + 1) == std::string::npos,
                      id);  // one clip of that name on the page
    }
    CHECK(clips > 4);
}

TEST_CASE("evidence that does not stand is shown as such") {
    Bundle submission = some_submission();
    Evidence forged = parse_evidence(submission.evidence.front(), "test");
    forged.groups.pop_back();
    submission.evidence.front() = evidence_text(forged);
    const std::string part = article(report_html(submission), "L1.1");
    CHECK(part.find("does not stand") != std::string::npos);
    CHECK(part.find("not met: ") != std::string::npos);
}

TEST_CASE("a profile makes a submission with the files' own texts, and a report") {
    const Scratch home;
    CHECK_THROWS_WITH_AS(make_submission(home.path, "Ada"),
                         doctest::Contains("holds no exercise that was begun"), Error);
    Progress progress(home.path);
    for (const Evidence& evidence : some_passes()) progress.keep(evidence);
    progress.keep("L4.4", Prediction{.skipped = false, .values = {450}, .at = "2026-11-20T10:00:00"});
    const Bundle made = make_submission(home.path, "Ada");
    REQUIRE(made.evidence.size() == 4);
    CHECK(made.evidence[0] == read_text(progress.file("L1.1")));
    CHECK(made.evidence[3] == read_text(progress.file("L6.1")));
    CHECK(made.predictions.size() == 1);
    CHECK(made.machine.front().first == "processor");
    CHECK(report_html(made).find("<h1 dir=\"auto\">Ada</h1>") != std::string::npos);
}

TEST_CASE("0x7F is drawn with an x: no element has contextual alternates, whatever font it sets") {
    const std::string page = report_html(some_submission());
    const auto from = page.find("<style>"), to = page.find("</style>");
    const std::string css = page.substr(from, to - from);
    const auto rule = css.find("\n* {");
    REQUIRE(rule != std::string::npos);
    const std::string all = css.substr(rule, css.find('}', rule) - rule);
    // A "font" shorthand sets both back, unless they are important.
    CHECK(all.find("font-variant-ligatures: none !important;") != std::string::npos);
    CHECK(all.find("font-feature-settings: \"calt\" 0 !important;") != std::string::npos);
    CHECK(css.find("font-feature-settings", rule + all.size()) == std::string::npos);
    CHECK(css.find("font-variant", rule + all.size()) == std::string::npos);
    CHECK(page.find("0x7E = 448") != std::string::npos);  // it is about this
    const auto svg = page.find("<svg");
    REQUIRE(svg != std::string::npos);
    CHECK(page.substr(svg, page.find('>', svg) - svg).find("font-feature-settings:'calt' 0") !=
          std::string::npos);
}
