// The glossary that ships: whole, without dead links, and with something to say on every control.
#include "core/lesson/glossary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "labs/course/help.h"
#include "labs/course/term_figures.h"
#include "labs/lab.h"
#include "tests/json.h"

using namespace fp8lab;

TEST_CASE("the glossary has its terms, each in one to three sentences") {
    const Glossary glossary = load_glossary();
    CHECK(glossary.terms().size() ==
          parsed(read_text(FP8LAB_SOURCE "/assets/glossary.json")).at("terms").size());
    for (const char* id :
         {"amax",      "bias", "binade",     "block-scale",         "current-scaling", "delayed-scaling",
          "e8m0",      "fnuz", "gemm",       "loss-scale",          "margin",          "master-weights",
          "mx",        "rne",  "saturation", "stochastic-rounding", "subnormal",       "swamping",
          "tn-layout", "ulp",  "underflow"})
        CHECK_MESSAGE(glossary.find(id) != nullptr, id);
    for (const char* id : {"sqnr", "decibel", "nvfp4", "hybrid", "tail-loss", "noise-floor", "lost-mass",
                           "teacher", "tensor-x-w-dy"})  // lessons use them
        CHECK_MESSAGE(glossary.find(id) != nullptr, id);
    for (const Term& term : glossary.terms()) {
        CAPTURE(term.id);
        CHECK(term.text.size() >= 40);
        CHECK(term.text.size() <= 320);
        CHECK(term.text.ends_with('.'));
        CHECK((term.why.empty() || term.why.ends_with('.')));
        CHECK_FALSE(term.related.empty());
    }
}

TEST_CASE("both conventions of scale are told, and each leads to the other") {
    const Glossary glossary = load_glossary();
    const Term* scale = glossary.find("scale");
    const Term* inverse = glossary.find("scale-inv");
    REQUIRE((scale != nullptr && inverse != nullptr));
    CHECK(scale->text.find("before the cast") != std::string::npos);
    CHECK(scale->text.find("after the cast") != std::string::npos);
    CHECK(std::ranges::count(scale->related, "scale-inv") == 1);
    CHECK(std::ranges::count(inverse->related, "scale") == 1);
}

TEST_CASE("every field of every lab leads to a term, and what a term explains is there") {
    const Glossary glossary = load_glossary();
    std::set<std::string> all;
    for (const LabEntry& entry : lab_registry()) {
        const auto lab = entry.make();
        for (const Field& field : lab->fields()) {
            const std::string name = std::string(entry.id) + "." + field.info.name;
            all.insert(name);
            all.insert("*." + field.info.name);
            CHECK_MESSAGE(glossary.field(entry.id, field.info.name) != nullptr, name);
        }
    }
    for (const Term& term : glossary.terms())
        for (const std::string& field : term.explains) CHECK_MESSAGE(all.contains(field), field);
}

TEST_CASE("a control's help comes from its field, its term and its lab's defaults") {
    const Glossary glossary = load_glossary();
    const auto lab = find_lab("delayed").make();
    set_field(lab->fields(), "history=8");
    const auto help = control_help(lab.get(), "history.value", glossary);
    REQUIRE(help);
    CHECK(help->title == "History");
    CHECK(help->te_name == "amax_history_len");
    CHECK(help->values.find("default ") != std::string::npos);
    CHECK(help->values.find("default 8") == std::string::npos);  // as it starts, not as it is
    CHECK(help->term == "amax-history");
    CHECK_FALSE(help->why.empty());
    CHECK(control_help(lab.get(), "delayed.strip.scale.4", glossary)->term == "scale");
    const auto bits = find_lab("bits").make();
    CHECK(control_help(bits.get(), "bits.bit3", glossary)->term == "code");
    CHECK(control_help(bits.get(), "bits.format0.2", glossary)->title == "Format");
    CHECK(control_help(nullptr, "home.continue", glossary)->title == "Continue");
    CHECK(control_help(lab.get(), "delayed.more", glossary)->term.empty());
    CHECK_FALSE(control_help(lab.get(), "no.such.thing", glossary));
}

TEST_CASE("every illustrated term is a term, and its figure holds numbers only") {
    const Glossary glossary = load_glossary();
    CHECK(illustrated_terms().size() == 17);
    for (const std::string_view id : illustrated_terms()) {
        CAPTURE(std::string(id));
        CHECK(glossary.find(id) != nullptr);
        const auto figure = term_figure(id);
        REQUIRE(figure);
        CHECK_FALSE(figure->title.empty());
        const Extents shown = fit(*figure);
        CHECK(std::isfinite(shown.x.lo + shown.x.hi + shown.y.lo + shown.y.hi));
        CHECK_FALSE(figure->series.empty());
    }
    CHECK_FALSE(term_figure("loss"));
}

TEST_CASE("what the figures' titles say is what they draw") {
    const auto last_y = [](const Figure& figure, std::string_view series) {
        const auto found = std::ranges::find(figure.series, series, &Series::name);
        REQUIRE(found != figure.series.end());
        return std::get<LineSeries>(found->shape).y->back();
    };
    CHECK(last_y(*term_figure("swamping"), "BF16") == 256);
    CHECK(last_y(*term_figure("saturation"), "E4M3") == 448);
    const Figure delayed = *term_figure("delayed-scaling");
    const auto cut = std::ranges::find(delayed.series, "saturates", &Series::name);
    REQUIRE(cut != delayed.series.end());
    CHECK(*std::get<ScatterSeries>(cut->shape).x == std::vector<double>{1, 3});
}

TEST_CASE("a broken glossary is refused with the entry's name") {
    const auto refused = [](std::string_view json, const char* why) {
        CHECK_THROWS_WITH_AS(Glossary(json, "g.json"), doctest::Contains(why), Error);
    };
    const std::string good =
        R"({"id": "a", "term": "A", "text": "It is.", "related": [], "explains": ["x.y"]})";
    const auto file = [](const std::string& terms, const std::string& controls = "") {
        return R"({"terms": [)" + terms + R"(], "controls": [)" + controls + "]}";
    };
    CHECK_NOTHROW(Glossary(file(good), "g.json"));
    refused("[", "g.json");
    refused("{}", "terms");
    refused(file(R"({"id": "a", "text": "t", "related": [], "explains": []})"), "'term' is missing");
    refused(file(R"({"id": "a", "term": "A", "text": "t", "related": [], "explains": [], "wy": ""})"),
            "unknown key 'wy'");
    refused(file(R"({"id": "a", "term": "A", "text": "t", "explains": []})"), "term 'a'");
    refused(file(good + "," + good), "is there twice");
    refused(file(R"({"id": "b", "term": "B", "text": "t", "related": ["c"], "explains": []})"), "'c'");
    refused(file(good + R"(,{"id": "b", "term": "B", "text": "t", "related": [], "explains": ["x.y"]})"),
            "explained already");
    refused(file(good, R"({"control": "p", "label": "P", "help": "h", "term": "z"})"), "no term 'z'");
}
