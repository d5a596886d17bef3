// The first exercise of each lab, by mouse and keys in the real window: begin, act, see the evidence, and
// have the file that it left checked. A row says what a learner does.
#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

#include "tests/gui/window/desk.h"

using fp8lab::test::Desk;

namespace {

struct Click {
    std::string probe;
};
struct Drag {
    std::string probe;
    int dx = 0, dy = 0;  // px
};
struct DragTo {  // a control of a plot, to where its linear x axis says this
    std::string probe, plot;
    double x = 0;
};
struct Type {  // into the field, in the place of what it holds
    std::string probe, text;
};
struct Until {  // a number of the lab is that much, or more than that
    std::string metric;
    double value = 0;
    bool more = false;
};
struct Press {  // a key
    std::string key;
};
using Act = std::variant<Click, Drag, DragTo, Type, Until, Press>;

struct Learner {
    Desk& desk;
    void operator()(const Click& act) const { desk.click(act.probe); }
    void operator()(const Drag& act) const { desk.drag(act.probe, act.dx, act.dy); }
    void operator()(const DragTo& act) const {
        REQUIRE(desk.wait_for([&](const auto& state) { return state["axes"].contains(act.plot); }));
        const auto state = desk.probes();
        const auto box = state["probes"][act.plot].get<std::vector<double>>();
        const auto axes = state["axes"][act.plot].get<std::vector<double>>();
        const auto knob = state["probes"][act.probe].get<std::vector<double>>();
        const double to = box[0] + (act.x - axes[0]) / (axes[1] - axes[0]) * (box[2] - box[0]);
        desk.drag(act.probe, static_cast<int>(to - (knob[0] + knob[2]) / 2), 0);
    }
    void operator()(const Type& act) const {
        desk.click(act.probe);
        // ImGui 1.90 gives a field the keyboard a frame after it was asked to, and chords a frame later.
        REQUIRE(desk.wait_for([](const auto& state) { return state.value("types", false); }));
        desk.pause();
        desk.key("ctrl+a");
        desk.type(act.text);
        desk.key("Return");
    }
    void operator()(const Press& act) const { desk.key(act.key); }
    void operator()(const Until& act) const {
        CAPTURE(act.metric);
        CHECK(desk.wait_for([&](const auto& state) {
            const auto& value = state["metrics"][act.metric];
            return value.is_number() &&
                   (act.more ? value.template get<double>() > act.value : value == act.value);
        }));
    }
};

struct FirstExercise {
    std::string lab, exercise;
    std::string control;  // of the lab
    std::vector<Act> acts;
};

void pass(const FirstExercise& row) {
    Desk desk;
    desk.start({"--lab", row.lab});
    desk.click("panel.Explore");  // it opens on its lesson
    REQUIRE(desk.wait_for([&](const auto& state) { return state["probes"].contains(row.control); }));
    desk.click("panel.Exercises");
    if (!desk.probes()["probes"].contains("predict.commit")) desk.click("exercise." + row.exercise);
    const auto open = desk.probes()["probes"];
    if (open.contains("predict.commit")) {
        bool covered = false;
        for (const auto& [name, rect] : open.items()) covered |= name.starts_with("cover.");
        CHECK(covered);
    }
    const std::string file = "exercises/" + row.exercise + ".json";
    for (const Act& act : row.acts) {
        CHECK_FALSE(desk.has_file(file));
        std::visit(Learner{desk}, act);
    }
    const auto passed = [&](const auto&) { return desk.has_file(file); };
    REQUIRE(desk.wait_for(passed, std::chrono::seconds(120)));  // L8 trains 2,000 steps
    CHECK(desk.read_json(file)["conditions"].size() >= 1);
    CHECK(desk.check(file) == 0);
    desk.click("panel.Exercises");
    CHECK(desk.wait_for([](const auto& state) { return state["probes"].contains("exercise.evidence"); }));
    desk.close();
}

}  // namespace

TEST_CASE("L1.1 in the real window") {
    pass({"bits",
          "L1.1",
          "bits.bit0",
          {Drag{"predict.number", -80}, Click{"predict.commit"}, Click{"bits.bit6"}, Click{"bits.bit2"},
           Click{"bits.bit1"}}});
}

TEST_CASE("L2.1 in the real window") {
    pass({"ruler",
          "L2.1",
          "ruler.interval_lo",
          {Click{"exercise.start"}, DragTo{"ruler.interval_hi", "ruler.marks", 440},
           DragTo{"ruler.interval_lo", "ruler.marks", 250}}});
}

TEST_CASE("L3.1 in the real window: a wrong answer first") {
    pass({"error",
          "L3.1",
          "error.marker",
          {Drag{"predict.knob0", 0, 80}, Drag{"predict.knob4", 0, -60}, Click{"predict.commit"},
           Drag{"error.marker", 40}, Type{"answer.e4m3", "1/16"}, Type{"answer.e5m2", "11.1 %"},
           Type{"answer.e4m3", "1/17"}}});
}

TEST_CASE("L4.1 in the real window") {
    pass({"window",
          "L4.1",
          "window.handle",
          {Click{"predict.choice1"}, Click{"predict.commit"}, Click{"panel.Explore"},
           Type{"margin.value", "-2"}, Until{"overflow_pct", 0, true}, Type{"margin.value", "0"},
           Until{"underflow_pct", 0, true}, Click{"format"}, Click{"format.1"}}});
}

TEST_CASE("L5.1 in the real window: the margin that the formula calls for") {
    pass({"delayed",
          "L5.1",
          "delayed.first",
          {Drag{"predict.number", 90}, Click{"predict.commit"}, Until{"a.saturated_steps", 11}, Press{"b"},
           Press{"b"}, Until{"b.saturated_steps", 0}, Click{"panel.Explore"}, Type{"margin.value", "1"}}});
}

TEST_CASE("L6.1 in the real window") {
    pass({"blocks",
          "L6.1",
          "blocks.magnitude",
          {Click{"predict.choice0"}, Click{"predict.commit"}, Click{"panel.Explore"},
           Type{"row_spread.value", "0"}, Click{"scheme"}, Click{"scheme.4"}, Click{"rule.1"}}});
}

TEST_CASE("L7.1 in the real window") {
    pass({"adding",
          "L7.1",
          "adding.sum",
          {Drag{"predict.number", -60}, Click{"predict.commit"}, Type{"answer.e4m3", "16"},
           Type{"answer.e5m2", "8"}, Type{"answer.bf16", "256"}, Type{"answer.fp16", "2^11"}}});
}

TEST_CASE("L8.1 in the real window") {
    pass({"train",
          "L8.1",
          "train.run",
          {Click{"predict.choice1"}, Click{"predict.commit"}, Click{"train.run"}}});
}

TEST_CASE("keys count however short they are tapped, and so does each of several taps in a row") {
    Desk desk;
    desk.start({"--lab", "bits"});
    const auto code = [&] {
        return std::stoi(desk.probes()["metrics"]["code_hex"].get<std::string>(), nullptr, 16);
    };
    const auto becomes = [&](int expected) {
        const bool came = desk.wait_for([&](const auto&) { return code() == expected; });
        CHECK_MESSAGE(came, code() << " instead of " << expected);
    };
    REQUIRE(code() == 0x7E);
    int expected = 0x7E;
    for (int i = 0; i < 8; ++i) {
        desk.tap_10_ms("3");
        becomes(expected ^= 1 << 3);
    }
    // The later ones while the first one's frame is drawn; each key once, see Desk::tap().
    desk.tap("1 2 4 5");
    becomes(expected ^= 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5);
    for (const char* theme : {"light", "dark"}) {
        desk.tap("ctrl+t");
        const bool came = desk.wait_for([&](const auto& state) { return state["theme"] == theme; });
        CHECK_MESSAGE(came, desk.probes()["theme"].get<std::string>()
                                << " instead of " << std::string(theme));
    }
    desk.close();
}

TEST_CASE("a letter is the key that says it, on a German keyboard too") {
    Desk desk;
    REQUIRE(system("setxkbmap de") == 0);
    desk.start({"--lab", "bits"});
    const auto shows = [&](const char* code) {
        return desk.wait_for([&](const auto& state) { return state["metrics"]["code_hex"] == code; });
    };
    desk.key("3");
    REQUIRE(shows("0x76"));
    desk.key("ctrl+z");  // the Y of a US keyboard, which would do it again
    CHECK(shows("0x7E"));
    desk.key("ctrl+y");
    CHECK(shows("0x76"));
    desk.close();
}
