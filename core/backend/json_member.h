// Reads the members of a JSON object, with their place in messages: "'results[2].arms[0].median_ms' is 0".
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace fp8lab {

// One object of the file, with its place for messages: "results[2].arms[0]".
class JsonMember {
    using Json = nlohmann::json;

  public:
    JsonMember(const Json& value, std::string where, std::string path)
        : value_(value), where_(std::move(where)), path_(std::move(path)) {
        if (!value.is_object()) fail("is not an object");
    }
    bool has(const char* name) const { return value_.contains(name); }
    std::string text(const char* name) const {
        const Json& value = at(name);
        if (!value.is_string() || value.get_ref<const std::string&>().empty()) fail(name, "is not a text");
        return value;
    }
    double above_zero(const char* name) const {
        const double number = at_least_zero(name);
        if (number == 0) fail(name, "is 0");
        return number;
    }
    double at_least_zero(const char* name) const {
        const Json& value = at(name);
        if (!value.is_number() || !(value.get<double>() >= 0)) fail(name, "is not a number from 0");
        return value;
    }
    double number(const char* name) const {
        const Json& value = at(name);
        if (!value.is_number()) fail(name, "is not a number");
        return value;
    }
    bool truth(const char* name) const {
        const Json& value = at(name);
        if (!value.is_boolean()) fail(name, "is not true or false");
        return value;
    }
    int count(const Json& value, const char* name) const {
        if (!value.is_number_integer() || value < 1 || value > (1 << 20))
            fail(name, "is not from 1 to 1048576");
        return value;
    }
    int count(const char* name) const { return count(at(name), name); }
    const Json& list(const char* name) const {
        const Json& value = at(name);
        if (!value.is_array() || value.empty()) fail(name, "is not a list");
        return value;
    }
    JsonMember element(const char* name, std::size_t i) const {
        return {at(name).at(i), where_, fmt::format("{}{}[{}]", prefix(), name, i)};
    }
    [[noreturn]] void fail(const std::string& name, const std::string& why) const {
        throw input_error(where_, fmt::format("'{}{}' {}", prefix(), name, why));
    }

    // Of a list that may be empty.
    std::size_t size(const char* name) const {
        const Json& value = at(name);
        if (!value.is_array()) fail(name, "is not a list");
        return value.size();
    }
    JsonMember member(const char* name) const { return {at(name), where_, prefix() + name}; }
    const Json& json() const { return value_; }

  private:
    std::string prefix() const { return path_.empty() ? "" : path_ + "."; }
    [[noreturn]] void fail(const std::string& why) const {
        throw input_error(where_, fmt::format("'{}' {}", path_.empty() ? "the file" : path_, why));
    }
    const Json& at(const char* name) const {
        const auto found = value_.find(name);
        if (found == value_.end()) fail(name, "is missing");
        return *found;
    }
    const Json& value_;
    std::string where_, path_;
};

}  // namespace fp8lab
