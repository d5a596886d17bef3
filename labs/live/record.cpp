#include "labs/live/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/json/read_json.h"

namespace fp8lab::live {
namespace {

using Json = nlohmann::json;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr float kNoValue = std::numeric_limits<float>::quiet_NaN();

Json array_of(std::span<const double> values) {
    Json out = Json::array();
    for (const double value : values) out.push_back(std::isfinite(value) ? Json(value) : Json(nullptr));
    return out;
}

Json arm_json(const ArmTrack& arm, const Recipe& recipe) {
    Json json = {{"recipe", recipe.name},
                 {"provenance", to_string(arm.provenance)},
                 {"loss", array_of(arm.loss.values())},
                 {"tensors", Json::object()}};
    if (arm.loss_scale > 0) json["loss_scale"] = arm.loss_scale, json["skipped"] = arm.skipped;
    for (const auto& [name, track, record] : kMeansOfSteps)
        if (const KnownMean& mean = arm.*track; mean.is_known()) json[name] = mean.value();
    if (arm.stopped) json["stopped"] = {{"step", arm.stopped->step}, {"tensor", arm.stopped->tensor}};
    for (const TensorTrack& track : arm.tensors) {
        if (!track.applies()) continue;
        Json& tensor = json["tensors"][track.spec.name];
        tensor = {{"step", array_of(track.underflow_step.values())},
                  {"underflow_pct", array_of(track.underflow_pct.values())},
                  {"overflow_at", track.overflow_at}};
        if (!std::isnan(track.saturated_casts)) tensor["saturated_casts"] = track.saturated_casts;
        if (!(track.underflow_sum > 0) || std::isnan(track.lost_l1_sum)) continue;  // none, or not known
        tensor["lost_l1_pct"] = array_of(track.lost_l1_pct.values());
        tensor["lost_energy_pct"] = array_of(track.lost_energy_pct.values());
    }
    return json;
}

// Series hold them as 3.0.
int step_from(const Json& json) {
    const double step = json.get<double>();
    if (!(step >= 0 && step <= std::numeric_limits<int>::max()))
        throw input_error("record", json.dump() + " is no step");
    return static_cast<int>(step);
}

std::vector<std::size_t> steps_from(const Json& json) {
    std::vector<std::size_t> out;
    for (const Json& step : json) out.push_back(static_cast<std::size_t>(step_from(step)));
    return out;
}

// What is known of a tensor at each step.
std::vector<TensorRecord> tensor_series(const Json& tensors, const std::string& name, std::size_t steps) {
    TensorRecord unknown{.amax = kNoValue, .scale = kNoValue, .underflow_pct = kNoValue, .overflow_pct = 0};
    unknown.applies = tensors.contains(name);
    std::vector<TensorRecord> out(steps, unknown);
    if (!unknown.applies) return out;
    const Json& track = tensors[name];
    const auto at = steps_from(track.at("step"));
    const auto read = [&](const char* column, float TensorRecord::*part) {
        const auto pct = track.at(column).get<std::vector<float>>();
        if (at.size() != pct.size()) throw input_error("record", name + " has series of different length");
        for (std::size_t i = 0; i < at.size(); ++i) out.at(at[i]).*part = pct[i];
    };
    read("underflow_pct", &TensorRecord::underflow_pct);
    if (track.contains("lost_l1_pct")) {
        read("lost_l1_pct", &TensorRecord::lost_l1_pct);
        read("lost_energy_pct", &TensorRecord::lost_energy_pct);
    } else {  // written by an older version, or nothing became 0: then no mass is lost
        for (TensorRecord& record : out)
            if (record.underflow_pct == 0) record.lost_l1_pct = record.lost_energy_pct = 0;
    }
    for (const auto step : steps_from(track.at("overflow_at")))
        out.at(step).overflow_pct = std::numeric_limits<float>::min();  // how much is not kept
    if (track.contains("saturated_casts") && !at.empty()) {             // of which step is not kept
        for (const auto step : at) out.at(step).saturated_casts = 0;
        out.at(at.back()).saturated_casts = track.at("saturated_casts").get<float>();
    }
    return out;
}

Provenance provenance_from(const std::string& word) {
    for (const Provenance p : {Provenance::tensor_core, Provenance::gpu_emulated, Provenance::recorded})
        if (word == to_string(p)) return p;
    return Provenance::cpu_emulated;
}

ArmSnapshot arm_from(const Json& json, const TrainSpec& spec, const Recipe& recipe) {
    if (json.at("recipe") != recipe.name)
        throw input_error("record", fmt::format("an arm is '{}', the settings say '{}'",
                                                json.at("recipe").get<std::string>(), recipe.name));
    ArmSnapshot arm;
    arm.provenance = provenance_from(json.at("provenance").get<std::string>());
    if (json.contains("stopped"))
        arm.stopped =
            NonFinite{step_from(json["stopped"].at("step")), json["stopped"].at("tensor").get<std::string>()};
    const Json& loss = json.at("loss");
    const auto steps = static_cast<std::size_t>(spec.steps);
    if (!loss.is_array() || (arm.stopped ? loss.size() > steps : loss.size() != steps))
        throw input_error("record",
                          fmt::format("an arm has {} losses, the settings say {} steps", loss.size(), steps));
    arm.records.resize(loss.size());
    for (std::size_t i = 0; i < loss.size(); ++i) {
        arm.records[i].step = static_cast<int>(i);
        arm.records[i].loss = loss[i].is_null() ? kMissing : loss[i].get<double>();
        arm.records[i].accuracy = kMissing;
    }
    if (json.contains("loss_scale") && !arm.records.empty()) {
        arm.records.back().loss_scale = json.at("loss_scale").get<float>();
        arm.records.back().skipped = step_from(json.at("skipped"));
    }
    for (const auto& [name, track, record] : kMeansOfSteps)
        if (json.contains(name) && !arm.records.empty())
            arm.records.back().*record = json.at(name).get<double>();
    for (const OperandSpec& tensor : model_plan(spec).tensors) {
        const auto series = tensor_series(json.at("tensors"), tensor.name, loss.size());
        for (std::size_t i = 0; i < series.size(); ++i) arm.records[i].tensors.push_back(series[i]);
    }
    return arm;
}

}  // namespace

std::string record_text(const History& history, const TrainSpec& spec) {
    Json json = {{"arms", Json::array()}};
    for (std::size_t i = 0; i < history.arms().size(); ++i)
        json["arms"].push_back(arm_json(history.arms()[i], spec.arms.at(i)));
    return json.dump();
}

Snapshot parse_record(std::string_view text, const TrainSpec& spec) {
    try {
        const Json json = Json::parse(text);
        const Json& arms = json.at("arms");
        if (!arms.is_array() || arms.size() != spec.arms.size())
            throw input_error("record",
                              fmt::format("{} arms, the settings say {}", arms.size(), spec.arms.size()));
        Snapshot snapshot;
        for (std::size_t i = 0; i < arms.size(); ++i)
            snapshot.arms.push_back(arm_from(arms[i], spec, spec.arms[i]));
        for (const ArmSnapshot& arm : snapshot.arms)
            snapshot.step = std::max(snapshot.step, static_cast<int>(arm.records.size()));
        return snapshot;
    } catch (const Json::exception& error) {
        throw input_error("record", json_reason(error.what()));
    } catch (const std::out_of_range&) {
        throw input_error("record", "a step is after the end of the run");
    }
}

}  // namespace fp8lab::live
