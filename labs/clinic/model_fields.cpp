// The field table of L16: the case, and of each case what the learner has said and done.
#include <fmt/format.h>

#include "core/run/modes.h"
#include "labs/clinic/model.h"

namespace fp8lab::clinic {

using table::Row;

namespace {

std::vector<Choice> diagnosis_choices() {
    std::vector<Choice> out = {{"none", "none yet"}};
    for (const FailureMode& one : failure_modes())
        out.push_back({std::string(one.id), std::string(one.words)});
    return out;
}
std::vector<Choice> treatment_choices() {
    std::vector<Choice> out;
    for (const Treatment& one : treatments()) out.push_back({std::string(one.id), std::string(one.label)});
    return out;
}

// The fields of one case: "diagnosis_d". They stand in Explore while it is the present one.
std::vector<Row> chart_rows(Params& p, std::size_t place) {
    Chart& chart = p.charts.at(place);
    const bool now = place == p.place();
    const auto name = [&](const char* field) { return fmt::format("{}_{}", field, small_letter(place)); };
    const std::string te(find_treatment(chart.treatment, "treatment").name);
    return {
        {.field = choice({.name = name("diagnosis"),
                          .label = "Diagnosis",
                          .help = "What is wrong with this run. Keys 1 to 9, and 0 for the last."},
                         &chart.diagnosis, diagnosis_choices()),
         .shown = now},
        {.field = choice(
             {.name = name("treatment"),
              .label = "Treatment, one change",
              .te_name = te,
              .help = "What is changed before the run is trained again. A change of an option that its "
                      "recipe does not have changes nothing."},
             &chart.treatment, treatment_choices()),
         .shown = now},
        {.field =
             choice({.name = name("second"),
                     .label = "Second change",
                     .help = "For comparison. With two changes nobody knows which one helped: it is no cure.",
                     .more = true},
                    &chart.second, treatment_choices()),
         .note = "For comparison: with two changes nobody knows which one helped, so it is no cure.",
         .shown = now},
        {.field = choice({.name = name("first"),
                          .label = "First diagnosis",
                          .help = "The one of the first rerun. It stays when another one is chosen.",
                          .hidden = true},
                         &chart.first, diagnosis_choices()),
         .shown = false},
        {.field = text({.name = name("rerun"),
                        .label = "Last rerun",
                        .help = "Diagnosis and changes of the last rerun; it is shown while they are chosen.",
                        .hidden = true},
                       &chart.rerun),
         .shown = false},
        {.field = toggle({.name = name("revealed"),
                          .label = "Revealed",
                          .help = "The disease is named, with its recipe. The case no longer counts.",
                          .hidden = true},
                         &chart.revealed),
         .shown = false},
    };
}

}  // namespace

std::vector<Row> Clinic::rows(Params& p) {
    std::vector<Choice> letters, tensors;
    for (const char letter : kLetters)
        letters.push_back({std::string(1, letter), fmt::format("Case {}", letter)});
    for (const char* tensor : {"x1", "w1", "dy1", "x2", "w2", "dy2", "x3", "w3", "dy3"})
        tensors.push_back({tensor, tensor});
    const std::string none_yet = "no rerun yet";
    std::vector<Row> out = {
        {.field = choice(
             {.name = "case", .label = "Case", .help = "Which of the eight runs is shown.", .hidden = true},
             &p.letter, std::move(letters)),
         .shown = false},
        {.field = choice({.name = "tensor",
                          .label = "Tensor",
                          .help = "Which tensor the strips of scale and underflow and the histogram show.",
                          .hidden = true},
                         &p.tensor, std::move(tensors)),
         .shown = false},
        {.field = integer({.name = "look",
                           .label = "Look at step",
                           .help = "The step that the table, the histogram and the gauges show.",
                           .hidden = true},
                          &p.look, 0, kSteps - 1),
         .shown = false}};
    for (std::size_t place = 0; place < kLetters.size(); ++place)
        for (Row& row : chart_rows(p, place)) out.push_back(std::move(row));
    out.push_back(
        {.field = choice({.name = "instruments",
                          .label = "Instruments show",
                          .help = "Whose tensors, strips and gauges are shown: those of the run as it "
                                  "came, or of its rerun."},
                         &p.instruments, {{"patient", "Patient"}, {"rerun", "Rerun"}}),
         .why_not = p.chart().has_rerun() ? "" : none_yet});
    out.push_back({integer({.name = "seed",
                            .label = "Draw",
                            .help = "The same cases with other data and weights; all of them begin sealed. "
                                    "The title names the seed that is trained.",
                            .more = true},
                           &p.seed, 1, kMostSeed)});
    out.push_back({integer({.name = "deal",
                            .label = "Deal",
                            .help = "Which disease is behind which letter, so that a class cannot share "
                                    "answers; all cases begin sealed. From deal 500 on one of the eight runs "
                                    "is healthy. Scenes use deal 0, the order of the diagnoses.",
                            .more = true},
                           &p.deal, 0, kMostDeal)});
    out.push_back({.field = text({.name = "said_in",
                                  .label = "Said in",
                                  .help = "The deal and the draw in which the diagnoses and treatments were "
                                          "chosen; in another they are gone.",
                                  .hidden = true},
                                 &p.said_in),
                   .shown = false});
    return out;
}

}  // namespace fp8lab::clinic
