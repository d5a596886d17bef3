#include "core/lesson/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/json/checksum.h"
#include "core/json/json_places.h"
#include "core/json/read_json.h"
#include "core/lesson/evidence.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;
constexpr std::array kMembers = {"fp8lab_bundle", "student",  "version",     "at",
                                 "machine",       "evidence", "predictions", "checksum"};

// Typed members; a complaint says where in the file.
class BundleReader {
  public:
    BundleReader(const Json& root, const JsonPlaces& places, const std::string& where)
        : root_(root), places_(places), where_(where) {}

    [[noreturn]] void fail(const std::string& pointer, const std::string& why) const {
        throw input_error(where_, place_text(places_, pointer) + ": " + why);
    }
    const Json& member(const std::string& name) const {
        const auto found = root_.find(name);
        if (found == root_.end()) fail("", "'" + name + "' is missing");
        return *found;
    }
    std::string word(const Json& json, const std::string& pointer) const {
        if (!json.is_string()) fail(pointer, fmt::format("expected a string, got {}", json.type_name()));
        return json.get<std::string>();
    }
    std::string word(const std::string& name) const { return word(member(name), "/" + name); }
    const Json& object(const std::string& name) const {
        const Json& json = member(name);
        if (!json.is_object()) fail("/" + name, fmt::format("expected an object, got {}", json.type_name()));
        return json;
    }
    const Json& array(const std::string& name) const {
        const Json& json = member(name);
        if (!json.is_array()) fail("/" + name, fmt::format("expected an array, got {}", json.type_name()));
        return json;
    }

  private:
    const Json& root_;
    const JsonPlaces& places_;
    const std::string& where_;
};

// The parser quotes the whole token that it stumbled over: here that may be megabytes of evidence.
JsonPlaces places_of(std::string_view text, const std::string& where) {
    try {
        return json_places(text, where, {.bytes = kLargestBundle});
    } catch (const Error& error) {
        throw input_error(where, error.why().substr(0, error.why().find("; last read:")));
    }
}

void check_schema(const BundleReader& read) {
    const Json& schema = read.member("fp8lab_bundle");
    if (!schema.is_number_integer() || schema < 1)
        read.fail("/fp8lab_bundle", "expected the schema's number, got " + quote_from(schema.dump()));
    if (schema > kBundleSchema)
        read.fail("/fp8lab_bundle", fmt::format("written by a newer version (schema {}; this one reads {})",
                                                schema.dump(), kBundleSchema));
}

}  // namespace

std::string bundle_text(const Bundle& bundle) {
    Json json = bundle.others.empty() ? Json::object() : Json::parse(bundle.others);
    json["fp8lab_bundle"] = kBundleSchema;
    json["student"] = bundle.student;
    json["version"] = bundle.version;
    json["at"] = bundle.at;
    json["machine"] = Json::object();
    for (const auto& [name, fact] : bundle.machine) json["machine"][name] = fact;
    json["evidence"] = bundle.evidence;
    json["predictions"] = Json::object();
    for (const auto& [exercise, one] : bundle.predictions) json["predictions"][exercise] = to_json(one);
    try {
        return with_checksum(std::move(json), 1);
    } catch (const Json::exception& error) {
        throw input_error("submission", json_reason(error.what()));
    }
}

Bundle parse_bundle(std::string_view text, const std::string& where) {
    const JsonPlaces places = places_of(text, where);
    Json json = Json::parse(text);
    const BundleReader read(json, places, where);
    if (!json.is_object() || !json.contains("fp8lab_bundle")) read.fail("", "is no submission of FP8 Lab");
    check_schema(read);
    Bundle out{.student = read.word("student"),
               .version = read.word("version"),
               .at = read.word("at"),
               .machine = {},
               .evidence = {},
               .predictions = {}};
    for (const auto& [name, fact] : read.object("machine").items())
        out.machine.emplace_back(name, read.word(fact, "/machine/" + name));
    for (const Json& one : read.array("evidence"))
        out.evidence.push_back(read.word(one, fmt::format("/evidence/{}", out.evidence.size())));
    for (const auto& [exercise, one] : read.object("predictions").items()) {
        try {
            out.predictions[exercise] = prediction_from(one);
        } catch (const std::exception&) {
            read.fail("/predictions/" + exercise, "is no prediction: skipped, values, at");
        }
    }
    static_cast<void>(read.word("checksum"));
    try {
        take_checksum(json, where);
    } catch (const Error&) {
        out.intact = false;
    }
    for (const char* name : kMembers) json.erase(name);
    if (!json.empty()) out.others = json.dump();
    return out;
}

}  // namespace fp8lab
