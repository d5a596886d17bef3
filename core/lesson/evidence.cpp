#include "core/lesson/evidence.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/json/checksum.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;
constexpr int kSchema = 1;
constexpr int kMostHints = 1000;  // an exercise has three

Json to_json(double value) { return std::isfinite(value) ? Json(value) : Json(shortest(value)); }

double number_from(const Json& json) {
    if (json.is_number()) return json.get<double>();
    const auto word = json.get<std::string>();
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (word == "inf") return kInf;
    if (word == "-inf") return -kInf;
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    throw Error(ErrorKind::input, "", "'" + word + "' is no number");
}

constexpr std::string_view word_of(Event::Kind kind) {
    switch (kind) {
        case Event::Kind::set:
            return "set";
        case Event::Kind::act:
            return "act";
        case Event::Kind::answer:
            return "answer";
    }
    return "";
}

Event event_from(const Json& json) {
    const auto word = json.at(0).get<std::string>();
    const auto name = json.at(1).get<std::string>();
    if (word == "set") return sets(name, json.at(2).get<std::string>());
    if (word == "act") return acts(name);
    if (word == "answer") return types(name, json.at(2).get<std::string>());
    throw Error(ErrorKind::input, "", "unknown event '" + word + "'; valid: set act answer");
}

}  // namespace

Json to_json(const Evidence::EventGroup& group) {
    Json events = Json::array();
    for (const Event& event : group.events) {
        Json one = {word_of(event.kind), event.name};
        if (event.kind != Event::Kind::act) one.push_back(event.value);
        events.push_back(std::move(one));
    }
    Json json = {{"events", std::move(events)}};
    if (!group.record.empty()) json["record"] = Json::parse(group.record);
    return json;
}

Evidence::EventGroup event_group_from(const Json& json) {
    Evidence::EventGroup group;
    for (const Json& event : json.at("events")) group.events.push_back(event_from(event));
    if (json.contains("record")) group.record = json["record"].dump();
    return group;
}

Json to_json(const Prediction& prediction) {
    Json values = Json::array();
    for (const double value : prediction.values) values.push_back(to_json(value));
    return {{"skipped", prediction.skipped}, {"values", std::move(values)}, {"at", prediction.at}};
}

Prediction prediction_from(const Json& json) {
    Prediction out{
        .skipped = json.at("skipped").get<bool>(), .values = {}, .at = json.at("at").get<std::string>()};
    for (const Json& value : json.at("values")) out.values.push_back(number_from(value));
    return out;
}

namespace {

Json scene_json(const Evidence& evidence) {
    Json scene = {{"lab", evidence.lab}, {"start", Json::object()}, {"deeds", Json::array()}};
    for (const auto& [name, value] : evidence.start) scene["start"][name] = value;
    for (const Evidence::EventGroup& group : evidence.groups) scene["deeds"].push_back(to_json(group));
    return scene;
}

Json body(const Evidence& evidence) {
    Json json = {{"fp8lab_evidence", kSchema},
                 {"exercise", evidence.exercise},
                 {"version", evidence.version},
                 {"provenance", evidence.provenance},
                 {"device", evidence.device},
                 {"seed", evidence.seed},
                 {"at", evidence.at},
                 {"hints", evidence.hints},
                 {"explanation", evidence.explanation},
                 {"prediction", to_json(evidence.prediction)},
                 {"scene", scene_json(evidence)},
                 {"scene_hash", scene_hash(evidence)},
                 {"values", Json::object()},
                 {"conditions", Json::array()},
                 {"measured", Json::array()}};
    for (const double value : evidence.measured) json["measured"].push_back(to_json(value));
    for (const Metric& metric : evidence.values)
        json["values"][metric.name] =
            metric.text.empty() ? Json{{"number", to_json(metric.value)}} : Json{{"word", metric.text}};
    for (const Condition& condition : evidence.conditions)
        json["conditions"].push_back(
            {{"text", condition.text}, {"values", condition.values}, {"met", condition.met}});
    return json;
}

Evidence evidence_from(const Json& json) {
    Evidence out;
    const auto word = [&](const char* name) { return json.at(name).get<std::string>(); };
    out.exercise = word("exercise");
    out.version = word("version");
    out.provenance = word("provenance");
    out.device = word("device");
    out.seed = word("seed");
    out.at = word("at");
    out.explanation = word("explanation");
    out.hints = integer_from(json.at("hints"), 0, kMostHints);
    out.prediction = prediction_from(json.at("prediction"));
    const Json& scene = json.at("scene");
    out.lab = scene.at("lab").get<std::string>();
    for (const auto& [name, value] : scene.at("start").items())
        out.start.emplace_back(name, value.get<std::string>());
    for (const Json& group : scene.at("deeds")) out.groups.push_back(event_group_from(group));
    for (const auto& [name, value] : json.at("values").items()) {
        Metric metric{.name = name};
        if (value.contains("word"))
            metric.text = value["word"].get<std::string>();
        else
            metric.value = number_from(value.at("number"));
        out.values.push_back(std::move(metric));
    }
    for (const Json& value : json.at("measured")) out.measured.push_back(number_from(value));
    for (const Json& condition : json.at("conditions"))
        out.conditions.push_back({.text = condition.at("text").get<std::string>(),
                                  .values = condition.at("values").get<std::vector<std::string>>(),
                                  .met = condition.at("met").get<bool>()});
    return out;
}

// Counts while the text is read. An event is an array in scene/deeds/*/events.
class EvidenceCounter : public nlohmann::json_sax<Json> {
  public:
    EvidenceSize size;

    bool null() override { return value(); }
    bool boolean(bool) override { return value(); }
    bool number_integer(number_integer_t) override { return value(); }
    bool number_unsigned(number_unsigned_t) override { return value(); }
    bool number_float(number_float_t, const string_t&) override { return value(); }
    bool binary(binary_t&) override { return value(); }
    bool string(string_t& text) override {
        if (depth_ == 1 && names_[0] == "exercise") size.exercise = quote_from(text);
        return value();
    }
    bool start_object(std::size_t) override { return open(); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool start_array(std::size_t) override {
        if (depth_ == 5 && names_[0] == "scene" && names_[1] == "deeds" && names_[3] == "events")
            ++size.events;
        return open();
    }
    bool key(string_t& name) override {
        if (depth_ <= names_.size()) names_[depth_ - 1] = name.size() < 16 ? name : "";
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
        return false;
    }

  private:
    bool value() {
        ++size.values;
        return true;
    }
    bool open() {
        ++depth_;
        return value();
    }
    bool close() {
        --depth_;
        return true;
    }
    std::size_t depth_ = 0;             // of what is open: 1 in the outermost object
    std::array<std::string, 4> names_;  // the member at hand, at depth 1 to 4
};

}  // namespace

EvidenceSize evidence_size(std::string_view text) {
    EvidenceCounter counter;
    Json::sax_parse(text, &counter);
    return counter.size;
}

std::string scene_hash(const Evidence& evidence) { return fnv_hash(scene_json(evidence).dump()); }

std::string evidence_text(const Evidence& evidence) { return with_checksum(body(evidence), 1); }

Evidence parse_evidence(std::string_view text, const std::string& where) {
    try {
        Json json = parse_json(text, where);
        if (!json.is_object() || !json.contains("fp8lab_evidence"))
            throw input_error(where, "is no evidence of an exercise");
        if (json["fp8lab_evidence"] != kSchema)
            throw input_error(where, "is of another version of the evidence format; this one reads 1");
        if (!take_checksum(json, where)) throw input_error(where, "has no checksum");
        Evidence evidence = evidence_from(json);
        if (json.at("scene_hash") != scene_hash(evidence))
            throw Error(ErrorKind::failed, where, "was changed: its scene hash does not fit");
        return evidence;
    } catch (const Json::exception& error) {
        throw input_error(where, json_reason(error.what()));
    } catch (const Error& error) {
        if (!error.where().empty()) throw;
        throw input_error(where, error.why());
    }
}

}  // namespace fp8lab
