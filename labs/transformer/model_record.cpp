#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/json/read_json.h"
#include "labs/transformer/model.h"

namespace fp8lab::transformer {
namespace {

using Json = nlohmann::json;

// JSON has no NaN.
Json rounded(double value, int digits) {
    if (!std::isfinite(value)) return nullptr;
    return std::stod(fmt::format("{:.{}g}", value, digits));
}
// Six digits are more than any judge compares. Losses have nine: a gap is the difference of two that are nearly equal.
Json six_digits(double value) { return rounded(value, 6); }
Json nine_digits(double value) { return rounded(value, 9); }
double value_of(const Json& json) { return json.is_null() ? kNan : json.get<double>(); }
int step_of(const Json& json) { return integer_from(json, 0, kSteps); }

Json arm_json(const TransformerLab& lab, std::size_t index) {
    const live::ArmTrack& arm = lab.history().arms().at(index);
    Json json = {
        {"recipe", lab.spec().arms.at(index).name}, {"loss", Json::array()}, {"tensors", Json::object()}};
    for (const double loss : arm.loss.values()) json["loss"].push_back(nine_digits(loss));
    if (lab.spec().task == TaskKind::copying)
        for (const double accuracy : arm.accuracy.values()) json["accuracy"].push_back(six_digits(accuracy));
    for (const auto& [name, track, record] : live::kMeansOfSteps)
        if (const live::KnownMean& mean = arm.*track; mean.is_known()) json[name] = six_digits(mean.value());
    if (arm.stopped) json["stopped"] = {{"step", arm.stopped->step}, {"tensor", arm.stopped->tensor}};
    if (const auto& told = lab.evaluation(index))
        json["evaluation"] = {{"step", told->step},
                              {"loss", nine_digits(told->loss)},
                              {"accuracy", six_digits(told->accuracy)},
                              {"prompt", told->prompt},
                              {"continuation", told->continuation},
                              {"expected", told->expected},
                              {"text_step", told->text_step}};
    const Health& health = lab.health().at(index);
    for (std::size_t i = 0; i < health.tensors().size(); ++i) {
        const TensorHealth& t = health.tensors()[i];
        Json& row = json["tensors"][lab.plan().tensors[i].name];
        row = {six_digits(t.amax),          six_digits(t.scale),    six_digits(t.sqnr_db),
               six_digits(t.kurtosis),      six_digits(t.lost_pct), six_digits(t.saturated_pct),
               six_digits(t.tail_lost_pct), t.saturated_steps};
        if (!std::isnan(t.saturated_casts)) row.push_back(six_digits(t.saturated_casts));
    }
    json["gemms"] = health.gemms();
    return json;
}

ArmSnapshot arm_from(const Json& json, const Recipe& recipe) {
    if (json.at("recipe") != recipe.name)
        throw input_error("record", fmt::format("an arm is '{}', the settings say '{}'",
                                                json.at("recipe").get<std::string>(), recipe.name));
    ArmSnapshot arm;
    const Json& loss = json.at("loss");
    if (!loss.is_array() || loss.size() > kSteps)
        throw input_error("record", "the losses are no list of 600 or less");
    const Json accuracy = json.value("accuracy", Json::array());
    if (!accuracy.empty() && accuracy.size() != loss.size())
        throw input_error("record", "losses and accuracies differ in number");
    for (std::size_t i = 0; i < loss.size(); ++i) {
        StepRecord& record = arm.records.emplace_back();
        record.step = static_cast<int>(i);
        record.loss = value_of(loss[i]);
        record.accuracy = accuracy.empty() ? kNan : value_of(accuracy[i]);
    }
    if (json.contains("stopped"))
        arm.stopped =
            NonFinite{step_of(json["stopped"].at("step")), json["stopped"].at("tensor").get<std::string>()};
    for (const auto& [name, track, record] : live::kMeansOfSteps)
        if (json.contains(name) && !arm.records.empty()) arm.records.back().*record = value_of(json[name]);
    if (!json.contains("evaluation")) return arm;
    const Json& told = json["evaluation"];
    arm.evaluation = Evaluation{.step = step_of(told.at("step")),
                                .loss = value_of(told.at("loss")),
                                .accuracy = value_of(told.at("accuracy")),
                                .prompt = told.at("prompt").get<std::string>(),
                                .continuation = told.at("continuation").get<std::string>(),
                                .expected = told.at("expected").get<std::string>(),
                                .text_step = step_of(told.value("text_step", told.at("step")))};
    return arm;
}

Health health_from(const Json& json, const ModelPlan& plan) {
    std::vector<TensorHealth> tensors;
    for (const OperandSpec& spec : plan.tensors) {
        const Json& row = json.at("tensors").at(spec.name);
        if (row.size() != 8 && row.size() != 9)
            throw input_error("record", spec.name + " has neither eight numbers nor nine");
        tensors.push_back({.amax = value_of(row.at(0)),
                           .scale = value_of(row.at(1)),
                           .sqnr_db = value_of(row.at(2)),
                           .kurtosis = value_of(row.at(3)),
                           .lost_pct = value_of(row.at(4)),
                           .saturated_pct = value_of(row.at(5)),
                           .tail_lost_pct = value_of(row.at(6)),
                           .saturated_steps = step_of(row.at(7)),
                           .saturated_casts = row.size() > 8 ? value_of(row.at(8)) : kNan});
    }
    auto gemms = json.at("gemms").get<std::vector<int>>();
    if (gemms.size() != plan.gemms.size())
        throw input_error("record", "the GEMMs are not those of the model");
    Health health;
    health.restore(std::move(tensors), std::move(gemms));
    return health;
}

}  // namespace

std::string record_text(const TransformerLab& lab) {
    Json json = {{"arms", {arm_json(lab, 0), arm_json(lab, 1)}}};
    if (lab.aligned_at()) json["aligned_at"] = *lab.aligned_at();
    return json.dump();
}

Recorded parse_record(std::string_view text, const TrainSpec& spec, const ModelPlan& plan) {
    try {
        const Json json = Json::parse(text);
        const Json& arms = json.at("arms");
        if (!arms.is_array() || arms.size() != 2) throw input_error("record", "has not two arms");
        Recorded out;
        for (std::size_t i = 0; i < 2; ++i) {
            out.snapshot.arms.push_back(arm_from(arms[i], spec.arms.at(i)));
            out.health[i] = health_from(arms[i], plan);
            out.snapshot.step =
                std::max(out.snapshot.step, static_cast<int>(out.snapshot.arms[i].records.size()));
        }
        if (json.contains("aligned_at")) out.aligned_at = json["aligned_at"].get<int>();
        if (out.aligned_at < 0 || out.aligned_at >= std::max(1, out.snapshot.step))
            throw input_error("record", "the channel is aligned after the end of the run");
        return out;
    } catch (const Json::exception& error) {
        throw input_error("record", json_reason(error.what()));
    }
}

}  // namespace fp8lab::transformer
