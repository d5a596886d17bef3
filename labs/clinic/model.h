// L16, "The clinic": eight sick trainings, seen by their instruments only. The learner names the cause, changes one thing and
// trains again. The data are in model_cases.h, the trainings in model_run.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "labs/clinic/model_signature.h"
#include "labs/table/long.h"
#include "labs/table/table_lab.h"

namespace fp8lab::clinic {

// What the learner has said and done about one case of a deal and a seed.
struct Chart {
    std::string diagnosis = "none", treatment = "none", second = "none";
    std::string first = "none";  // the diagnosis of the first rerun, which later ones do not change
    std::string rerun = {};      // said() of the last rerun; empty: none
    bool revealed = false;

    std::string changes() const { return second == "none" ? treatment : treatment + "+" + second; }
    std::string said() const { return diagnosis + ":" + changes(); }
    // A rerun counts for what was said before it. Version 0.1.0 wrote the changes alone.
    bool has_rerun() const { return rerun == said() || rerun == changes(); }
    bool operator==(const Chart&) const = default;
};

struct Params {
    std::string letter = "A";
    int seed = 1, deal = kFirstDeal;  // as the fields have them
    int look = kSteps / 2;            // the step under the cursor
    std::string tensor = "x1";
    std::string instruments = "patient";  // which run they show: "patient", "rerun"
    std::array<Chart, kLetters.size()> charts = {};
    std::string said_in = {};  // dealt() when the charts were written; empty: they are new, or there are none
    // Of each deal and draw: its first diagnoses and what was revealed. No field: undo leaves it as it is, reset() does not.
    struct Known {
        std::string first = "none";
        bool revealed = false;
    };
    std::map<std::string, std::array<Known, kLetters.size()>> known = {};

    std::string dealt() const { return std::to_string(deal) + "/" + std::to_string(seed); }
    std::size_t place() const { return kLetters.find(letter.front()); }
    Chart& chart() { return charts.at(place()); }
    const Chart& chart() const { return charts.at(place()); }
    Disease disease(std::size_t place) const { return clinic::dealt(deal).at(place); }
    // Of the trainings. Each deal begins at another of the measured seeds: the same curves in every deal would give away
    // which case of the one is which of the other.
    int trained_seed() const { return 1 + (seed - 1 + deal) % kMostSeed; }
    RunSpec patient(std::size_t place) const {
        return patient_of(disease(place), static_cast<std::uint64_t>(trained_seed()));
    }
};

struct Opened {
    RunPtr patient, twin, reference;
};
Opened opened_of(const RunSpec& patient, const table::Told<Opened>& told);

struct CureSpec {
    RunSpec patient;
    std::string treatment, second;
    bool operator==(const CureSpec&) const = default;
    RunSpec treated() const;
};
struct Cure {
    CureSpec spec;
    RunPtr treated, twin, reference;
    bool is_known() const { return reference != nullptr; }
};
Cure cure_of(const CureSpec& spec, const table::Told<Cure>& told);

// What a cure needs. Over seeds 1 to 10 runs that were cured of their cause ended at most 7.1 % above the reference (a zero scale
// that is kept), and the mildest sick ones 8.6 % (too few mantissa bits).
struct Outcome {
    bool diagnosis_right = false;
    bool one_change = false;  // none where the diagnosis is that nothing is wrong
    bool finite = false;
    double gap_pct = 0;             // of the rerun, to the reference
    WorstUnderflow underflow = {};  // of the rerun
    bool within() const { return gap_pct <= kCuredPct; }
    bool clean() const { return underflow.mean_pct <= kCuredUnderflowPct; }
    bool cured() const { return diagnosis_right && one_change && finite && within() && clean(); }
};
Outcome outcome_of(Disease disease, const Chart& chart, const Cure& cure);

// One case whose rerun is done.
struct Treated {
    std::size_t place;
    Disease disease;
    Chart chart;
    CureSpec spec;
    bool operator==(const Treated&) const = default;
};
using Cured = std::array<bool, kLetters.size()>;
Cured cured_of(const std::vector<Treated>& treated, const table::Told<Cured>& told);

struct Clinic {
    static const LabInfo kInfo;
    using Params = clinic::Params;
    Clinic();
    static std::vector<table::Row> rows(Params& params);  // model_fields.cpp
    static std::span<const table::Experiment<Clinic>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&opened, &cure, &cured}; }
    Figure thumbnail() const;
    void settle();  // of a new deal or seed only what comes with it is said and done; keeps first diagnoses
    // "rerun"; "next": the next case that is not cured; "reveal": names the disease; "reopen": a cured case can be changed
    bool perform(std::string_view action);
    bool stale() const { return opened.is_old() || cure.is_old(); }

    // Whether what there is belongs to the present case; whether its rerun is there.
    bool is_open() const {
        return opened->reference && opened->patient->spec == params.patient(params.place());
    }
    std::optional<Outcome> outcome() const;
    RunPtr shown() const;  // the run that the instruments show: the patient where there is no rerun
    bool is_cured(std::size_t place) const { return cured->at(place); }  // also one that was revealed
    bool changed_nothing() const;  // the rerun has the losses of the patient
    bool solved(std::size_t place) const { return cured->at(place) && !params.charts.at(place).revealed; }
    int solved_cases() const;
    bool first_right(std::size_t place) const;  // the first diagnosis was
    int solved_at_once() const;                 // with the first diagnosis
    int sealed_again() const {
        return sealed_again_;
    }  // how often a new deal or seed took what was said and done
    // The recipe behind the case and the command that repeats it, once it is revealed or solved; else empty.
    std::string unsealed() const;
    // The name on the chip of a case: empty while it is sealed.
    std::string_view name_of(std::size_t place) const;

    Params params;
    table::Long<RunSpec, Opened> opened;
    table::Long<CureSpec, Cure> cure;
    table::Long<std::vector<Treated>, Cured> cured;  // also of those that were revealed

  private:
    Params settled_ = {};  // what settle() left
    int sealed_again_ = 0;
    void keep_known();
    std::optional<CureSpec> cure_spec(std::size_t place) const;
    std::vector<Figure> figures() const;
    std::vector<table::MetricRow> metrics() const;
    void add_instruments(std::vector<table::MetricRow>& out) const;
};
using ClinicLab = table::TableLab<Clinic>;

// model_figures.cpp. Instruments of one run; null: it is not there yet.
std::string loss_title(const Opened& opened);  // what is seen, never the cause
Figure loss_figure(const Opened& opened, const Cure& cure, int look);
Figure scale_figure(const RunPtr& run, TensorId tensor, int look);
Figure underflow_figure(const RunPtr& run, TensorId tensor, int look);
Figure histogram_figure(const RunPtr& run, TensorId tensor, int look);

// The steps that a run has; the value of a series at a step, from 0, NaN where there is none.
int steps_of(const Run& run);
double value_at(std::span<const double> values, int step);
double value_at(std::span<const float> values, int step);

}  // namespace fp8lab::clinic
