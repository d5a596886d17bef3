// The real window: what it called saved outlives kill -9 at any moment and a disk that
// fills up, and the next start asks one question at most. FP8LAB_TEST_ALL=1: a hundred kills and every call,
// for half an hour; without, some of them.
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "core/files/bounded_file.h"
#include "tests/all.h"
#include "tests/crash/preload.h"
#include "tests/gui/window/keeper.h"

using fp8lab::tests_all;
using fp8lab::test::Desk;
using fp8lab::test::Keeper;
using fp8lab::test::kPreloads;

namespace {

// The environment in which the Nth write, fsync or rename on the disk goes wrong.
std::vector<std::string> fault(const Desk& desk, const std::string& what, int at) {
    return {fp8lab::test::preloaded(desk.outside("shim.so")), "FAULT_FOLDER=" + desk.disk().string(),
            "FAULT=" + what, "FAULT_AT=" + std::to_string(at), "FAULT_COUNT=" + desk.outside("count")};
}

// Everything that the window keeps, once.
void keep_everything(Keeper& keeper) {
    keeper.flip(0);
    keeper.change_theme();
    keeper.flip(6);
    keeper.pass_exercise();
    keeper.save_scene();
    keeper.export_figures();
}

// A small disk where the window writes.
struct Disk {
    explicit Disk(const Desk& desk)
        : path(desk.disk()), there(::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=1m") == 0) {}
    ~Disk() {
        if (there) ::umount2(path.c_str(), MNT_DETACH);
    }
    void fill() const {
        std::ofstream filler(path / "filler");
        const std::string page(4096, 'f');
        while (filler.write(page.data(), 4096).flush()) continue;
    }
    void make_room() const { std::filesystem::remove(path / "filler"); }
    std::filesystem::path path;
    bool there;
};

// False: it was killed meanwhile.
bool survives(const std::function<void()>& act) {
    try {
        act();
        return true;
    } catch (const Desk::Gone&) {
        return false;
    }
}

}  // namespace

TEST_CASE("kill -9 of the window at random moments: all that it called saved is there at the next start") {
    Desk desk;
    Keeper keeper(desk);
    std::mt19937 random(20261121);
    const int kills = tests_all() ? 100 : 6;
    for (int i = 0; i < kills; ++i) {
        CAPTURE(i);
        keeper.start();
        const auto killer =
            desk.kill_after(std::chrono::milliseconds(random() % (tests_all() ? 10000 : 6000)));
        CHECK_FALSE(survives([&] {
            for (;;) {
                const auto what = random() % 12;
                if (what < 7) keeper.flip(static_cast<int>(what));
                if (what == 7 || what == 8) keeper.change_theme();
                if (what == 9) keeper.pass_exercise();
                if (what == 10) keeper.save_scene();
                if (what == 11) keeper.export_figures();
            }
        }));
    }
    keeper.start();
    MESSAGE("killed ", kills, " times; called saved: ", keeper.saves());
}

TEST_CASE("kill -9 of the window before each write, fsync and rename of what it keeps, or within the write") {
    if (!kPreloads) {
        MESSAGE("skipped: a sanitizer is built in");
        return;
    }
    int at = tests_all() ? 1 : 4;
    for (bool killed = true; killed; at += tests_all() ? 1 : 17) {
        for (const std::string how : {"kill", "torn"}) {
            if (!tests_all() && (at % 2 == 0) != (how == "torn")) continue;
            CAPTURE(at);
            CAPTURE(how);
            Desk desk;
            Keeper keeper(desk);
            killed = !survives([&] {
                keeper.start(fault(desk, how, at));
                keep_everything(keeper);
            });
            desk.kill_now();
            keeper.start();
            CHECK(survives([&] { keeper.flip(1); }));  // and it goes on from there
            desk.close();
        }
    }
    MESSAGE("calls: about ", at);
    CHECK(at > 40);
}

TEST_CASE(
    "a disk that is full from some call on: the window goes on and says so, and loses nothing that it kept") {
    if (!kPreloads) {
        MESSAGE("skipped: a sanitizer is built in");
        return;
    }
    int troubled = 0;
    for (int at = 1; at < 66; at += tests_all() ? 4 : 30) {
        CAPTURE(at);
        Desk desk;
        Keeper keeper(desk);
        keeper.start(fault(desk, std::to_string(ENOSPC), at), true);
        CHECK(survives([&] { keep_everything(keeper); }));
        troubled += keeper.in_trouble() ? 1 : 0;
        desk.kill_now();
        keeper.start();
        CHECK(survives([&] { keeper.flip(1); }));
        desk.close();
    }
    CHECK(troubled > 0);
}

TEST_CASE("closed on a full disk: one sentence tells the exercise and the settings that could not be saved") {
    if (!kPreloads) {
        MESSAGE("skipped: a sanitizer is built in");
        return;
    }
    Desk desk;
    Keeper keeper(desk);
    keeper.start(fault(desk, std::to_string(ENOSPC), 1), true);
    CHECK(survives([&] { keeper.pass_exercise(); }));
    desk.close();
    const std::string log = fp8lab::read_text(desk.outside("log"));
    CAPTURE(log);
    const auto line = log.find("fp8lab: profile: L1.1.json, predictions.json could not be saved in ");
    REQUIRE(line != log.npos);
    const std::string told = log.substr(line, log.find('\n', line) - line);
    CHECK(told.find("; the settings could not be saved: ") != told.npos);
    CHECK(told.find("No space left on device") != told.npos);
    CHECK(log.find("are kept") == log.npos);
}

TEST_CASE("a real disk that fills up, a tmpfs of 1 MiB: what was refused is saved when there is room again") {
    Desk desk;
    const Disk disk(desk);
    if (!disk.there) {
        MESSAGE("skipped: no tmpfs can be mounted here: ", std::strerror(errno));
        return;
    }
    Keeper keeper(desk);
    keeper.start();
    CHECK(survives([&] { keep_everything(keeper); }));
    CHECK_FALSE(keeper.in_trouble());
    disk.fill();
    CHECK(survives([&] { keep_everything(keeper); }));
    CHECK(keeper.in_trouble());
    desk.kill_now();
    keeper.start({}, true);  // on the full disk
    keeper.flip(2);
    CHECK(keeper.in_trouble());
    disk.make_room();
    keeper.wait_until_saved();
    desk.kill_now();
    keeper.start();
    CHECK(survives([&] { keep_everything(keeper); }));
    CHECK_FALSE(keeper.in_trouble());
    desk.close();
}
