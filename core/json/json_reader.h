// Reads the members of a JSON document by type. What is missing, of a wrong type or unknown is told with its line and
// column. A value is named by its JSON pointer (`at`): "" is the document, "/predict/choices" a member of a member.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json/json_places.h"

namespace fp8lab {

class JsonReader {
  public:
    using Json = nlohmann::ordered_json;

    // Both must outlive it. `where` names the file.
    JsonReader(const JsonPlaces& places, const std::string& where) : places_(places), where_(where) {}

    const std::string& where() const { return where_; }
    std::string place(const std::string& at) const { return place_text(places_, at); }  // "line 3, column 7"
    // Throws input_error(where, "line 3, column 7: WHY"), as all that follow do.
    [[noreturn]] void fail(const std::string& at, const std::string& why) const;

    const Json& member(const Json& object, const std::string& at, const char* name) const;
    std::string string(const Json& json, const std::string& at) const;
    std::string string(const Json& object, const std::string& at, const char* name) const;
    std::string string_or(const Json& object, const std::string& at, const char* name) const;  // else empty
    int integer(const Json& json, const std::string& at, int lo, int hi) const;
    double number(const Json& json, const std::string& at) const;
    bool truth(const Json& json, const std::string& at) const;
    const Json& array(const Json& json, const std::string& at, std::size_t least, std::size_t most) const;
    const Json& object(const Json& json, const std::string& at) const;
    std::vector<std::string> strings(const Json& json, const std::string& at, std::size_t least,
                                     std::size_t most) const;
    // An object that has no members but these.
    const Json& object_of(const Json& json, const std::string& at,
                          std::span<const std::string_view> known) const;

  private:
    const JsonPlaces& places_;
    const std::string& where_;
};

// The document, its members in their order. Throws what json_places() does, which it asks only for the place of a fault:
// that takes longer than the reading.
JsonReader::Json read_ordered_json(std::string_view text, const std::string& where);

}  // namespace fp8lab
