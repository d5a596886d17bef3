// What L8 says of controls that are moved while it trains, and how fast it trains.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "labs/train/model.h"
#include "tests/unit/labs/train_lab.h"

using namespace fp8lab;
using namespace fp8lab::train;
using test::figure_of;
using test::small_lab;

TEST_CASE("the speed limit is for a window: without one, and in advance(), a training does not wait") {
    // At one step in 1,000 seconds none of these would end.
    auto headless = small_lab({"steps=30", "speed_limit=0.001"});
    headless->run();
    for (int i = 0; i < 10000 && !headless->finished(); ++i) {
        headless->update();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(headless->finished());

    auto watched = small_lab({"steps=60", "speed_limit=0.001"});
    watched->set_wake([] {});
    watched->advance(30);
    CHECK(watched->step() == 30);
    watched->run();
    for (int i = 0; i < 100; ++i) {
        watched->update();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(watched->step() <= 31);  // it waits again
    CHECK(TrainLab().params().speed_limit == 200);
}

TEST_CASE(
    "each control that is moved in a run is marked on loss and gap, a drag once, and the run says why it "
    "does not count") {
    auto lab = small_lab({"steps=1000"});
    lab->advance(10);
    CHECK(lab->no_record().empty());
    struct Mark {
        double x;
        std::string name;
        bool operator==(const Mark&) const = default;
    };
    const auto marks = [&](std::string_view id) {
        const auto figures = lab->figures();
        std::vector<Mark> out;
        for (const Series& series : figure_of(figures, id).series)
            if (const auto* line = std::get_if<VLine>(&series.shape); line && series.name != "now")
                out.push_back({line->x, series.name.substr(0, series.name.find("##"))});
        return out;
    };
    const auto set = [&](const char* assignment) {
        set_field(lab->fields(), assignment);
        lab->update();
    };
    CHECK(marks("loss").empty());
    set("tensor=w2");       // looked at only
    set("speed_limit=20");  // not what is trained
    set("steps=900");       // acts on Reset
    CHECK(marks("loss").empty());
    CHECK(lab->no_record().empty());
    set("steps=1000");
    set("margin=1");
    lab->advance(5);
    set("margin=2");  // the same drag
    lab->advance(200);
    set("bwd=e4m3");
    set("lr=0.001");
    const std::vector<Mark> expected = {{15, "Margin 2"}, {215, "Format of dy E4M3, Learning rate 0.001"}};
    CHECK(marks("loss") == expected);
    CHECK(marks("gap") == expected);
    CHECK(lab->no_record().find("Margin 2 was set after step 15") != std::string::npos);
    lab->restart();
    CHECK(marks("loss").empty());
    CHECK(lab->no_record().empty());
}

TEST_CASE("a finished run has a record or a reason, never both") {
    auto lab = small_lab({"steps=20"});
    lab->advance(20);
    CHECK_FALSE(lab->record().empty());
    CHECK(lab->no_record().empty());
    set_field(lab->fields(), "margin=3");  // not what was trained
    lab->update();
    CHECK(lab->record().empty());
    CHECK(lab->no_record().find("other settings") != std::string::npos);
}

TEST_CASE("a poisoned batch is named over the steps whose mean of 100 it is in") {
    auto lab = small_lab({"steps=300", "batch=8"});
    lab->advance(20);
    lab->poison();
    lab->advance(30);
    const auto figures = lab->figures();
    const Figure& gap = figure_of(figures, "gap");
    const auto span = std::ranges::find_if(
        gap.series, [](const Series& s) { return std::holds_alternative<XSpan>(s.shape); });
    REQUIRE(span != gap.series.end());
    CHECK(std::get<XSpan>(span->shape).lo == 20);
    CHECK(std::get<XSpan>(span->shape).hi == 20 + double(kTailSteps));
}
