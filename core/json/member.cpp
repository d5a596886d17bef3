#include "core/json/member.h"

#include <fmt/format.h>

#include <limits>

#include "core/base/error.h"
#include "core/json/read_json.h"

namespace fp8lab {

void JsonMember::fail(const std::string& why) const {
    throw input_error(where_, fmt::format("'{}' {}", path_.empty() ? "the file" : quote_from(path_), why));
}

std::string JsonMember::path_to(std::string_view name) const {
    return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

JsonMember JsonMember::at(std::string_view name) const {
    if (!json_->is_object()) fail("is not an object");
    const auto found = json_->find(std::string(name));
    if (found == json_->end()) JsonMember(*json_, where_, path_to(name)).fail("is missing");
    return JsonMember(*found, where_, path_to(name));
}

JsonMember JsonMember::at(std::size_t index) const {
    if (!json_->is_array()) fail("is not an array");
    const std::string path = fmt::format("{}[{}]", path_, index);
    if (index >= json_->size()) JsonMember(*json_, where_, path).fail("is missing");
    return JsonMember((*json_)[index], where_, path);
}

bool JsonMember::has(std::string_view name) const {
    if (!json_->is_object()) fail("is not an object");
    return json_->contains(std::string(name));
}

std::vector<JsonMember> JsonMember::elements() const {
    if (!json_->is_array()) fail("is not an array");
    std::vector<JsonMember> out;
    for (std::size_t i = 0; i < json_->size(); ++i) out.push_back(at(i));
    return out;
}

std::vector<JsonMember> JsonMember::some_elements() const {
    std::vector<JsonMember> out = elements();
    if (out.empty()) fail("is empty");
    return out;
}

std::vector<std::pair<std::string, JsonMember>> JsonMember::members() const {
    if (!json_->is_object()) fail("is not an object");
    std::vector<std::pair<std::string, JsonMember>> out;
    for (const auto& [name, value] : json_->items())
        out.emplace_back(name, JsonMember(value, where_, path_to(name)));
    return out;
}

std::string JsonMember::text() const {
    if (!json_->is_string()) fail("is not a text");
    return json_->get<std::string>();
}

std::string JsonMember::filled_text() const {
    std::string out = text();
    if (out.empty()) fail("is empty");
    return out;
}

bool JsonMember::truth() const {
    if (!json_->is_boolean()) fail("is neither true nor false");
    return json_->get<bool>();
}

int JsonMember::whole(int least, int most) const {
    try {
        return integer_from(*json_, least, most);
    } catch (const Error&) {
        fail(fmt::format("is not an integer from {} to {}", least, most));
    }
}

double JsonMember::number() const {
    if (!json_->is_number()) fail("is not a number");
    return json_->get<double>();
}

double JsonMember::at_least_zero() const {
    const double value = number();
    if (!(value >= 0)) fail("is below 0");
    return value;
}

double JsonMember::above_zero() const {
    const double value = at_least_zero();
    if (value == 0) fail("is 0");
    return value;
}

double JsonMember::any_number() const {
    const std::string word = json_->is_string() ? json_->get<std::string>() : "";
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (word == "inf") return kInf;
    if (word == "-inf") return -kInf;
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    return number();
}

}  // namespace fp8lab
