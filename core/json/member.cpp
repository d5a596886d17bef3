#include "core/json/member.h"

#include <limits>

#include "core/base/error.h"
#include "core/json/read_json.h"

namespace fp8lab {

void JsonMember::fail(const std::string& why) const {
    throw Error(ErrorKind::input, "", path_.empty() ? why : "member '" + quote_from(path_) + "': " + why);
}

std::string JsonMember::path_to(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + "/" + std::string(name);
}

JsonMember JsonMember::at(std::string_view name) const {
    if (!json_->is_object()) fail("is not an object");
    const auto found = json_->find(std::string(name));
    if (found == json_->end()) JsonMember(*json_, path_to(name)).fail("is missing");
    return {*found, path_to(name)};
}

JsonMember JsonMember::at(std::size_t index) const {
    if (!json_->is_array()) fail("is not an array");
    if (index >= json_->size()) JsonMember(*json_, path_to(std::to_string(index))).fail("is missing");
    return {(*json_)[index], path_to(std::to_string(index))};
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

std::vector<std::pair<std::string, JsonMember>> JsonMember::members() const {
    if (!json_->is_object()) fail("is not an object");
    std::vector<std::pair<std::string, JsonMember>> out;
    for (const auto& [name, value] : json_->items()) out.emplace_back(name, JsonMember(value, path_to(name)));
    return out;
}

std::string JsonMember::text() const {
    if (!json_->is_string()) fail("is not a text");
    return json_->get<std::string>();
}

bool JsonMember::truth() const {
    if (!json_->is_boolean()) fail("is neither true nor false");
    return json_->get<bool>();
}

int JsonMember::whole(int least, int most) const {
    try {
        return integer_from(*json_, least, most);
    } catch (const Error& error) {
        fail(error.why());
    }
}

double JsonMember::number() const {
    if (json_->is_number()) return json_->get<double>();
    const std::string word = json_->is_string() ? json_->get<std::string>() : "";
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (word == "inf") return kInf;
    if (word == "-inf") return -kInf;
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    fail("is not a number");
}

}  // namespace fp8lab
