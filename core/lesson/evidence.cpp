#include "core/lesson/evidence.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/json/checksum.h"
#include "core/json/member.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;
constexpr int kSchema = 1;
constexpr int kMostHints = 1000;  // an exercise has three

Json to_json(double value) { return std::isfinite(value) ? Json(value) : Json(shortest(value)); }

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

Event event_from(const JsonMember& json) {
    const std::string word = json.at(0).text(), name = json.at(1).text();
    if (word == "set") return sets(name, json.at(2).text());
    if (word == "act") return acts(name);
    if (word == "answer") return types(name, json.at(2).text());
    throw Error(ErrorKind::input, "", "unknown event '" + quote_from(word) + "'; valid: set act answer");
}

Evidence::EventGroup group_from(const JsonMember& json) {
    Evidence::EventGroup group;
    for (const JsonMember& event : json.at("events").elements()) group.events.push_back(event_from(event));
    if (json.has("record")) group.record = json.at("record").json().dump();
    return group;
}

Prediction prediction_in(const JsonMember& json) {
    Prediction out{.skipped = json.at("skipped").truth(), .values = {}, .at = json.at("at").text()};
    for (const JsonMember& value : json.at("values").elements()) out.values.push_back(value.any_number());
    return out;
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

Evidence::EventGroup event_group_from(const Json& json) { return group_from(JsonMember(json)); }

Json to_json(const Prediction& prediction) {
    Json values = Json::array();
    for (const double value : prediction.values) values.push_back(to_json(value));
    return {{"skipped", prediction.skipped}, {"values", std::move(values)}, {"at", prediction.at}};
}

Prediction prediction_from(const Json& json) { return prediction_in(JsonMember(json)); }

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

Evidence evidence_from(const JsonMember& json) {
    Evidence out;
    out.exercise = json.at("exercise").text();
    out.version = json.at("version").text();
    out.provenance = json.at("provenance").text();
    out.device = json.at("device").text();
    out.seed = json.at("seed").text();
    out.at = json.at("at").text();
    out.explanation = json.at("explanation").text();
    out.hints = json.at("hints").whole(0, kMostHints);
    out.prediction = prediction_in(json.at("prediction"));
    const JsonMember scene = json.at("scene");
    out.lab = scene.at("lab").text();
    for (const auto& [name, value] : scene.at("start").members()) out.start.emplace_back(name, value.text());
    for (const JsonMember& group : scene.at("deeds").elements()) out.groups.push_back(group_from(group));
    for (const auto& [name, value] : json.at("values").members()) {
        Metric metric{.name = name};
        if (value.has("word"))
            metric.text = value.at("word").text();
        else
            metric.value = value.at("number").any_number();
        out.values.push_back(std::move(metric));
    }
    for (const JsonMember& value : json.at("measured").elements()) out.measured.push_back(value.any_number());
    for (const JsonMember& condition : json.at("conditions").elements()) {
        Condition one{.text = condition.at("text").text(), .values = {}, .met = condition.at("met").truth()};
        for (const JsonMember& value : condition.at("values").elements()) one.values.push_back(value.text());
        out.conditions.push_back(std::move(one));
    }
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
        Evidence evidence = evidence_from(JsonMember(json));
        if (JsonMember(json).at("scene_hash").text() != scene_hash(evidence))
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
