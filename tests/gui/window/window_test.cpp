// The real window under Xvfb, moved by real events. Each test starts its own display and its own fp8lab.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/files/bounded_file.h"
#include "tests/gui/window/desk.h"

using fp8lab::test::Desk;

TEST_CASE("the window opens on home, a click opens a lab, and its settings are there at the next start") {
    Desk desk;
    desk.start();
    CHECK(desk.probes()["lab"] == "");
    desk.click("home.bits");
    CHECK(desk.wait_for([](const auto& state) { return state["lab"] == "bits"; }));
    desk.key("ctrl+t");
    desk.key("ctrl+0");
    CHECK(desk.wait_for([](const auto& state) { return state["lab"] == ""; }));
    CHECK(desk.wait_for([&](const auto&) {  // kept a moment after they rest
        return desk.has_file("settings.json") && desk.settings()["theme"] == "light";
    }));
    desk.close();
    const auto settings = desk.settings();
    CHECK(settings["last_lab"] == "bits");
    CHECK(settings["theme"] == "light");

    desk.start();
    CHECK(desk.probes()["probes"].contains("home.continue"));
    desk.key("Return");
    CHECK(desk.wait_for([](const auto& state) { return state["lab"] == "bits"; }));
    desk.close();
}

TEST_CASE("a window ended by a signal says what is kept: a second one on the profile keeps nothing") {
    Desk desk;
    desk.start();
    // Beside the first one, until its first frame.
    const std::string log = desk.outside("second");
    const std::string command = quoted(FP8LAB_BINARY) + " --trace-startup 2>" + log +
                                " & p=$!; for i in $(seq 600); do grep -q 'first frame' " + log +
                                " && break; sleep 0.1; done; kill -TERM $p; wait $p";
    const int status = system(("bash -c " + quoted(command)).c_str());
    CHECK(WEXITSTATUS(status) == 143);
    const auto has = [](const std::string& file, const std::string& text) {
        return fp8lab::read_text(file).find(text) != std::string::npos;
    };
    CHECK(
        has(log,
            "ended by SIGTERM; nothing of this window is kept, the profile is read only: another window has "
            "this profile open"));
    CHECK_FALSE(has(log, "are kept"));
    desk.close();
    CHECK(has(desk.outside("log"), "ended by SIGTERM; settings and passed exercises are kept"));
}

TEST_CASE("unreadable settings do not keep the window from opening") {
    Desk desk;
    desk.write_settings("{ not json");
    desk.start();
    CHECK(desk.probes()["probes"].contains("rail.home"));
    desk.close();
    CHECK(desk.has_file("settings.json.damaged"));
}

TEST_CASE(
    "screenshot takes a picture of home, a lab, a scene, and a scene as presented, in the size asked for") {
    const Desk desk;  // its display
    const auto picture = [&](const std::string& arguments) {
        CAPTURE(arguments);
        const std::string file = desk.outside("picture.png");
        std::filesystem::remove(file);
        const std::string command =
            quoted(FP8LAB_BINARY) + " screenshot " + arguments + " -o " + quoted(file);
        CHECK(system(command.c_str()) == 0);
        std::ifstream in(file, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    const auto side = [](const std::string& png, std::size_t at) {  // of the chunk IHDR, big-endian
        int pixels = 0;
        for (std::size_t i = at; i < at + 4 && i < png.size(); ++i)
            pixels = pixels * 256 + static_cast<unsigned char>(png[i]);
        return pixels;
    };
    std::set<std::string> pictures;
    for (const char* what : {"", "--lab delayed", "--lab delayed --tab learn", "--scene L05-a-ramp-notebook",
                             "--scene L05-a-ramp-notebook --present", "--lab train --steps 3"}) {
        CAPTURE(what);
        const std::string png = picture(std::string("--size 1024x640 ") + what);
        CHECK(side(png, 16) == 1024);
        CHECK(side(png, 20) == 640);
        pictures.insert(png);
    }
    CHECK(pictures.size() == 6);
}

TEST_CASE("L1: a click on the last bit of 448 gives NaN, a key takes it back") {
    Desk desk;
    desk.start({"--lab", "bits"});
    CHECK(desk.metric("value") == 448);
    desk.click("bits.bit0");
    CHECK(desk.wait_for([](const auto& state) { return state["metrics"]["class"] == "nan"; }));
    desk.key("0");
    CHECK(desk.wait_for([](const auto& state) { return state["metrics"]["value"] == 448; }));
    desk.click("bits.bit3");  // 0x76: the exponent 15 becomes 14
    CHECK(desk.wait_for([](const auto& state) { return state["metrics"]["value"] == 224; }));
    desk.close();
}

TEST_CASE("settings that change while a lab trains are on the disk before it ends") {
    Desk desk;
    desk.start({"--lab", "train"});
    desk.click("train.run");
    REQUIRE(desk.wait_for([](const auto& state) { return state["metrics"]["step"] > 50; }));
    desk.key("ctrl+t");
    CHECK(desk.wait_for(
        [&](const auto&) { return desk.has_file("settings.json") && desk.settings()["theme"] == "light"; }));
    const double step = desk.metric("step");  // still at it
    CHECK(desk.wait_for([&](const auto& state) { return state["metrics"]["step"] > step; }));
    desk.close();
}

TEST_CASE("L8: history and margin, dragged while it trains, reach the running scales") {
    Desk desk;
    desk.start({"--lab", "train"});
    desk.click("train.run");
    REQUIRE(desk.wait_for([](const auto& state) { return state["metrics"]["step"] > 50; }));
    // x2 is a tanh layer's output: its amax is 1 in every step, so its scale is 448 x 2^-margin and tells the
    // margin alone.
    CHECK(desk.metric("scale_x2") == doctest::Approx(448).epsilon(0.02));
    desk.click("panel.Explore");
    REQUIRE(desk.wait_for([](const auto& state) { return state["probes"].contains("train.margin"); }));
    desk.drag("train.margin", 60, 0);
    CHECK(desk.wait_for([](const auto& state) {
        const double scale = state["metrics"]["scale_x2"];
        const double binades = std::log2(448 / scale);
        return binades > 0.9 && std::abs(binades - std::round(binades)) < 0.03;
    }));
    // With a history of one the scale of x1 follows every batch; with the 16 of the start it moves now and
    // then.
    desk.drag("train.history", -150, 0);
    const int step = static_cast<int>(desk.metric("step"));
    CHECK(desk.wait_for([&](const auto& state) { return state["metrics"]["step"] > step; }));
    CHECK(desk.probes()["metrics"]["recipe_b"].get<std::string>().find("margin=") != std::string::npos);
    CHECK(desk.probes()["metrics"]["recipe_b"].get<std::string>().find("history=") != std::string::npos);
    desk.close();
}

TEST_CASE("L8: the wheel zooms the loss curve at the cursor, a double click fits it again") {
    Desk desk;
    desk.start({"--lab", "train"});
    desk.click("train.run");
    REQUIRE(desk.wait_for([](const auto& state) { return state["metrics"]["step"] > 200; }));
    desk.click("train.run");  // pauses
    double step = -1;
    REQUIRE(desk.wait_for([&](const auto&) {  // the last step arrives
        const double seen = std::exchange(step, desk.metric("step"));
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        return seen == step;
    }));
    const auto axes = [&] { return desk.probes()["axes"]["train.loss"].get<std::vector<double>>(); };
    const auto before = axes();
    desk.wheel_up("train.loss", 3);
    CHECK(desk.wait_for([&](const auto&) { return axes()[1] - axes()[0] < 0.8 * (before[1] - before[0]); }));
    const double middle_before = (before[0] + before[1]) / 2, middle = (axes()[0] + axes()[1]) / 2;
    CHECK(middle == doctest::Approx(middle_before).epsilon(0.02));  // the cursor stood in the middle
    const auto fits = [&] {
        desk.double_click("train.loss");
        return desk.wait_for([&](const auto&) { return axes() == before; }, std::chrono::seconds(5));
    };
    CHECK((fits() || fits() || fits()));
    desk.close();
}
