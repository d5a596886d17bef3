// A value of JSON that others may have touched, with its path from the root: what is missing or of a wrong type is named
// in the message, "'results[2].arms[0].median_ms' is 0".
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fp8lab {

// Every function but json() throws Error{input} with `where` for a value of another kind.
class JsonMember {
  public:
    // `root` must outlive it. `where` names the file, `path` the place of `root` in it ("results[2]").
    explicit JsonMember(const nlohmann::json& root, std::string where = {}, std::string path = {})
        : json_(&root), where_(std::move(where)), path_(std::move(path)) {}

    JsonMember at(std::string_view name) const;  // which must be there, as in all that follow
    JsonMember at(std::size_t index) const;
    bool has(std::string_view name) const;
    std::vector<JsonMember> elements() const;
    std::vector<JsonMember> some_elements() const;  // one at least
    std::vector<std::pair<std::string, JsonMember>> members() const;

    std::string text() const;
    std::string filled_text() const;  // not empty
    bool truth() const;
    int whole(int least, int most) const;
    int count() const { return whole(1, 1 << 20); }
    double number() const;
    double at_least_zero() const;
    double above_zero() const;
    double any_number() const;  // also "inf", "-inf", "nan"

    const nlohmann::json& json() const { return *json_; }
    [[noreturn]] void fail(const std::string& why) const;  // why: "is missing"

  private:
    std::string path_to(std::string_view name) const;

    const nlohmann::json* json_;
    std::string where_, path_;
};

}  // namespace fp8lab
