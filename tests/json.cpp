#include "tests/json.h"

nlohmann::json parsed(const std::string& text) { return nlohmann::json::parse(text); }

doctest::String doctest::StringMaker<nlohmann::json>::convert(const nlohmann::json& value) {
    return value.dump().c_str();
}
