#include "core/base/fields.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "tests/json.h"

using namespace fp8lab;

namespace {

struct Params {
    double scale = 1;
    int history = 16;
    bool saturate = true;
    std::string algo = "max";
};

std::vector<Field> table(Params& p) {
    return {
        number({.name = "scale", .label = "Scale"}, &p.scale, 1e-4, 1e4, true),
        integer({.name = "history", .label = "History", .te_name = "amax_history_len"}, &p.history, 1, 4096),
        toggle({.name = "saturate", .label = "Saturate"}, &p.saturate),
        choice({.name = "algo", .label = "Algorithm"}, &p.algo,
               {{"max", "max"}, {"most_recent", "most recent"}})};
}

std::string error_of(const std::vector<Field>& fields, std::string_view assignment) {
    try {
        set_field(fields, assignment);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::usage);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("--set stores what it names and nothing else") {
    Params p;
    const auto fields = table(p);
    set_field(fields, "history=64");
    set_field(fields, "scale=0.1");
    set_field(fields, "saturate=off");
    set_field(fields, "algo=most_recent");
    CHECK(p.history == 64);
    CHECK(p.scale == 0.1);
    CHECK_FALSE(p.saturate);
    CHECK(p.algo == "most_recent");
}

TEST_CASE("a value that does not fit is refused with the valid ones, and nothing changes") {
    Params p, untouched;
    const auto fields = table(p);
    CHECK(error_of(fields, "histroy=4") ==
          "--set: unknown field 'histroy'; valid: scale history saturate algo");
    CHECK(error_of(fields, "history=0") == "history: 0 is out of range; valid: 1 to 4096");
    CHECK(error_of(fields, "history=4.5") == "history: '4.5' is not a number; valid: 1 to 4096");
    CHECK(error_of(fields, "scale=nan").find("out of range") != std::string::npos);
    CHECK(error_of(fields, "saturate=maybe") == "saturate: 'maybe' is not a switch; valid: on off");
    CHECK(error_of(fields, "algo=mean") == "algo: unknown value 'mean'; valid: max most_recent");
    CHECK(error_of(fields, "history") == "--set: 'history' is not FIELD=VALUE");
    CHECK(fields_to_json(fields) == fields_to_json(table(untouched)));
}

TEST_CASE("state survives a round trip through JSON") {
    Params p{.scale = 0.1, .history = 3, .saturate = false, .algo = "most_recent"}, q;
    fields_from_json(table(q), parsed(fields_to_json(table(p)).dump()));
    CHECK(q.scale == p.scale);
    CHECK(q.history == p.history);
    CHECK(q.saturate == p.saturate);
    CHECK(q.algo == p.algo);
}

TEST_CASE("a refused state changes nothing, also where a value was out of its field's range before") {
    Params p;
    const auto fields = table(p);
    for (const double scale : {1e9, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
        CAPTURE(scale);
        // set_field() would refuse all but the switch.
        p = {.scale = scale, .history = 0, .saturate = false, .algo = "none"};
        std::string where;
        try {
            fields_from_json(fields,
                             parsed(R"({"algo": "max", "history": 5, "saturate": true, "scale": "x"})"));
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            where = error.where();
        }
        CHECK(where == "scale");
        CHECK((p.scale == scale || (std::isnan(p.scale) && std::isnan(scale))));
        CHECK(p.history == 0);
        CHECK_FALSE(p.saturate);
        CHECK(p.algo == "none");
    }
}

TEST_CASE("a field is found by its name") {
    Params p;
    const auto fields = table(p);
    REQUIRE(find_field(fields, "history") != nullptr);
    CHECK(find_field(fields, "history")->info.label == "History");
    for (const char* name : {"", "History", "amax_history_len", "histor"})
        CHECK(find_field(fields, name) == nullptr);
}

TEST_CASE("a state with one wrong member changes nothing") {
    for (const char* text : {R"({"scale": 2, "history": "many"})", R"({"scale": 2, "nonsense": 1})",
                             R"({"scale": 2, "history": 5000})", R"({"scale": 2, "saturate": 1})", R"([1])",
                             R"({"scale": 2, "algo": 3})"}) {
        CAPTURE(text);
        Params p;
        CHECK_THROWS_AS(fields_from_json(table(p), parsed(text)), Error);
        CHECK(p.scale == 1);
        CHECK(p.history == 16);
    }
}
