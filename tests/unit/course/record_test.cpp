// The series in evidence of a training come from whoever hands it in: each part of a record replaced by each
// kind of thing that it should not be is refused, or shown.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "labs/course/exercise_run.h"
#include "tests/json.h"

using namespace fp8lab;

namespace {

using Json = nlohmann::json;

void small(Lab& lab) {
    for (const char* assignment : {"steps=100", "task=teacher"}) set_field(lab.fields(), assignment);
}

Json made_record() {
    const auto lab = find_lab("train").make();
    small(*lab);
    const Event run = acts("run");
    carry_out(*lab, {&run, 1});
    return parsed(lab->record());
}

// One of each kind of place: "/arms/0/loss/7" stands for all losses.
std::vector<Json::json_pointer> places(const Json& json,
                                       const Json::json_pointer& at = Json::json_pointer()) {
    std::vector<Json::json_pointer> out = {at};
    if (!json.is_structured()) return out;
    std::size_t i = 0;
    for (const auto& [name, value] : json.items()) {
        if (i++ >= 3) break;
        const auto below = places(value, json.is_array() ? at / (i - 1) : at / name);
        out.insert(out.end(), below.begin(), below.end());
    }
    return out;
}

}  // namespace

TEST_CASE("a record with any part of it replaced is refused or shown, and nothing else happens") {
    const Json good = made_record();
    const std::vector<Json> bad = {nullptr,
                                   true,
                                   -1,
                                   7,
                                   1'000'000,
                                   0.5,
                                   1e300,
                                   18446744073709551615U,
                                   "x",
                                   "nan",
                                   Json::array(),
                                   Json::object(),
                                   {1, 2, 3},
                                   {{-1}},
                                   {{"step", -1}, {"tensor", "x9"}},
                                   {{"step", 1'000'000'000}, {"tensor", "w1"}},
                                   {{"step", 1e300}, {"tensor", "w1"}}};
    const auto lab = find_lab("train").make();
    int shown = 0, refused = 0;
    const auto replay = [&](const Json& record) {
        small(*lab);
        try {
            lab->replay(record.dump());
            lab->update();
            static_cast<void>(lab->metrics());
            static_cast<void>(lab->figures());
            static_cast<void>(lab->thumbnail());
            ++shown;
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            ++refused;
        }
    };
    replay(good);
    CHECK(shown == 1);
    auto all = places(good);
    all.push_back(Json::json_pointer("/arms/0/stopped"));
    for (const auto& at : all)
        for (const Json& value : bad) {
            Json record = good;
            record[at] = value;
            INFO(at.to_string() << " = " << value.dump());
            replay(record);
        }
    CHECK(refused > shown);
    CHECK(shown > 1);
}

// Shown by a lab that never trained: what it says of the arm comes from the settings.
TEST_CASE("a record with an arm that stopped is shown with the step at which it did") {
    Json record = made_record();
    record["arms"][1]["stopped"] = {{"step", 99}, {"tensor", "dy2"}};
    const auto lab = find_lab("train").make();
    small(*lab);
    lab->replay(record.dump());
    CHECK(lab->figures().front().title.find("stopped at step 99: dy2 is not finite") != std::string::npos);
    CHECK_FALSE(lab->thumbnail().series.empty());
}
