// Any bytes as the exercises of a lab: refused with a place, or exercises that panel, judge and tests can use.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "core/base/error.h"
#include "core/base/fields.h"
#include "core/lesson/exercise.h"

namespace {

using namespace fp8lab;

void check(bool holds) {
    if (!holds) std::abort();
}

Verdict never(const Trail&, const Prediction*) { return {.conditions = {{"never", {}, false}}}; }

void check_prediction(const Exercise& exercise) {
    check(exercise.predict.empty() == std::holds_alternative<std::monostate>(exercise.prediction));
    if (const auto* number = std::get_if<NumberPrediction>(&exercise.prediction))
        check(number->min <= number->initial && number->initial <= number->max && number->min < number->max);
    if (const auto* choice = std::get_if<ChoicePrediction>(&exercise.prediction))
        check(choice->choices.size() >= 2 && choice->choices.size() <= 5);
    if (const auto* curve = std::get_if<CurvePrediction>(&exercise.prediction))
        check(curve->at.size() >= 3 && curve->at.size() <= 7 && curve->x.range && curve->y.range);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static constexpr std::array kJudges = {NamedJudge{"never", never}, NamedJudge{"twins", never}};
    int margin = 0;
    std::string format;
    const std::vector fields = {integer({.name = "margin", .label = "Margin"}, &margin, 0, 9),
                                fp8lab::text({.name = "format", .label = "Format"}, &format)};
    try {
        const auto all =
            parse_exercises({reinterpret_cast<const char*>(data), size}, "e.json", kJudges, fields);
        check(!all.empty());
        for (const Exercise& exercise : all) {
            check(exercise.judge == never && !exercise.id.empty() && !exercise.question.empty());
            check(!exercise.solver.empty() && exercise.near_misses.size() >= 2);
            check(std::ranges::count(all, exercise.id, &Exercise::id) == 1);
            check_prediction(exercise);
        }
    } catch (const Error& error) {
        check(error.kind() == ErrorKind::input);
        check(error.where() == "e.json" && !error.why().empty());
    }
    return 0;
}
