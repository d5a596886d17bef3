// Exercises as a file: what is read, what is refused, and the place that a refusal names.
#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/base/fields.h"
#include "core/lesson/exercise.h"

using namespace fp8lab;

namespace {

Verdict by_margin(const Trail& trail, const Prediction*) {
    return {.conditions = {{"margin 2", {}, trail.now().field("margin") == "2"}}};
}
Verdict by_answer(const Trail& trail, const Prediction*) {
    return {.conditions = {{"slow is 1", {}, trail.answered("slow") == "1"}}};
}
constexpr std::array kJudges = {NamedJudge{"by_margin", by_margin}, NamedJudge{"by_answer", by_answer}};

const std::string kWhole = R"([
  {
    "id": "L9.9",
    "title": "A title",
    "question": "A question.",
    "prediction": {"number": {"label": "gap", "unit": "%", "min": 0.5, "max": 60, "initial": 5,
                              "logarithmic": true, "step": 0.5}},
    "predict": "How many?",
    "covers": ["timeline", "strips"],
    "conditions_answer": true,
    "start": ["margin=1", "name=a=b"],
    "answers": [{"name": "slow", "label": "Slow", "unit": "dB"}, {"name": "kind", "label": "Kind", "choices": ["x", "y"]}],
    "columns": ["E4M3", "E5M2"],
    "hints": ["one", "two", "three"],
    "judge": "by_margin",
    "explanation": "Because.",
    "reveals": "reveal",
    "uncovers": ["margin=0"],
    "solver": ["margin=2", "!run to 300", "?slow=5.88 %"],
    "near_misses": [
      {"why": "one", "events": ["margin=1"], "refused_by": "margin 2"},
      {"why": "none", "events": ["?kind=y"], "refused_by": "margin 2"}
    ]
  },
  {
    "id": "L9.10", "title": "T", "question": "Q",
    "prediction": {"curve": {"figure": "f", "x": {"label": "m", "range": [-0.5, 9.5]},
                   "y": {"label": "dB", "scale": "log10", "range": [0, 45]}, "at": [0, 3, 6], "initial": 20}},
    "predict": "P",
    "hints": ["1", "2", "3"], "judge": "by_answer", "explanation": "E",
    "answers": [{"name": "slow", "label": "Slow"}],
    "solver": ["?slow=1"],
    "near_misses": [{"why": "a", "events": ["?slow=2"], "refused_by": "slow is 1"},
                    {"why": "b", "events": ["?slow=3"], "refused_by": "slow is 1"}]
  }
]
)";

std::vector<Exercise> read(const std::string& text) {
    static int margin = 0;
    static std::string name;
    const std::vector fields = {integer({.name = "margin", .label = "Margin"}, &margin, 0, 9),
                                fp8lab::text({.name = "name", .label = "Name"}, &name)};
    return parse_exercises(text, "l.json", kJudges, fields);
}

// The refusal of kWhole with `from`, which is there once, replaced.
std::string why_not(const std::string& from, const std::string& to) {
    std::string text = kWhole;
    const std::size_t at = text.find(from);
    REQUIRE(at != text.npos);
    text.replace(at, from.size(), to);
    try {
        read(text);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(error.where() == "l.json");
        return error.why();
    }
    return "taken";
}

}  // namespace

TEST_CASE("an exercise is read whole") {
    const auto all = read(kWhole);
    REQUIRE(all.size() == 2);
    const Exercise& first = all[0];
    CHECK(first.id == "L9.9");
    CHECK(first.title == "A title");
    CHECK(first.question == "A question.");
    const auto& number = std::get<NumberPrediction>(first.prediction);
    CHECK((number.label == "gap" && number.unit == "%" && number.logarithmic));
    CHECK((number.min == 0.5 && number.max == 60 && number.initial == 5 && number.step == 0.5));
    CHECK(first.predict == "How many?");
    CHECK(first.covers == std::vector<std::string>{"timeline", "strips"});
    CHECK(first.conditions_answer);
    CHECK(first.start == std::vector<std::string>{"margin=1", "name=a=b"});
    REQUIRE(first.answers.size() == 2);
    CHECK((first.answers[0].name == "slow" && first.answers[0].label == "Slow" &&
           first.answers[0].unit == "dB"));
    CHECK(first.answers[1].choices == std::vector<std::string>{"x", "y"});
    CHECK(first.columns == std::vector<std::string>{"E4M3", "E5M2"});
    CHECK(first.hints == std::array<std::string, 3>{"one", "two", "three"});
    CHECK((first.judge == by_margin));
    CHECK(first.explanation == "Because.");
    CHECK(first.reveals == "reveal");
    CHECK(first.uncovers == std::vector<std::string>{"margin=0"});
    CHECK(first.solver ==
          std::vector<Event>{sets("margin", "2"), acts("run to 300"), types("slow", "5.88 %")});
    REQUIRE(first.near_misses.size() == 2);
    CHECK((first.near_misses[1].why == "none" && first.near_misses[1].refused_by == "margin 2"));
    CHECK(first.near_misses[1].events == std::vector<Event>{types("kind", "y")});

    const auto& curve = std::get<CurvePrediction>(all[1].prediction);
    CHECK((curve.figure == "f" && curve.initial == 20 && curve.at == std::vector<double>{0, 3, 6}));
    CHECK((curve.x.label == "m" && curve.x.scale == Scale::linear && curve.x.range == Range{-0.5, 9.5}));
    CHECK((curve.y.scale == Scale::log10 && curve.y.range == Range{0, 45}));
    CHECK(curve.lines == std::vector<std::string>{"your line"});
    CHECK((all[1].judge == by_answer));
    CHECK_FALSE(all[1].conditions_answer);
    CHECK((all[1].covers.empty() && all[1].start.empty() && all[1].reveals.empty()));
}

TEST_CASE("a start may keep a field, or all whose names begin alike, as the learner left them") {
    std::string text = kWhole;
    const std::string start = R"("start": ["margin=1", "name=a=b"])";
    text.replace(text.find(start), start.size(), R"("start": ["margin", "na*"])");
    CHECK(read(text)[0].start == std::vector<std::string>{"margin", "na*"});
    CHECK(
        (keeps("margin", "margin") && keeps("na*", "name") && keeps("name*", "name") && keeps("*", "name")));
    CHECK_FALSE((keeps("margin", "margins") || keeps("margin=1", "margin") || keeps("na*", "margin")));
}

TEST_CASE("what does not fit is refused with its line and column") {
    struct Row {
        const char *from, *to, *why;
    };
    const Row rows[] = {
        {R"("title": "A title",)", R"("titel": "A title",)", "line 4, column 14: unknown member 'titel'"},
        {R"("title": "A title",)", "", "line 2, column 3: 'title' is missing"},
        {R"("title": "A title",)", R"("title": 7,)", "line 4, column 14: expected a string, got number"},
        {R"("title": "A title",)", R"("title": "",)", "line 4, column 14: 'title' is empty"},
        {R"("title": "A title",)", R"("title": "A", "title": "B",)",
         "line 4, column 19: 'title' stands here twice"},
        {R"("judge": "by_margin")", R"("judge": "by_margins")",
         "line 15, column 14: unknown judge 'by_margins'; valid: by_margin by_answer"},
        {R"("start": ["margin=1")", R"("start": ["margins=1")",
         "line 11, column 15: unknown field 'margins'; valid: margin name"},
        {R"("start": ["margin=1")", R"("start": ["marg")",
         "line 11, column 15: unknown field 'marg'; valid: margin name"},
        {R"("start": ["margin=1")", R"("start": ["margins*")",
         "line 11, column 15: unknown field 'margins*'; valid: margin name"},
        {R"("uncovers": ["margin=0"])", R"("uncovers": ["margin"])",
         "line 18, column 18: expected FIELD=VALUE, got 'margin'"},
        {R"("uncovers": ["margin=0")", R"("uncovers": ["x=0")",
         "line 18, column 18: unknown field 'x'; valid: margin name"},
        {R"(["margin=2", "!run)", R"(["marge=2", "!run)",
         "line 19, column 16: unknown field 'marge'; valid: margin name"},
        {R"("!run to 300")", R"("run to 300")",
         "line 19, column 28: 'run to 300' is no event; valid: FIELD=VALUE, !ACTION, ?ANSWER=VALUE"},
        {R"("?slow=5.88 %")", R"("?fast=1")", "line 19, column 43: the exercise has no answer 'fast'"},
        {R"("events": ["?kind=y"])", R"("events": ["?kind=z"])",
         "line 22, column 34: 'z' is none of the choices"},
        {R"("events": ["?kind=y"])", R"("events": [])",
         "line 22, column 33: has 0 entries; valid: 1 to 1000"},
        {R"("events": ["?kind=y"],)", "", "line 22, column 7: 'events' is missing"},
        {R"("conditions_answer": true)", R"("conditions_answer": 1)",
         "line 10, column 26: expected true or false, got number"},
        {R"("hints": ["one", "two", "three"])", R"("hints": ["one", "two"])",
         "line 14, column 14: has 2 entries; valid: 3 to 3"},
        {R"("predict": "How many?",)", "", "line 2, column 3: 'prediction' and 'predict' belong together"},
        {R"({"number": {"label")", R"({"numbers": {"label")", "line 6, column 31: unknown member 'numbers'"},
        {R"("min": 0.5)", R"("min": 0)", "line 6, column 67: a logarithmic range begins above 0"},
        {R"("initial": 5)", R"("initial": 61)", "line 6, column 94: is outside of the range"},
        {R"("max": 60)", R"("max": 0.5)", "line 6, column 79: 'max' must be above 'min'"},
        {R"("scale": "log10")", R"("scale": "log")", "unknown scale 'log'; valid: linear log2 log10 symlog"},
        {R"("range": [0, 45])", R"("range": [45, 0])", "must rise"},
        {R"("at": [0, 3, 6])", R"("at": [0, 3])", "has 2 entries; valid: 3 to 7"},
        {R"("id": "L9.10")", R"("id": "L9.9")", "line 26, column 11: 'L9.9' is there twice"},
        {R"("explanation": "E")", R"("explanation": "{runs L99 x y mean}")",
         "assets/runs.csv has no such row"},
        {R"("explanation": "E",)", R"("explanation": "E",,)", "line 30"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.to);
        const std::string why = why_not(row.from, row.to);
        CHECK_MESSAGE(why.find(row.why) != why.npos, why);
        CHECK_MESSAGE(why.starts_with("line "), why);
    }
    CHECK_THROWS_WITH_AS(read("[]"), "l.json: line 1, column 1: has 0 entries; valid: 1 to 1000", Error);
    CHECK_THROWS_WITH_AS(read("{}"), "l.json: line 1, column 1: expected an array, got object", Error);
    CHECK_THROWS_WITH_AS(read("[7]"), "l.json: line 1, column 2: expected an object, got number", Error);
}

TEST_CASE("an explanation has the numbers of ten trainings filled in") {
    std::string text = kWhole;
    const std::string plain = R"("explanation": "E")";
    text.replace(text.find(plain), plain.size(),
                 R"("explanation": "ends {runs L8 delayed gap_pct mean} % above")");
    const std::string filled = read(text)[1].explanation;
    CHECK(filled.starts_with("ends "));
    CHECK(filled.ends_with(" % above"));
    CHECK(filled.find('{') == filled.npos);
}

TEST_CASE("events are written by their first sign") {
    CHECK(parse_event("margin=2") == sets("margin", "2"));
    CHECK(parse_event("file=") == sets("file", ""));
    CHECK(parse_event("arm_b=current:fwd=e5m2") == sets("arm_b", "current:fwd=e5m2"));
    CHECK(parse_event("!toggle 6") == acts("toggle 6"));
    CHECK(parse_event("?edge=-12.48") == types("edge", "-12.48"));
    for (const char* text : {"", "!", "?", "=", "=2", "?=2", "?edge", "margin"})
        CHECK_THROWS_WITH_AS(parse_event(text), doctest::Contains("is no event"), Error);
}
