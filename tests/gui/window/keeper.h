// Input for the real window, in L1, that notes what the window called saved; and what the next start has of
// it.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "core/files/files.h"
#include "core/lesson/progress.h"
#include "tests/gui/window/desk.h"
#include "tests/json.h"

namespace fp8lab::test {

class Keeper {
  public:
    using Json = Desk::Json;

    explicit Keeper(Desk& desk) : desk_(desk) {}

    // Opens the window, answers its question, and compares. full: the disk is, and the window says so.
    void start(const std::vector<std::string>& environment = {}, bool full = false) {
        desk_.start({"--lab", "bits"}, environment);
        if (shows("recovery.restore")) desk_.key("Return");
        wait_for([&](const Json& state) { return state["lab"] == "bits" && !shows("recovery"); });
        desk_.key("F2");                                 // a prediction's sheet takes some keys
        const std::string toast = desk_.words("toast");  // nothing else is asked or complained about
        CHECK_MESSAGE((full || toast.empty() || toast.starts_with("Passed: ")), toast);
        compare("code", code_ = code_of(desk_.probes()));
        compare("theme", desk_.probes()["theme"]);
        check_files();
    }

    // Each does one thing that is to be kept, and waits until the window has done it. Throw Desk::Gone.
    void flip(int bit) {
        const int after = code_ ^ (1 << bit);
        keep("code", after, [&] {
            desk_.key(std::to_string(bit));
            wait_for([&](const Json& state) { return code_of(state) == after; });
            code_ = after;
        });
    }
    void change_theme() {
        const std::string after = desk_.probes()["theme"] == "light" ? "dark" : "light";
        const auto is_kept = [&] {
            return desk_.has_file("settings.json") && desk_.settings()["theme"] == after;
        };
        keep("theme", after, [&] {
            desk_.key("ctrl+t");
            wait_for([&](const Json&) { return is_kept() || in_trouble(); });
        });
    }
    // L1.1: its prediction, then 448 with a flip of a bit. Nothing where it is passed.
    void pass_exercise() {
        desk_.key("F4");
        if (shows("predict.number")) {
            go_to("predict.number");
            desk_.key("Right");
            go_to("predict.commit");
            kept_.erase("code");  // the attempt begins elsewhere
            keep("prediction", true, [&] {
                desk_.key("Return");
                wait_for([&](const Json&) { return !shows("predict.commit"); });
            });
            code_ = code_of(desk_.probes());
        }
        if (is("passed", true)) return;
        if (code_ == k448) flip(0);
        for (int bit = 0; bit < 8; ++bit) {
            if (((code_ ^ k448) >> bit & 1) == 0) continue;
            kept_["passed"].insert((code_ ^ 1 << bit) == k448);
            flip(bit);
        }
        keep("passed", true,
             [&] { wait_for([&](const Json&) { return desk_.words("toast").starts_with("Passed"); }); });
    }
    void save_scene() {
        desk_.key("ctrl+s");
        go_to("scene.save");
        keep("scene", code_, [&] { press_until_closed("scene.save"); });
    }
    void export_figures() {
        desk_.key("ctrl+e");
        go_to("export.save");
        keep("picture", true, [&] { press_until_closed("export.save"); });
    }
    // There is room again: what was refused is tried again, and then called saved.
    void wait_until_saved() {
        wait_for([&](const Json&) { return !in_trouble(); });
        kept_["code"] = {code_};
        kept_["theme"] = {desk_.probes()["theme"]};
    }
    bool is(const std::string& what, const Json& value) const {
        const auto known = kept_.find(what);
        return known != kept_.end() && known->second == std::set{value};
    }
    // How often each thing was called saved.
    std::string saves() const { return Json(saves_).dump(); }
    // The window says of something that it is not saved.
    bool in_trouble() const {
        const Json state = desk_.probes();
        for (const auto& [name, rect] : state["probes"].items())
            if (name.starts_with("status.")) return true;
        return desk_.words("toast").find("not saved") != std::string::npos || refused_;
    }

  private:
    static constexpr int k448 = 0x7E;

    static int code_of(const Json& state) {
        return std::stoi(state["metrics"]["code_hex"].get<std::string>(), nullptr, 16);
    }
    bool shows(const std::string& control) const { return desk_.probes()["probes"].contains(control); }

    // Not within doctest's macros, which would catch Gone.
    template <class Reached>
    void wait_for(Reached&& reached) {
        const bool came = desk_.wait_for([&](const Json& state) { return reached(state); });
        CHECK(came);
    }
    void go_to(const std::string& control) {
        const bool there = desk_.tab_to(control);
        REQUIRE_MESSAGE(there, control);
    }

    // While it is under way, the next start may have it or not; afterwards, unless the window complains, it
    // has it.
    template <class Act>
    void keep(const std::string& what, const Json& value, Act&& act) {
        const bool known = kept_.contains(what);
        if (known) kept_[what].insert(value);
        refused_ = false;
        act();
        if (!in_trouble()) {
            kept_[what] = {value};
            ++saves_[what];
        } else if (!known) {
            kept_.erase(what);
        }
    }
    void compare(const std::string& what, const Json& found) {
        CAPTURE(what);
        CAPTURE(found.dump());
        if (kept_.contains(what)) CHECK(kept_[what].contains(found));
        kept_[what] = {found};
    }
    // A file of that name is there: asks, and a second press replaces it.
    void press_until_closed(const std::string& button) {
        for (int i = 0; i < 3 && shows(button); ++i) desk_.key("Return");
        refused_ = shows(button);  // the sheet stays, and says why
        if (refused_) desk_.key("Escape");
    }
    void check_files() {
        const ProfileFolders folders{desk_.home()};
        const Progress progress{folders};
        CHECK(progress.problem() == "");
        compare("passed", progress.passed("L1.1") != nullptr);
        compare("prediction", progress.prediction("L1.1") != nullptr);
        if (is("passed", true)) CHECK(desk_.check("exercises/L1.1.json") == 0);
        Json scene = -1, picture = false;
        std::error_code none;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(desk_.disk(), none)) {
            const std::string name = entry.path().filename().string();
            CAPTURE(name);
            CHECK(name.find(".damaged") == std::string::npos);
            if (name.starts_with('.')) continue;  // a temporary of the one that was killed
            if (name.ends_with(".f8scene"))
                scene = parsed(read_text(entry.path()))["state"].value("code", k448);
            if (name.ends_with(".png"))
                picture = read_text(entry.path()).ends_with("IEND\xAE\x42\x60\x82") ? Json(true) : "torn";
        }
        compare("scene", scene);
        compare("picture", picture);
    }

    Desk& desk_;
    int code_ = k448;
    bool refused_ = false;
    // What is kept -> what the next start may show. Nothing: not known.
    std::map<std::string, int> saves_;
    std::map<std::string, std::set<Json>> kept_ = {{"code", {k448}},      {"theme", {"dark"}},
                                                   {"passed", {false}},   {"prediction", {false}},
                                                   {"scene", {Json(-1)}}, {"picture", {false}}};
};

}  // namespace fp8lab::test
