// What L8 and L13 show before there is a run of one's own, and how long a training takes.
#include "labs/live/recorded_run.h"

#include <doctest/doctest.h>

#include <fstream>

#include "core/base/error.h"
#include "core/nn/train_spec.h"
#include "labs/live/pace.h"
#include "labs/train/model.h"
#include "labs/transformer/model.h"

using namespace fp8lab;
using namespace fp8lab::live;
using namespace std::chrono_literals;

TEST_CASE("the runs that ship are those of the default settings, with machine and date, small") {
    const std::pair<const char*, TrainSpec> kLabs[] = {{"train", train::spec_of({})},
                                                       {"transformer", transformer::spec_of({})}};
    for (const auto& [lab, spec] : kLabs) {
        CAPTURE(lab);
        const ShippedRun shipped = shipped_run(lab);
        CHECK(shipped.problem == "");
        REQUIRE(shipped.run);
        const RecordedRun& run = *shipped.run;
        CHECK(run.command == "fp8lab train " + command_line(spec));
        CHECK(run.steps() == spec.steps);
        CHECK(run.seed == static_cast<int>(spec.seed));
        CHECK(run.machine.find(" cores") != std::string::npos);
        CHECK(run.date.size() == 10);
        REQUIRE(run.arms.size() == spec.arms.size());
        for (std::size_t i = 0; i < run.arms.size(); ++i)
            CHECK(recipe_text(run.arms[i]) == recipe_text(spec.arms[i]));
        CHECK(shipped.words().find(run.machine) != std::string::npos);
        CHECK(std::filesystem::file_size(std::string(FP8LAB_SOURCE "/assets/runs/") + lab + ".json") <
              40'000);
    }
}

TEST_CASE("a recorded run is what the lab trains: its first steps again") {
    transformer::TransformerLab lab;
    lab.advance(2);
    const auto run = shipped_run("transformer").run;
    REQUIRE(run);
    for (std::size_t arm = 0; arm < 2; ++arm)
        for (std::size_t step = 0; step < 2; ++step)
            CHECK(run->history.arms()[arm].loss.values()[step] ==
                  doctest::Approx(lab.history().arms()[arm].loss.values()[step]).epsilon(1e-3));
}

TEST_CASE(
    "recorded curves are shown before the first step, of the task that was recorded, and never counted as "
    "one's own") {
    transformer::TransformerLab lab;
    lab.update();
    const auto curves = lab.recorded_curves();
    REQUIRE(curves.size() == 2);
    CHECK(curves[0].id == "loss");
    CHECK(curves[1].id == "gap");
    CHECK(curves[0].title == lab.finding());  // what to do, and not what was recorded
    CHECK(lab.recorded_words().starts_with("recorded, seed 1, on "));
    CHECK(lab.step() == 0);
    CHECK(lab.record().empty());
    for (const Figure& figure : lab.figures())
        if (figure.id == "loss") CHECK(figure.series.empty());
    set_field(lab.fields(), "task=copying");
    lab.update();
    CHECK(lab.recorded_curves().empty());
    CHECK(lab.recorded_words().empty());
    set_field(lab.fields(), "task=text");
    lab.advance(1);
    CHECK(lab.recorded_curves().empty());
    CHECK(lab.recorded_words().empty());
    train::TrainLab other(cpu_backend());
    CHECK(other.recorded_curves().size() == 2);
    CHECK(other.time_left().words.starts_with("about "));
    set_field(other.fields(), "task=spiral");
    CHECK(other.recorded_curves().empty());
}

TEST_CASE("a recorded run that is not whole is refused with its place") {
    const auto refused = [](const char* json, const char* why) {
        CHECK_THROWS_WITH_AS(parse_recorded_run(json, "x.json"), doctest::Contains(why), Error);
    };
    refused("{", "line 1");
    refused("{}", "'command'");
    const std::string head =
        R"({"command": "c", "machine": "m", "date": "2026-11-25", "seconds": 2, "seed": 1, "arms": )";
    refused((head + "[]}").c_str(), "'arms'");
    refused((head + R"([{"recipe": "bf16", "loss": ["x"]}]})").c_str(), "'arms[0].loss[0]' is not a number");
    refused((head + R"([{"recipe": "bf16", "loss": [1]}, {"recipe": "delayed", "loss": [1, 2]}]})").c_str(),
            "'arms[1].loss'");
    refused((head + R"([{"recipe": "none such", "loss": [1]}]})").c_str(), "none such");
    const RecordedRun run = parse_recorded_run(
        head + R"([{"recipe": "bf16", "loss": [4, 2]}, {"recipe": "delayed", "loss": [4, 3]}]})", "x.json");
    CHECK(run.steps() == 2);
    CHECK(run.history.arms()[1].gap_pct.last() == doctest::Approx(100 * (3.5 / 3 - 1)));
}

TEST_CASE(
    "the pace is the mean of the stretch at hand, without rests, and of the one before while nothing runs") {
    Pace pace;
    const Pace::Clock::time_point t{};
    CHECK_FALSE(pace.seconds_per_step());
    pace.see(0, false, t);
    pace.see(0, true, t + 1s);
    CHECK_FALSE(pace.seconds_per_step());
    pace.see(4, true, t + 3s);
    CHECK(*pace.seconds_per_step() == doctest::Approx(0.5));
    pace.see(4, false, t + 3s);
    CHECK(*pace.seconds_per_step() == doctest::Approx(0.5));
    pace.see(4, true, t + 100s);  // the rest does not count
    pace.see(5, true, t + 101s);
    CHECK(*pace.seconds_per_step() == doctest::Approx(1));
    pace.see(0, true, t + 102s);  // from the start again
    CHECK(*pace.seconds_per_step() == doctest::Approx(1));
    pace.see(1, true, t + 104s);
    CHECK(*pace.seconds_per_step() == doctest::Approx(2));
    pace.see(2, false, t + 200s);  // seen late: it rests, and since when is unknown
    CHECK(*pace.seconds_per_step() == doctest::Approx(2));
    Pace one;  // a single step that ended before it was looked at
    one.see(0, true, t);
    one.see(1, false, t + 3s);
    CHECK(*one.seconds_per_step() == doctest::Approx(3));
}

TEST_CASE("the time that is left is in words, says where it comes from, and is none at the end") {
    Pace pace;
    CHECK(time_left(0, 100, pace, nullptr).words.empty());
    RecordedRun run = parse_recorded_run(
        R"({"command": "c", "machine": "AMD", "date": "2026-11-25", "seconds": 3, "seed": 1,
            "arms": [{"recipe": "bf16", "loss": [4, 2]}]})",
        "x.json");
    const TimeLeft recorded = time_left(0, 20, pace, &run);
    CHECK(recorded.words == "about 30 s");
    CHECK(recorded.help.find("recorded on AMD, 2026-11-25") != std::string::npos);
    CHECK(time_left(0, 20, pace, &run, 3).words == "about 60 s");  // a speed limit
    pace.see(0, true, Pace::Clock::time_point{});
    pace.see(10, true, Pace::Clock::time_point{} + 20s);
    const TimeLeft measured = time_left(10, 12, pace, &run);
    CHECK(measured.words == "about 4 s left");
    CHECK(measured.help.find("measured here") != std::string::npos);
    CHECK(time_left(12, 12, pace, &run).words.empty());
    CHECK(about(0.2) == "about 1 s");
    CHECK(about(42) == "about 40 s");
    CHECK(about(140) == "about 2 min");
    CHECK(run_to_step("run to 300") == 300);
    CHECK_FALSE(run_to_step("run to "));
    CHECK_FALSE(run_to_step("run to 3x"));
    CHECK_FALSE(run_to_step("run"));
}
