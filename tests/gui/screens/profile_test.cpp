#include "app/shell/profile/profile.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "app/shell/layout.h"
#include "core/base/error.h"
#include "core/files/files.h"
#include "tests/scratch.h"

using namespace fp8lab;
namespace fs = std::filesystem;

TEST_CASE("settings come back as they were saved") {
    const Scratch folder;
    const Settings settings{Theme::light, 1.5F, 1600, 1000, "train", false, true, {{"bits", "learn"}}};
    save_settings(folder.path, settings);
    const LoadedSettings loaded = load_settings(folder.path);
    CHECK(loaded.settings == settings);
    CHECK(loaded.problem.empty());
}

TEST_CASE("a profile without settings gives the defaults and no message") {
    const Scratch folder;
    CHECK(load_settings(folder.path).settings == Settings{});
    CHECK(load_settings(folder.path).problem.empty());
}

TEST_CASE("unreadable settings give one message, the defaults, and are kept beside") {
    for (const char* broken : {"", "{", "[]", R"({"theme": "purple"})", R"({"theme": 3})"}) {
        CAPTURE(broken);
        const Scratch folder;
        fs::create_directories(folder.path);
        std::ofstream(folder.path / "settings.json") << broken;
        const LoadedSettings loaded = load_settings(folder.path);
        CHECK(loaded.settings == Settings{});
        CHECK(loaded.problem == "settings.json is damaged; it is kept as settings.json.damaged");
        CHECK(read_text(folder.path / "settings.json.damaged") == broken);
        CHECK(load_settings(folder.path).problem.empty());
    }
}

TEST_CASE("of damaged settings the ones before are used, a reader leaves them where they are") {
    const Scratch folder;
    save_settings(folder.path, {Theme::light, 1.5F, 1600, 1000, "train", false, false, {}});
    save_settings(folder.path, {Theme::dark, 1.5F, 1600, 1000, "train", false, false, {}});
    std::ofstream(folder.path / "settings.json", std::ios::app) << "}";
    ProfileFolders reader{folder.path};
    reader.access = Access::read_only;
    CHECK(load_settings(reader).settings.theme == Theme::light);
    CHECK_FALSE(fs::exists(folder.path / "settings.json.damaged"));
    CHECK(load_settings(folder.path).problem ==
          "settings.json is damaged, so the one before is used; it is kept as settings.json.damaged");
    CHECK(load_settings(folder.path).problem.empty());
    CHECK(load_settings(folder.path).settings.theme == Theme::light);
}

TEST_CASE("a size that no int holds is no settings") {
    const Scratch home;
    ProfileFolders reader{home.path};
    reader.access = Access::read_only;
    for (const char* width : {"1e300", "-5", "1.5", "18446744073709551615"}) {
        std::ofstream(home.path / "settings.json")
            << R"({"theme": "light", "scale": 1, "height": 900, "last_lab": "", "panel_open": true, "width": )"
            << width << "}";
        const LoadedSettings loaded = load_settings(reader);
        CHECK(loaded.problem == "settings.json is damaged");
        CHECK(loaded.settings == Settings{});
    }
}

TEST_CASE("a scale out of range is brought into it") {
    const Scratch folder;
    save_settings(folder.path, {Theme::dark, 40, 0, 0, "", true, false, {}});
    CHECK(load_settings(folder.path).settings.scale == kLargestScale);
}

TEST_CASE("settings that cannot be written are an error with the folder's name") {
    CHECK_THROWS_WITH_AS(save_settings(fs::path("/proc/fp8lab"), {}), doctest::Contains("/proc/fp8lab"),
                         Error);
}

TEST_CASE(
    "rail, stage, panel and status line share the window without a gap, as the look has them at 1440x900") {
    const WindowLayout layout = make_window_layout(1440, 900, 1, true, true, false);
    CHECK(layout.rail.width() == 220);
    CHECK(layout.stage.x1 == 1080);
    CHECK(layout.panel.width() == 360);
    CHECK(layout.status.height() == 28);
    for (const float width : {800.0F, 1024.0F, 1280.0F, 1920.0F}) {
        for (const float scale : {0.75F, 1.0F, 1.5F, 2.0F}) {
            for (const bool open : {false, true}) {
                const WindowLayout any = make_window_layout(width, 700, scale, true, open, open);
                CHECK(any.rail.x1 == any.stage.x0);
                CHECK(any.stage.x1 == any.panel.x0);
                CHECK(any.panel.x1 == width);
                CHECK(any.stage.y1 == any.status.y0);
                CHECK(any.status.y1 == 700);
            }
        }
    }
}

TEST_CASE("1024 px hold the rail's numbers, an open panel and a stage of 560 px content") {
    const WindowLayout layout = make_window_layout(1024, 640, 1, true, true, true);
    CHECK_FALSE(layout.rail_full);
    CHECK(layout.rail.width() == 56);
    CHECK(layout.panel.width() == 360);
    CHECK(layout.stage.width() - 48 == 560);
}
