// Whole trainings of L13's exercises, recorded: one costs half a minute of two cores. Exercises are judged from them,
// and L13's own tests train their first steps again.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "core/files/files.h"
#include "labs/course/exercise_run.h"
#include "labs/transformer/model.h"
#include "tests/json.h"

namespace fp8lab::test {

class TransformerRuns {
  public:
    static std::filesystem::path file() {
        return std::filesystem::path(FP8LAB_SOURCE) / "tests/unit/labs/transformer_runs.json";
    }
    TransformerRuns()
        : runs_(std::filesystem::exists(file()) ? parsed(read_text(file())) : nlohmann::json::object()) {}

    const nlohmann::json& all() const { return runs_; }
    void add(const std::string& key, const std::string& record) {
        runs_[key] = parsed(record);
        write_file(file(), runs_.dump() + "\n");
    }

    // What the events leave behind, each training replaced by its record. `missing`: the key of the last one that is
    // not recorded; empty where all are.
    Trail trail(const Exercise& exercise, std::span<const Event> events, std::string& missing) const {
        missing.clear();
        transformer::TransformerLab lab;
        begin_exercise(lab, exercise);
        Trail trail{.start = observe(lab), .steps = {}};
        int steps = 0, aligned = 0;
        for (const Event& event : events) {
            if (event.kind == Event::Kind::set) set_field(lab.fields(), event.name + "=" + event.value);
            if (event.kind == Event::Kind::act) {
                if (event.name == "run") steps = transformer::kSteps;
                if (event.name == "step") ++steps;
                if (event.name == "align") aligned = steps;
                if (event.name.starts_with("run to ")) steps = std::stoi(event.name.substr(7));
                const std::string key = key_of(lab, steps, steps > aligned ? aligned : 0);
                missing = runs_.contains(key) ? "" : key;
                lab.replay(missing.empty() ? runs_[key].dump() : "");
            }
            trail.steps.push_back({{event}, observe(lab), lab.record()});
        }
        return trail;
    }

  private:
    // "600 arm_b=current align=300": steps, what differs from the default settings, and the step of the alignment.
    static std::string key_of(Lab& lab, int steps, int aligned) {
        std::string key = std::to_string(steps);
        const auto now = lab.fields(), defaults = lab.defaults();
        for (std::size_t i = 0; i < now.size(); ++i)
            if (!now[i].info.looks && now[i].info.name != "align_step" &&
                field_text(now[i]) != field_text(defaults[i]))
                key += " " + now[i].info.name + "=" + field_text(now[i]);
        return aligned > 0 ? key + " align=" + std::to_string(aligned) : key;
    }

    nlohmann::json runs_;
};

}  // namespace fp8lab::test
