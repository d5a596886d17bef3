#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/fields.h"
#include "core/base/named.h"
#include "core/json/json_reader.h"
#include "core/lesson/exercise.h"
#include "core/lesson/runs.h"

namespace fp8lab {
namespace {

using OrderedJson = JsonReader::Json;

constexpr std::size_t kMostEntries = 1000;  // entries of any list that has no limit of its own
constexpr std::array kScales = {Named{Scale::linear, "linear"}, Named{Scale::log2, "log2"},
                                Named{Scale::log10, "log10"}, Named{Scale::symlog, "symlog"}};

class ExerciseReader {
  public:
    ExerciseReader(const JsonReader& read, std::span<const NamedJudge> judges, std::span<const Field> fields)
        : read_(read), judges_(judges), fields_(fields) {}

    Exercise exercise(const OrderedJson& json, const std::string& at) const;

  private:
    std::string filled(const OrderedJson& json, const std::string& at,
                       const char* name) const {  // must not be empty
        std::string text = read_.string(json, at, name);
        if (text.empty()) read_.fail(at + "/" + name, fmt::format("'{}' is empty", name));
        try {
            return with_runs(text);
        } catch (const Error& error) {
            read_.fail(at + "/" + name, error.why());
        }
    }
    std::vector<std::string> strings_or(const OrderedJson& json, const std::string& at,
                                        const char* name) const {
        if (!json.contains(name)) return {};
        return read_.strings(json[name], at + "/" + name, 0, kMostEntries);
    }
    double number_or(const OrderedJson& json, const std::string& at, const char* name, double other) const {
        return json.contains(name) ? read_.number(json[name], at + "/" + name) : other;
    }
    bool truth_or_false(const OrderedJson& json, const std::string& at, const char* name) const {
        return json.contains(name) && read_.truth(json[name], at + "/" + name);
    }
    double number(const OrderedJson& json, const std::string& at, const char* name) const {
        return read_.number(read_.member(json, at, name), at + "/" + name);
    }
    std::vector<double> numbers(const OrderedJson& json, const std::string& at, std::size_t least,
                                std::size_t most) const;

    Judge judge(const std::string& name, const std::string& at) const;
    AxisSpec axis(const OrderedJson& json, const std::string& at) const;
    NumberPrediction number_prediction(const OrderedJson& json, const std::string& at) const;
    CurvePrediction curve_prediction(const OrderedJson& json, const std::string& at) const;
    PredictionSpec prediction(const OrderedJson& json, const std::string& at) const;
    Answer answer(const OrderedJson& json, const std::string& at) const;
    // `at`: of the list, which names the field in its entry `index`.
    void check_field(std::string_view name, const std::string& at, std::size_t index) const;
    template <class Rows, class Name>
    [[noreturn]] void fail_unknown(const std::string& at, std::string_view what, std::string_view got,
                                   const Rows& valid, Name name_of) const {
        read_.fail(at, unknown_name("", what, quote_from(std::string(got)), valid, name_of).why());
    }
    std::vector<std::string> assignments(const OrderedJson& json, const std::string& at,
                                         const char* name) const;
    std::vector<std::string> start(const OrderedJson& json, const std::string& at) const;
    static void check_answer(const Event& event, std::span<const Answer> answers);  // throws without a place
    std::vector<Event> events(const OrderedJson& json, const std::string& at,
                              std::span<const Answer> answers) const;
    NearMiss near_miss(const OrderedJson& json, const std::string& at, std::span<const Answer> answers) const;

    const JsonReader& read_;
    std::span<const NamedJudge> judges_;
    std::span<const Field> fields_;
};

std::vector<double> ExerciseReader::numbers(const OrderedJson& json, const std::string& at, std::size_t least,
                                            std::size_t most) const {
    std::vector<double> out;
    for (const OrderedJson& item : read_.array(json, at, least, most))
        out.push_back(read_.number(item, at + "/" + std::to_string(out.size())));
    return out;
}

Judge ExerciseReader::judge(const std::string& name, const std::string& at) const {
    const auto row = std::ranges::find(judges_, name, &NamedJudge::name);
    if (row == judges_.end())
        fail_unknown(at + "/judge", "judge", name, judges_,
                     [](const NamedJudge& judge) { return judge.name; });
    return row->judge;
}

AxisSpec ExerciseReader::axis(const OrderedJson& json, const std::string& at) const {
    static constexpr std::array<std::string_view, 3> kKnown = {"label", "scale", "range"};
    read_.object_of(json, at, kKnown);
    AxisSpec out{.label = read_.string(json, at, "label")};
    const std::string scale = json.contains("scale") ? read_.string(json, at, "scale") : "linear";
    const auto row = std::ranges::find(kScales, scale, &Named<Scale>::name);
    if (row == kScales.end())
        fail_unknown(at + "/scale", "scale", scale, kScales, [](const auto& named) { return named.name; });
    out.scale = row->value;
    const auto range = numbers(read_.member(json, at, "range"), at + "/range", 2, 2);
    if (!(range[0] < range[1])) read_.fail(at + "/range", "must rise");
    out.range = Range{range[0], range[1]};
    return out;
}

NumberPrediction ExerciseReader::number_prediction(const OrderedJson& json, const std::string& at) const {
    static constexpr std::array<std::string_view, 7> kKnown = {"label",   "unit",        "min", "max",
                                                               "initial", "logarithmic", "step"};
    read_.object_of(json, at, kKnown);
    NumberPrediction out{.label = read_.string(json, at, "label"),
                         .unit = read_.string_or(json, at, "unit"),
                         .min = number(json, at, "min"),
                         .max = number(json, at, "max"),
                         .initial = number(json, at, "initial"),
                         .logarithmic = truth_or_false(json, at, "logarithmic"),
                         .step = number_or(json, at, "step", 0)};
    if (!(out.min < out.max)) read_.fail(at + "/max", "'max' must be above 'min'");
    if (out.logarithmic && out.min <= 0) read_.fail(at + "/min", "a logarithmic range begins above 0");
    if (out.initial < out.min || out.initial > out.max)
        read_.fail(at + "/initial", "is outside of the range");
    if (out.step < 0) read_.fail(at + "/step", "is below 0");
    return out;
}

CurvePrediction ExerciseReader::curve_prediction(const OrderedJson& json, const std::string& at) const {
    static constexpr std::array<std::string_view, 6> kKnown = {"figure", "x", "y", "at", "lines", "initial"};
    read_.object_of(json, at, kKnown);
    CurvePrediction out{.figure = read_.string(json, at, "figure"),
                        .x = axis(read_.member(json, at, "x"), at + "/x"),
                        .y = axis(read_.member(json, at, "y"), at + "/y"),
                        .at = numbers(read_.member(json, at, "at"), at + "/at", 3, 7),
                        .initial = number(json, at, "initial")};
    if (json.contains("lines")) out.lines = read_.strings(json["lines"], at + "/lines", 1, 2);
    return out;
}

PredictionSpec ExerciseReader::prediction(const OrderedJson& json, const std::string& at) const {
    static constexpr std::array<std::string_view, 3> kKnown = {"number", "choice", "curve"};
    if (read_.object_of(json, at, kKnown).size() != 1)
        read_.fail(at, "expected one of number, choice and curve");
    const std::string kind = json.begin().key(), below = at + "/" + kind;
    const OrderedJson& value = json.front();
    if (kind == "number") return number_prediction(value, below);
    if (kind == "curve") return curve_prediction(value, below);
    return ChoicePrediction{read_.strings(value, below, 2, 5)};
}

Answer ExerciseReader::answer(const OrderedJson& json, const std::string& at) const {
    static constexpr std::array<std::string_view, 4> kKnown = {"name", "label", "unit", "choices"};
    read_.object_of(json, at, kKnown);
    return {.name = read_.string(json, at, "name"),
            .label = read_.string(json, at, "label"),
            .unit = read_.string_or(json, at, "unit"),
            .choices = strings_or(json, at, "choices")};
}

void ExerciseReader::check_field(std::string_view name, const std::string& at, std::size_t index) const {
    if (find_field(fields_, name) == nullptr)
        fail_unknown(at + "/" + std::to_string(index), "field", name, fields_,
                     [](const Field& field) { return field.info.name; });
}

std::vector<std::string> ExerciseReader::assignments(const OrderedJson& json, const std::string& at,
                                                     const char* name) const {
    const std::vector<std::string> out = strings_or(json, at, name);
    const std::string list = at + "/" + name;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t equals = out[i].find('=');
        if (equals == std::string::npos)
            read_.fail(list + "/" + std::to_string(i),
                       fmt::format("expected FIELD=VALUE, got '{}'", quote_from(out[i])));
        check_field(std::string_view(out[i]).substr(0, equals), list, i);
    }
    return out;
}

std::vector<std::string> ExerciseReader::start(const OrderedJson& json, const std::string& at) const {
    std::vector<std::string> out = strings_or(json, at, "start");
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto kept = [&](const Field& field) { return keeps(out[i], field.info.name); };
        if (std::ranges::none_of(fields_, kept))
            check_field(std::string_view(out[i]).substr(0, out[i].find('=')), at + "/start", i);
    }
    return out;
}

void ExerciseReader::check_answer(const Event& event, std::span<const Answer> answers) {
    const auto named = std::ranges::find(answers, event.name, &Answer::name);
    if (named == answers.end())
        throw input_error("", fmt::format("the exercise has no answer '{}'", quote_from(event.name)));
    if (!named->choices.empty() && std::ranges::count(named->choices, event.value) == 0)
        throw input_error("", fmt::format("'{}' is none of the choices", quote_from(event.value)));
}

std::vector<Event> ExerciseReader::events(const OrderedJson& json, const std::string& at,
                                          std::span<const Answer> answers) const {
    std::vector<Event> out;
    for (const std::string& text : read_.strings(json, at, 1, kMostEntries)) {
        const std::size_t index = out.size();
        try {
            const Event& event = out.emplace_back(parse_event(text));
            if (event.kind == Event::Kind::answer) check_answer(event, answers);
        } catch (const Error& error) {
            read_.fail(at + "/" + std::to_string(index), error.why());
        }
        if (out.back().kind == Event::Kind::set) check_field(out.back().name, at, index);
    }
    return out;
}

NearMiss ExerciseReader::near_miss(const OrderedJson& json, const std::string& at,
                                   std::span<const Answer> answers) const {
    static constexpr std::array<std::string_view, 3> kKnown = {"why", "events", "refused_by"};
    read_.object_of(json, at, kKnown);
    return {.why = read_.string(json, at, "why"),
            .events = events(read_.member(json, at, "events"), at + "/events", answers),
            .refused_by = read_.string(json, at, "refused_by")};
}

Exercise ExerciseReader::exercise(const OrderedJson& json, const std::string& at) const {
    static constexpr std::array<std::string_view, 17> kKnown = {
        "id",       "title",   "question",   "prediction", "predict", "covers",      "conditions_answer",
        "start",    "answers", "columns",    "hints",      "judge",   "explanation", "reveals",
        "uncovers", "solver",  "near_misses"};
    read_.object_of(json, at, kKnown);
    Exercise out{.id = filled(json, at, "id"),
                 .title = filled(json, at, "title"),
                 .question = filled(json, at, "question"),
                 .covers = strings_or(json, at, "covers"),
                 .conditions_answer = truth_or_false(json, at, "conditions_answer"),
                 .start = start(json, at),
                 .columns = strings_or(json, at, "columns"),
                 .judge = judge(read_.string(json, at, "judge"), at),
                 .explanation = filled(json, at, "explanation"),
                 .reveals = read_.string_or(json, at, "reveals"),
                 .uncovers = assignments(json, at, "uncovers")};
    if (json.contains("prediction") != json.contains("predict"))
        read_.fail(at, "'prediction' and 'predict' belong together");
    if (json.contains("prediction")) {
        out.prediction = prediction(json["prediction"], at + "/prediction");
        out.predict = filled(json, at, "predict");
    }
    if (json.contains("answers"))
        for (const OrderedJson& entry : read_.array(json["answers"], at + "/answers", 0, kMostEntries))
            out.answers.push_back(answer(entry, at + "/answers/" + std::to_string(out.answers.size())));
    std::ranges::move(read_.strings(read_.member(json, at, "hints"), at + "/hints", 3, 3), out.hints.begin());
    out.solver = events(read_.member(json, at, "solver"), at + "/solver", out.answers);
    const std::string misses = at + "/near_misses";
    for (const OrderedJson& entry :
         read_.array(read_.member(json, at, "near_misses"), misses, 2, kMostEntries))
        out.near_misses.push_back(
            near_miss(entry, misses + "/" + std::to_string(out.near_misses.size()), out.answers));
    return out;
}

std::vector<Exercise> exercises_from(const OrderedJson& json, const JsonReader& read,
                                     std::span<const NamedJudge> judges, std::span<const Field> fields) {
    const ExerciseReader reader(read, judges, fields);
    std::vector<Exercise> out;
    for (const OrderedJson& entry : read.array(json, "", 1, kMostEntries)) {
        const std::string at = "/" + std::to_string(out.size());
        Exercise exercise = reader.exercise(entry, at);
        if (std::ranges::count(out, exercise.id, &Exercise::id) > 0)
            read.fail(at + "/id", fmt::format("'{}' is there twice", quote_from(exercise.id)));
        out.push_back(std::move(exercise));
    }
    return out;
}

}  // namespace

std::vector<Exercise> parse_exercises(std::string_view text, const std::string& where,
                                      std::span<const NamedJudge> judges, std::span<const Field> fields) {
    const OrderedJson json = read_ordered_json(text, where);
    try {
        return exercises_from(json, JsonReader({}, where), judges, fields);
    } catch (const Error&) {
        // Only a fault needs the places, which take as long as all the rest; the window reads all labs when it starts.
        return exercises_from(json, JsonReader(json_places(text, where), where), judges, fields);
    }
}

}  // namespace fp8lab
