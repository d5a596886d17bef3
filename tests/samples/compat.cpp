// compat_samples FOLDER: what this version writes of every exercise and lab, for a folder of tests/compat (scripts/compat.sh).
//   evidence/L5.3-start.json, -solver.json, -miss-1.json, ...   of labs that do not train: their events repeat in a moment
//   evidence/L8.1-steps-20.json    a training of 20 steps: its series are in the evidence
//   profile/exercises/             the pass of the last exercise of each of these labs, and its prediction
//   scenes/bits.f8scene, ...       the state that the last solver of a lab leaves, with its first number as the headline
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files/files.h"
#include "core/lesson/progress.h"
#include "labs/course/scene_run.h"
#include "tests/unit/made_evidence.h"

using namespace fp8lab;

namespace {

constexpr auto kAt = "2026-11-26T12:00:00";

// A prediction that fits the question; nothing depends on its value.
Prediction guess_of(const Exercise& exercise) {
    Prediction out{.skipped = false, .values = {}, .at = kAt};
    if (const auto* number = std::get_if<NumberPrediction>(&exercise.prediction))
        out.values = {number->initial};
    else if (std::holds_alternative<ChoicePrediction>(exercise.prediction))
        out.values = {1};
    else if (const auto* curve = std::get_if<CurvePrediction>(&exercise.prediction))
        out.values.assign(curve->at.size() * curve->lines.size(), curve->initial);
    else
        out.skipped = true;
    return out;
}

class Writer {
  public:
    explicit Writer(const std::filesystem::path& folder)
        : folder_(folder), progress_(ProfileFolders(folder / "profile")) {
        for (const char* part : {"evidence", "scenes", "profile/exercises"}) make_folder(folder_ / part);
    }

    void write(const LabEntry& entry) {
        const auto lab = entry.make();
        for (const Exercise& exercise : lab->exercises()) {
            if (lab->live()) {
                write_training({&entry, &exercise});
            } else {
                write_specimens({&entry, &exercise});
            }
        }
        if (!lab->live() && !lab->exercises().empty()) write_last({&entry, &lab->exercises().back()});
    }

  private:
    Evidence write_evidence(const ExerciseEntry& entry, const std::string& name,
                            std::span<const Event> events) {
        Evidence evidence = test::attempt(entry, events, guess_of(*entry.exercise));
        evidence.at = kAt;
        evidence.device = "CPU";
        evidence.explanation = name == "solver" ? entry.exercise->title : "";
        write_file(folder_ / "evidence" / fmt::format("{}-{}.json", entry.exercise->id, name),
                   evidence_text(evidence));
        return evidence;
    }

    void write_specimens(const ExerciseEntry& entry) {
        write_evidence(entry, "start", {});
        write_evidence(entry, "solver", entry.exercise->solver);
        for (std::size_t i = 0; i < entry.exercise->near_misses.size(); ++i)
            write_evidence(entry, fmt::format("miss-{}", i + 1), entry.exercise->near_misses[i].events);
    }

    // Of a whole training the series have megabytes; the first exercise of a lab that can be set to 20 steps stands for all.
    void write_training(const ExerciseEntry& entry) {
        write_evidence(entry, "start", {});
        const auto lab = entry.lab->make();
        const auto fields = lab->fields();
        if (find_field(fields, "steps") == nullptr || !entry.exercise->id.ends_with(".1")) return;
        const Event twenty[] = {sets("steps", "20"), acts("run")};
        write_evidence(entry, "steps-20", twenty);
    }

    void write_last(const ExerciseEntry& entry) {
        progress_.keep(write_evidence(entry, "solver", entry.exercise->solver));
        progress_.keep(entry.exercise->id, guess_of(*entry.exercise));
        const auto lab = entry.lab->make();
        perform(*lab, *entry.exercise, entry.exercise->solver);
        Scene scene = scene_of(*lab, entry.exercise->title, "Say it slowly.");
        for (const Metric& metric : lab->metrics()) {
            if (!metric.text.empty() || !std::isfinite(metric.value)) continue;
            scene.document["headline"] = {{"metric", metric.name}, {"value", metric.value}, {"tolerance", 0}};
            break;
        }
        write_file(folder_ / "scenes" / fmt::format("{}.f8scene", entry.lab->id), scene_text(scene));
    }

    std::filesystem::path folder_;
    Progress progress_;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return fmt::print(stderr, "usage: compat_samples FOLDER\n"), 2;
    try {
        Writer writer(arguments[1]);
        for (const LabEntry& entry : lab_registry()) writer.write(entry);
    } catch (const std::exception& error) {
        fmt::print(stderr, "compat_samples: {}\n", error.what());
        return 1;
    }
}
