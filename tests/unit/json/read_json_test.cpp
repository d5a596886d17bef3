// JSON of files that anyone may have touched: what would take the stack or the memory is refused.
#include "core/json/read_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/json/checksum.h"
#include "core/json/json_places.h"

using namespace fp8lab;

namespace {

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

}  // namespace

TEST_CASE("nesting that would take the stack is refused, what people write is not") {
    CHECK(parse_json(nested(64), "a").dump() == nested(64));
    CHECK_THROWS_WITH_AS(parse_json(nested(65), "a"), "a: nested deeper than 64", Error);
    CHECK_THROWS_WITH_AS(parse_json(nested(1'000'000), "a"), "a: nested deeper than 64", Error);
    CHECK_THROWS_WITH_AS(parse_with_checksum("{\"x\": " + nested(1'000'000) + "}", "a"),
                         "a: nested deeper than 64", Error);
    CHECK_THROWS_WITH_AS(parse_json("{\n oops", "a"), doctest::Contains("line 2"), Error);
}

TEST_CASE("an integer is one, and in its range") {
    CHECK(integer_from(7, 0, 7) == 7);
    for (const nlohmann::json& json :
         {nlohmann::json(8), nlohmann::json(-1), nlohmann::json(1e300), nlohmann::json(2.0),
          nlohmann::json(true), nlohmann::json("1"), nlohmann::json(18446744073709551615U)})
        CHECK_THROWS_WITH_AS(integer_from(json, 0, 7), doctest::Contains("an integer from 0 to 7"), Error);
}

TEST_CASE("a message quotes whole characters, and not too many") {
    CHECK(quote_from("short") == "short");
    CHECK(quote_from(std::string(1000, 'x')) == std::string(80, 'x') + "\u2026");
    CHECK(quote_from(std::string(79, 'x') + "\u00e9\u00e9") == std::string(79, 'x') + "\u2026");
}

TEST_CASE("places of very many values, or below a very long name, do not fill the memory") {
    std::string many = "[0";
    for (int i = 0; i < 1'000'000; ++i) many += ",0";
    CHECK_THROWS_WITH_AS(json_places(many + "]", "a"), doctest::Contains("more than 1000000 values"), Error);
    const std::string name(4u << 20, 'n');
    std::string below = "{\"" + name + "\": {\"x\": [0";
    for (int i = 0; i < 200'000; ++i) below += ",0";
    const JsonPlaces places = json_places(below + "]},\n\"y\": 1}", "a");
    CHECK(places.size() == 2);
    CHECK(place_text(places, "/" + name + "/x/7") == "line 1, column 1");
    CHECK(place_text(places, "/y") == "line 2, column 6");
}
