// What the window brings back: after a crash with one question, and with Ctrl Z. Without a display.
#include "app/shell/profile/recovery.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/files/files.h"
#include "labs/grading/recheck.h"
#include "tests/gui/screens/shell_desk.h"

using namespace fp8lab;
namespace fs = std::filesystem;

namespace {

// A desk in a profile that outlives it. Going away without close() is a crash.
struct Desk : test::ShellDesk {
    explicit Desk(const ProfileFolders& folders, ImVec2 size = {1440, 900})
        : ShellDesk(size, test::explored(), folders) {}
    void open(const char* lab, Tab tab) {
        shell.open(lab);
        shell.show(tab);
        frame();
        frame();
    }
    // As the loop does after every frame.
    void rest(double now = 0) { shell.rest(now); }
    std::string field(const std::string& name) {
        const auto fields = shell.lab()->fields();
        const Field* const field = find_field(fields, name);
        return field ? field_text(*field) : std::string();
    }
    void set(const std::string& assignment) {
        set_field(shell.lab()->fields(), assignment);
        frame();
    }
};

struct Home {
    Scratch scratch;
    fs::path journal = scratch.path / "journal.jsonl";
    operator ProfileFolders() const { return scratch.path; }
};

}  // namespace

TEST_CASE("after a crash one question, first of all, Restore brings lab, fields and tab back") {
    const Home home;
    {
        Desk desk(home);
        CHECK_FALSE(desk.shows("recovery"));
        desk.open("ruler", Tab::learn);
        desk.set("brush_lo=0.5");
        desk.rest();
        CHECK(fs::exists(home.journal));
    }
    Desk desk(home);
    REQUIRE(desk.shows("recovery"));
    desk.key(ui::Key::escape);
    desk.key(ui::Key::digit_1, true);  // no other key does anything
    desk.click("home.bits");
    CHECK(desk.shell.lab() == nullptr);
    desk.shell.say("Something else", "pops up");
    desk.frame();
    REQUIRE(desk.shows("recovery"));
    desk.rest();  // notes nothing while the question is open
    CHECK(Journal::left_behind(home.journal)->values.at("desk")["lab"] == "ruler");
    desk.key(ui::Key::enter);
    CHECK_FALSE(desk.shows("recovery"));
    REQUIRE(desk.shell.lab() != nullptr);
    CHECK(desk.shell.lab()->info().id == "ruler");
    CHECK(desk.field("brush_lo") == "0.5");
    CHECK(desk.shows("panel.Learn"));
    CHECK(fs::exists(home.journal));  // and it is kept against the next crash
    CHECK(desk.shell.close().empty());
    CHECK_FALSE(fs::exists(home.journal));
}

TEST_CASE("Discard, by keyboard, begins anew and asks no more") {
    const Home home;
    {
        Desk desk(home);
        desk.open("ruler", Tab::explore);
        desk.set("brush_lo=0.5");
        desk.rest();
    }
    {
        const Desk unanswered(home);  // and crashes again
        CHECK(unanswered.shows("recovery"));
    }
    {
        Desk desk(home);
        desk.key(ui::Key::tab);
        desk.key(ui::Key::enter);
        CHECK_FALSE(desk.shows("recovery"));
        CHECK_FALSE(fs::exists(home.journal));
        desk.open("ruler", Tab::explore);
        CHECK(desk.field("brush_lo") != "0.5");
        desk.rest();
    }
    const Desk desk(home);  // to have opened a lab is no work that could be lost
    CHECK_FALSE(desk.shows("recovery"));
}

TEST_CASE("closed with the question open, it is asked again") {
    const Home home;
    {
        Desk desk(home);
        desk.open("ruler", Tab::explore);
        desk.set("brush_lo=0.5");
        desk.rest();
    }
    {
        Desk desk(home);
        desk.rest();
        CHECK(desk.shell.close().empty());
    }
    CHECK(Desk(home).shows("recovery"));
}

TEST_CASE("an exercise under way goes on after a crash where it was, and can be passed") {
    const Home home;
    {
        Desk desk(home);
        desk.open("bits", Tab::exercises);
        desk.drag("predict.number", -60, 0);
        desk.rest();
        desk.click("predict.commit");
        desk.key(ui::Key::h);
        for (const char* bit : {"bits.bit6", "bits.bit2"}) {
            desk.click(bit);
            desk.rest();
        }
    }
    Desk desk(home);
    desk.click("recovery.restore");
    REQUIRE(desk.shows("exercise.conditions"));
    desk.click("bits.bit1");
    const Evidence* evidence = desk.shell.exercises().progress().passed("L1.1");
    REQUIRE(evidence != nullptr);
    CHECK(evidence->groups.size() == 3);
    CHECK(evidence->hints == 1);
    CHECK_FALSE(evidence->prediction.skipped);
    const auto file = desk.shell.exercises().progress().file("L1.1");
    CHECK(recheck(parse_evidence(read_text(file), file.string()), false).stands());
}

TEST_CASE("a prediction and an explanation that were only begun come back as drafts") {
    const Home home;
    {
        Desk desk(home);
        desk.open("bits", Tab::exercises);
        desk.drag("predict.number", -60, 0);
        desk.rest();
    }
    {
        Desk desk(home);
        desk.click("recovery.restore");
        desk.click("predict.commit");  // there is something to commit
        for (const char* bit : {"bits.bit6", "bits.bit2", "bits.bit1"}) desk.click(bit);
        desk.click("exercise.why");
        desk.frame();
        for (const char c : std::string("Because")) ui::feed_text({&c, 1}), desk.frame();
        desk.rest();
    }
    Desk desk(home);
    desk.click("recovery.restore");
    desk.frame();
    CHECK(desk.gui.context.typing.text == "Because");
    for (int i = 0; i < 5 && !ImGui::GetIO().WantTextInput; ++i) desk.frame();  // the sheet closes first
    desk.key(ui::Key::enter);
    CHECK(desk.shell.exercises().progress().passed("L1.1")->explanation == "Because");
}

TEST_CASE("what the journal has of another version's lab is said, the rest comes back") {
    const Home home;
    {
        Journal journal(home.journal);
        journal.note("lab.bits", {{"no such field", 1}}, "2026-11-20T14:32:00");
        journal.note("lab.ruler", {{"brush_lo", 0.5}}, "2026-11-20T14:32:00");
        journal.note("attempt.blocks", {{"selected", "what"}}, "2026-11-20T14:32:00");
        journal.note("attempt.error", {{"selected", -1}}, "2026-11-20T14:32:00");
        journal.note("desk", {{"lab", 3}, {"tab", nullptr}}, "2026-11-20T14:32:00");
        journal.note("typing", {{"lab", ""}, {"name", {1}}, {"text", 4}}, "2026-11-20T14:32:00");
    }
    Desk desk(home);
    desk.click("recovery.restore");
    desk.open("ruler", Tab::explore);
    CHECK(desk.field("brush_lo") == "0.5");
    CHECK(desk.shows("toast"));
}

TEST_CASE("a profile that is only read: no question, no journal, and the status line says why") {
    const Home home;
    {
        Desk desk(home);
        desk.open("ruler", Tab::explore);
        desk.set("brush_lo=0.5");
        desk.rest();
    }
    const std::string before = read_text(home.journal);
    ProfileFolders folders = home;
    folders.access = Access::read_only;
    folders.why_read_only = "another window has this profile open";
    Desk desk(folders);
    CHECK_FALSE(desk.shows("recovery"));
    CHECK(desk.gui.context.probes.items.at("status.Read only").words == folders.why_read_only);
    desk.open("bits", Tab::exercises);
    desk.click("predict.skip");
    for (const char* bit : {"bits.bit6", "bits.bit2", "bits.bit1"}) desk.click(bit);
    CHECK(desk.shell.exercises().progress().passed("L1.1") != nullptr);
    desk.rest();
    CHECK(desk.shell.close().empty());
    CHECK(read_text(home.journal) == before);
    CHECK_FALSE(fs::exists(home.scratch.path / "exercises"));
}

TEST_CASE("a pass that could not be saved counts, is said, and is saved once it can be") {
    const Home home;
    std::ofstream(home.scratch.path / "exercises") << "in the way";
    Desk desk(home);
    desk.open("bits", Tab::exercises);
    desk.click("predict.skip");
    for (const char* bit : {"bits.bit6", "bits.bit2", "bits.bit1"}) desk.click(bit);
    CHECK(desk.shell.exercises().progress().passed("L1.1") != nullptr);
    CHECK(desk.shows("status.Not saved yet"));
    CHECK(desk.shell.rest(100) <= 10);
    CHECK_FALSE(desk.shell.close().empty());
    fs::remove(home.scratch.path / "exercises");
    desk.rest(105);  // not yet due
    CHECK_FALSE(fs::exists(home.scratch.path / "exercises"));
    desk.rest(111);
    CHECK(fs::exists(home.scratch.path / "exercises/L1.1.json"));
    desk.frame();
    CHECK_FALSE(desk.shows("status.Not saved yet"));
}

TEST_CASE("a journal that cannot be written is said once, and the lab goes on") {
    const Home home;
    fs::create_directories(home.journal);  // a folder where the file should be
    Desk desk(home);
    desk.open("ruler", Tab::explore);
    desk.set("brush_lo=0.5");
    desk.rest();
    desk.frame();
    desk.frame();
    REQUIRE(desk.shows("toast"));
    desk.click("toast.close");
    desk.set("brush_lo=0.25");
    desk.rest();
    desk.frame();
    CHECK_FALSE(desk.shows("toast"));
}

TEST_CASE("a drag is one step of undo, and so is a burst of keys, Reset all can be undone") {
    const Home home;
    Desk desk(home);
    desk.open("window", Tab::explore);
    const auto state = [&] { return desk.shell.lab()->state(); };
    const nlohmann::json start = state();
    const ImGuiIO& io = ImGui::GetIO();
    desk.gui.move(desk.gui.center("margin"));
    desk.frame();
    desk.gui.mouse(true);
    for (int i = 0; i < 12; ++i) {
        desk.frame();
        desk.gui.move({io.MousePos.x + 4, io.MousePos.y});
    }
    desk.gui.mouse(false);
    desk.frame();
    desk.frame();
    const nlohmann::json dragged = state();
    REQUIRE(dragged != start);
    for (int i = 0; i < 5; ++i) desk.key(ui::Key::tab);
    desk.gui.context.focus.visible = false;
    desk.key(ui::Key::z, true);
    CHECK(state() == start);
    desk.key(ui::Key::z, true);  // nothing further
    CHECK(state() == start);
    desk.key(ui::Key::z, true, true);
    CHECK(state() == dragged);
    desk.key(ui::Key::z, true);
    desk.key(ui::Key::y, true);
    CHECK(state() == dragged);
    desk.key(ui::Key::r, true, true);
    CHECK(state() == start);
    desk.key(ui::Key::z, true);
    CHECK(state() == dragged);
}

TEST_CASE("every lab has an undo of its own, of two hundred steps") {
    const Home home;
    Desk desk(home);
    desk.open("ruler", Tab::explore);
    const std::string before = desk.field("brush_lo");
    for (int i = 0; i < 230; ++i) {
        desk.gui.mouse(true);  // by hand: keys would be one burst
        desk.frame();
        desk.gui.mouse(false);
        desk.set(std::string("brush_lo=") + (i % 2 == 0 ? "0.5" : "0.25"));
    }
    desk.open("bits", Tab::explore);
    const auto code = desk.field("code");
    desk.key(ui::Key::z, true);
    CHECK(desk.field("code") == code);
    desk.open("ruler", Tab::explore);
    int steps = 0;
    for (std::string last; steps < 400; ++steps) {
        last = desk.field("brush_lo");
        desk.key(ui::Key::z, true);
        if (desk.field("brush_lo") == last) break;
    }
    CHECK(steps == 200);
    CHECK(desk.field("brush_lo") != before);
}

TEST_CASE("Ctrl R puts back the control with the focus, without one those of the panel") {
    const Home home;
    Desk desk(home);
    desk.open("window", Tab::explore);
    const std::string margin = desk.field("margin");
    desk.set("margin=4");
    REQUIRE(desk.field("margin") != margin);
    std::string focused;
    for (int i = 0; i < 60 && focused != "margin"; ++i) {
        desk.key(ui::Key::tab);
        focused = desk.gui.context.focus.name;
    }
    REQUIRE(focused == "margin");
    const nlohmann::json other = desk.shell.lab()->state();
    desk.key(ui::Key::r, true);
    CHECK(desk.field("margin") == margin);
    desk.key(ui::Key::z, true);
    CHECK(desk.shell.lab()->state() == other);
    desk.key(ui::Key::escape);
    desk.key(ui::Key::r, true);
    CHECK(desk.field("margin") == margin);
}
