#include "core/json/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace fp8lab {
namespace {

using OrderedJson = JsonReader::Json;

std::size_t members_below(const OrderedJson& json) {
    std::size_t count = json.is_object() ? json.size() : 0;
    if (json.is_structured())
        for (const OrderedJson& value : json) count += members_below(value);
    return count;
}

// What can be told of a text without reading it: one colon for each member, also for one that is repeated.
struct Outline {
    std::size_t members = 0;
    int depth = 0;
};

// The quotation mark that ends the string that begins at `at`; the end of the text where none does.
std::size_t end_of_string(std::string_view text, std::size_t at) {
    for (std::size_t end = text.find('"', at + 1); end != text.npos; end = text.find('"', end + 1)) {
        const std::size_t last = text.find_last_not_of('\\', end - 1);
        if ((end - last) % 2 == 1) return end;  // an even number of backslashes
    }
    return text.size();
}

Outline outline_of(std::string_view text) {
    Outline out;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') i = end_of_string(text, i);
        out.members += c == ':' ? 1 : 0;
        depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
        out.depth = std::max(out.depth, depth);
    }
    return out;
}

}  // namespace

OrderedJson read_ordered_json(std::string_view text, const std::string& where) {
    const Outline outline = outline_of(text);
    OrderedJson json;
    const bool sound = text.size() <= JsonLimits{}.bytes && outline.depth <= kDeepestJson;
    if (sound) json = OrderedJson::parse(text, nullptr, false);
    // A tree has the last of repeated members only.
    if (!sound || json.is_discarded() || members_below(json) != outline.members)
        static_cast<void>(json_places(text, where));  // throws
    return json;
}

void JsonReader::fail(const std::string& at, const std::string& why) const {
    throw input_error(where_, place(at) + ": " + why);
}

const JsonReader::Json& JsonReader::member(const Json& object, const std::string& at,
                                           const char* name) const {
    const auto it = object.find(name);
    if (it == object.end()) fail(at, fmt::format("'{}' is missing", name));
    return *it;
}

std::string JsonReader::string(const Json& json, const std::string& at) const {
    if (!json.is_string()) fail(at, fmt::format("expected a string, got {}", json.type_name()));
    return json.get<std::string>();
}

std::string JsonReader::string(const Json& object, const std::string& at, const char* name) const {
    const Json& value = member(object, at, name);
    return value.is_string() ? value.get<std::string>() : string(value, at + "/" + name);
}

std::string JsonReader::string_or(const Json& object, const std::string& at, const char* name) const {
    return object.contains(name) ? string(object, at, name) : "";
}

int JsonReader::integer(const Json& json, const std::string& at, int lo, int hi) const {
    const bool fits = json.is_number_integer() && json >= lo && json <= hi;
    if (!fits)
        fail(at, fmt::format("expected an integer from {} to {}, got {}", lo, hi, quote_from(json.dump())));
    return json.get<int>();
}

double JsonReader::number(const Json& json, const std::string& at) const {
    if (!json.is_number()) fail(at, fmt::format("expected a number, got {}", json.type_name()));
    return json.get<double>();
}

bool JsonReader::truth(const Json& json, const std::string& at) const {
    if (!json.is_boolean()) fail(at, fmt::format("expected true or false, got {}", json.type_name()));
    return json.get<bool>();
}

const JsonReader::Json& JsonReader::array(const Json& json, const std::string& at, std::size_t least,
                                          std::size_t most) const {
    if (!json.is_array()) fail(at, fmt::format("expected an array, got {}", json.type_name()));
    if (json.size() < least || json.size() > most)
        fail(at, fmt::format("has {} entries; valid: {} to {}", json.size(), least, most));
    return json;
}

const JsonReader::Json& JsonReader::object(const Json& json, const std::string& at) const {
    if (!json.is_object()) fail(at, fmt::format("expected an object, got {}", json.type_name()));
    return json;
}

std::vector<std::string> JsonReader::strings(const Json& json, const std::string& at, std::size_t least,
                                             std::size_t most) const {
    std::vector<std::string> out;
    for (const Json& item : array(json, at, least, most))
        out.push_back(item.is_string() ? item.get<std::string>()
                                       : string(item, at + "/" + std::to_string(out.size())));
    return out;
}

const JsonReader::Json& JsonReader::object_of(const Json& json, const std::string& at,
                                              std::span<const std::string_view> known) const {
    for (const auto& [name, value] : object(json, at).items())
        if (std::ranges::find(known, name) == known.end())
            fail(at + "/" + name, fmt::format("unknown member '{}'", quote_from(name)));
    return json;
}

}  // namespace fp8lab
