// A value of JSON that others may have touched, with its path from the root: what is missing or of a wrong type is named
// in the message, "member 'scene/deeds/0/events/1': is not a text".
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fp8lab {

class JsonMember {
  public:
    explicit JsonMember(const nlohmann::json& root) : json_(&root) {}  // `root` must outlive it

    // Throw Error{input} with an empty `where`: there is no such member or element, or this is no object or array.
    JsonMember at(std::string_view name) const;
    JsonMember at(std::size_t index) const;
    bool has(std::string_view name) const;
    std::vector<JsonMember> elements() const;
    std::vector<std::pair<std::string, JsonMember>> members() const;

    // Throw Error{input} with an empty `where`: another type, or out of range.
    std::string text() const;
    bool truth() const;
    int whole(int least, int most) const;
    double number() const;  // also "inf", "-inf", "nan"

    const nlohmann::json& json() const { return *json_; }

  private:
    JsonMember(const nlohmann::json& json, std::string path) : json_(&json), path_(std::move(path)) {}
    std::string path_to(std::string_view name) const;
    [[noreturn]] void fail(const std::string& why) const;

    const nlohmann::json* json_;
    std::string path_ = {};
};

}  // namespace fp8lab
