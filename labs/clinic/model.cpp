#include "labs/clinic/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "labs/seeded.h"

namespace fp8lab::clinic {

using table::Experiment, table::known, table::known_word, table::MetricRow;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class Values>
double at(const Values& values, int step) {
    const auto index = static_cast<std::size_t>(step);
    return index < values.size() ? static_cast<double>(values[index]) : kNan;
}

// Several runs as one computation: the share that is done of all.
template <class Result>
class Runs {
  public:
    Runs(std::size_t runs, const table::Told<Result>& told) : runs_(runs), told_(told) {}
    RunPtr operator()(const RunSpec& spec) {
        RunPtr run = run_of(spec, [this](int step) {
            if (told_.share) told_.share(done_ * kSteps + static_cast<std::size_t>(step), runs_ * kSteps);
        });
        ++done_;
        return run;
    }

  private:
    std::size_t runs_, done_ = 0;
    const table::Told<Result>& told_;
};

}  // namespace

const LabInfo Clinic::kInfo = {"clinic",
                               16,
                               "The clinic",
                               "The clinic",
                               "Each run has one fault, or none. Find the cause, then change one thing.",
                               45,
                               "L8",
                               "",
                               "that of a case is sealed",
                               true};

Opened opened_of(const RunSpec& patient, const table::Told<Opened>& told) {
    Runs run(3, told);
    Opened out;
    out.patient = run(patient);
    out.twin = run(twin_of(patient));
    out.reference = run(reference_of(patient));
    return out;
}

RunSpec CureSpec::treated() const {
    RunSpec out = patient;
    for (const std::string& change : {treatment, second})
        out = clinic::treated(std::move(out), find_treatment(change, "treatment"));
    return out;
}

Cure cure_of(const CureSpec& spec, const table::Told<Cure>& told) {
    Runs run(3, told);
    Cure out;
    out.spec = spec;
    out.treated = run(spec.treated());
    out.twin = run(twin_of(spec.treated()));
    out.reference = run(reference_of(spec.patient));
    return out;
}

Outcome outcome_of(Disease disease, const Chart& chart, const Cure& cure) {
    const bool needs_change = chart.diagnosis != info_of(Disease::healthy).diagnosis;
    return {.diagnosis_right = chart.diagnosis == info_of(disease).diagnosis,
            .one_change = chart.second == "none" && (chart.treatment != "none") == needs_change,
            .finite = !cure.treated->ended(),
            .gap_pct = gap_pct(*cure.treated, *cure.reference),
            .underflow = worst_underflow(*cure.treated)};
}

Cured cured_of(const std::vector<Treated>& treated, const table::Told<Cured>& told) {
    Cured out{};
    std::size_t done = 0;
    for (const Treated& one : treated) {
        const table::Told<Cure> of_one{.share =
                                           [&](std::size_t part, std::size_t of) {
                                               if (told.share)
                                                   told.share(done * of + part, treated.size() * of);
                                           },
                                       .so_far = [](const Cure&) {}};
        out.at(one.place) = outcome_of(one.disease, one.chart, cure_of(one.spec, of_one)).cured();
        ++done;
    }
    return out;
}

Clinic::Clinic()
    : opened(
          "", [this] { return params.patient(params.place()); }, opened_of),
      cure(
          "", [this] { return cure_spec(params.place()); }, cure_of),
      cured(
          "",
          [this] {
              std::vector<Treated> out;
              for (std::size_t place = 0; place < kLetters.size(); ++place)
                  if (auto spec = cure_spec(place))
                      out.push_back(
                          {place, params.disease(place), params.charts.at(place), std::move(*spec)});
              return out.empty() ? std::nullopt : std::optional(std::move(out));
          },
          cured_of) {}

namespace {

// What is new of a chart that comes with a new deal.
Chart new_words(const Chart& now, const Chart& before) {
    Chart out;
    const auto take = [&](auto Chart::*what) {
        if (now.*what != before.*what) out.*what = now.*what;
    };
    take(&Chart::diagnosis), take(&Chart::treatment), take(&Chart::second);
    take(&Chart::first), take(&Chart::rerun), take(&Chart::revealed);
    return out;
}

}  // namespace

// A state that undo or a scene brings back names its own deal and seed, or says nothing of them: it is kept whole. Where an
// exercise keeps the charts of another deal than its own, nothing of them is new.
void Clinic::settle() {
    auto& charts = params.charts;
    if (!params.said_in.empty() && params.said_in != params.dealt()) {
        const bool brought = params.said_in != settled_.said_in;
        for (std::size_t place = 0; place < kLetters.size(); ++place)
            charts.at(place) = brought ? Chart{} : new_words(charts.at(place), settled_.charts.at(place));
        ++sealed_again_;
    }
    for (Chart& chart : charts)
        if (chart.first == "none" && chart.has_rerun()) chart.first = chart.diagnosis;
    keep_known();
    params.said_in = charts == Params{}.charts ? "" : params.dealt();
    settled_ = params;
}

// What is known of the charts of this deal is put into them, and what is new of them becomes known.
void Clinic::keep_known() {
    auto& cases = params.known[params.dealt()];
    for (std::size_t place = 0; place < kLetters.size(); ++place) {
        Chart& chart = params.charts.at(place);
        Params::Known& known = cases.at(place);
        if (known.first == "none") known.first = chart.first;
        chart.first = known.first;
        chart.revealed = known.revealed = chart.revealed || known.revealed;
    }
}

std::optional<CureSpec> Clinic::cure_spec(std::size_t place) const {
    const Chart& chart = params.charts.at(place);
    if (!chart.has_rerun()) return std::nullopt;
    return CureSpec{params.patient(place), chart.treatment, chart.second};
}

bool Clinic::perform(std::string_view action) {
    if (action == "rerun") {
        params.chart().rerun = params.chart().said();
    } else if (action == "next") {
        std::size_t place = params.place();
        do place = (place + 1) % kLetters.size();
        while (is_cured(place) && place != params.place());
        params.letter = kLetters.at(place);
    } else if (action == "reopen") {
        params.chart().rerun.clear();
    } else if (action == "reveal") {
        params.chart().revealed = true;
    } else {
        return false;
    }
    return true;
}

std::optional<Outcome> Clinic::outcome() const {
    const auto spec = cure_spec(params.place());
    if (!spec || !cure->is_known() || !(cure->spec == *spec)) return std::nullopt;
    return outcome_of(params.disease(params.place()), params.chart(), *cure);
}

RunPtr Clinic::shown() const {
    return params.instruments == "rerun" && outcome() ? cure->treated : opened->patient;
}

bool Clinic::changed_nothing() const {
    return outcome() && is_open() &&
           std::ranges::equal(cure->treated->arm().loss.values(), opened->patient->arm().loss.values(),
                              [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
}

int Clinic::solved_cases() const {
    int out = 0;
    for (std::size_t place = 0; place < kLetters.size(); ++place) out += solved(place);
    return out;
}

bool Clinic::first_right(std::size_t place) const {
    return params.charts.at(place).first == info_of(params.disease(place)).diagnosis;
}

int Clinic::solved_at_once() const {
    int out = 0;
    for (std::size_t place = 0; place < kLetters.size(); ++place) out += solved(place) && first_right(place);
    return out;
}

std::string_view Clinic::name_of(std::size_t place) const {
    if (!params.charts.at(place).revealed && !cured->at(place)) return {};
    return info_of(params.disease(place)).name;
}

std::string Clinic::unsealed() const {
    if (name_of(params.place()).empty()) return {};
    const RunSpec spec = params.patient(params.place());
    std::string out = fmt::format("fp8lab train --recipe bf16,{} --steps {} --schedule cosine --seed {}",
                                  spec.recipe(), kSteps, spec.seed);
    if (spec.lr != kDefaultRate) out += fmt::format(" --lr {:g}", spec.lr);
    if (!spec.poison.empty()) out += " --poison " + spec.poison;
    if (!spec.init.empty()) out += " --init " + spec.init;
    return out;
}

std::span<const Experiment<Clinic>> Clinic::experiments() {
    static const std::array<Experiment<Clinic>, 1> kExperiments = {
        {{"",
          {"loss", "scale", "underflow", "histogram"},
          &Clinic::figures,
          &Clinic::metrics,
          &Clinic::is_open}}};
    return kExperiments;
}

std::vector<Figure> Clinic::figures() const {
    const RunPtr run = shown();
    const auto tensor = run ? run->plan.find(params.tensor) : std::nullopt;
    const TensorId id = tensor.value_or(TensorId{});
    const int look = run ? std::min(params.look, steps_of(*run) - 1) : 0;
    const Cure rerun = outcome() ? *cure : Cure{};
    std::vector<Figure> out = {loss_figure(*opened, rerun, look), scale_figure(run, id, look),
                               underflow_figure(run, id, look), histogram_figure(run, id, look)};
    if (!opened->reference) return out;
    return of_seed(static_cast<int>(opened->patient->spec.seed), std::move(out), {"loss", "histogram"});
}

int steps_of(const Run& run) { return static_cast<int>(run.arm().step.size()); }
double value_at(std::span<const double> values, int step) { return at(values, step); }
double value_at(std::span<const float> values, int step) { return at(values, step); }

// What the table and the gauges show, at the step under the cursor.
void Clinic::add_instruments(std::vector<MetricRow>& out) const {
    constexpr std::array<const char*, 9> kTensors = {"x1", "w1", "dy1", "x2", "w2", "dy2", "x3", "w3", "dy3"};
    const bool open = is_open();
    const RunPtr run = shown();
    const int look = open ? std::min(params.look, steps_of(*run) - 1) : 0;
    for (std::size_t t = 0; t < kTensors.size(); ++t) {
        const live::TensorTrack* track = open ? &run->arm().tensors.at(t) : nullptr;
        const auto of = [&](const live::Growing live::TensorTrack::*series) {
            return track ? value_at((track->*series).values(), look) : kNan;
        };
        out.push_back(known(fmt::format("amax_{}", kTensors[t]), of(&live::TensorTrack::amax)));
        out.push_back(known(fmt::format("scale_{}", kTensors[t]), of(&live::TensorTrack::scale)));
        out.push_back(
            known(fmt::format("underflow_pct_{}", kTensors[t]), of(&live::TensorTrack::underflow_pct), "%"));
        out.push_back(known(fmt::format("sqnr_db_{}", kTensors[t]),
                            open ? value_at(run->sqnr_db.at(t), look) : kNan, "dB"));
    }
    constexpr std::size_t kLayers = 3;
    const int instrument = look / kInstrumentSteps;
    for (std::size_t l = 0; l < kLayers; ++l) {
        const auto of = [&](const std::vector<std::vector<float>>& series) {
            return open ? value_at(series.at(l), instrument) : kNan;
        };
        out.push_back(known(fmt::format("moved_pct_{}", l + 1), open ? of(run->moved_pct) : kNan, "%"));
        out.push_back(
            known(fmt::format("product_error_pct_{}", l + 1), open ? of(run->product_error_pct) : kNan, "%"));
    }
}

std::vector<MetricRow> Clinic::metrics() const {
    const bool open = is_open();
    const auto number = [&](auto value) { return open ? static_cast<double>(value()) : kNan; };
    const auto& o = *opened;
    const Plateau plateau = open ? plateau_of(*o.patient, *o.twin) : Plateau{};
    const WorstUnderflow worst = open ? worst_underflow(*o.patient) : WorstUnderflow{};
    const auto stopped = open ? o.patient->arm().stopped : std::nullopt;
    std::vector<MetricRow> out = {
        known("gap_pct", number([&] { return gap_pct(*o.patient, *o.twin); }), "%"),
        known("twin_ratio", number([&] { return o.twin->tail() / o.reference->tail(); }), "×"),
        known("patient_tail", number([&] { return o.patient->ended() ? kNan : o.patient->tail(); })),
        known("reference_tail", number([&] { return o.reference->tail(); })),
        known("worst_underflow_pct", open ? worst.mean_pct : kNan, "%"),
        known_word("worst_underflow_tensor", worst.tensor),
        known("overflow_steps", number([&] { return o.patient->arm().overflow_steps(); })),
        known("first_nonfinite_step", stopped ? stopped->step : kNan),
        known_word("first_nonfinite_tensor", stopped ? stopped->tensor : "none"),
        known("plateau_from", open && plateau.steps > 0 ? plateau.from : kNan),
        known("plateau_steps", open ? plateau.steps : kNan)};
    add_instruments(out);
    const Signature signature = open ? signature_of(*o.patient, *o.twin, *o.reference) : Signature{};
    for (std::size_t i = 0; i < kInstruments.size(); ++i)
        out.push_back(known_word(fmt::format("level_{}", kInstruments[i]), signature[i]));
    const auto now = outcome();
    out.push_back(known("rerun_gap_pct", now ? now->gap_pct : kNan, "%"));
    out.push_back(known("rerun_worst_underflow_pct", now ? now->underflow.mean_pct : kNan, "%"));
    out.push_back(known_word("rerun_worst_underflow_tensor", now ? now->underflow.tensor : ""));
    out.push_back(known("rerun_twin_ratio", now ? cure->twin->tail() / cure->reference->tail() : kNan, "×"));
    out.push_back(known("diagnosis_right", now ? static_cast<double>(now->diagnosis_right) : kNan));
    out.push_back(known("cured", now ? static_cast<double>(now->cured()) : kNan));
    for (std::size_t place = 0; place < kLetters.size(); ++place)
        out.push_back(known(fmt::format("cured_{}", small_letter(place)), cured->at(place) ? 1.0 : 0.0));
    out.push_back(known("solved", solved_cases()));
    out.push_back(known("solved_at_once", solved_at_once()));
    return out;
}

LabEntry entry() { return entry_of<ClinicLab>(Clinic::kInfo); }

}  // namespace fp8lab::clinic
