// The real window: what it called saved outlives kill -9 at any moment and a disk that
// fills up, and the next start asks one question at most. FP8LAB_TEST_ALL=1: a hundred kills and every call,
// for half an hour; without, some of them.
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "tests/crash/preload.h"
#include "tests/gui/window/keeper.h"

using fp8lab::test::Desk;
using fp8lab::test::Keeper;
using fp8lab::test::kPreloads;

namespace {

bool all() { return std::getenv("FP8LAB_TEST_ALL") != nullptr; }

// The environment in which the Nth write, fsync or rename on the disk goes wrong.
std::vector<std::string> fault(const Desk& desk, const std::string& what, int at) {
    return {fp8lab::test::preloaded(desk.outside("shim.so")), "FAULT_FOLDER=" + desk.disk().string(), "FAULT=" + what,
            "FAULT_AT=" + std::to_string(at), "FAULT_COUNT=" + desk.outside("count")};
}

// Everything that the window keeps, once.
void keep_everything(Keeper& hand) {
    hand.flip(0);
    hand.change_theme();
    hand.flip(6);
    hand.pass_exercise();
    hand.save_scene();
    hand.export_figures();
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
bool survives(const std::function<void()>& hand) {
    try {
        hand();
        return true;
    } catch (const Desk::Gone&) {
        return false;
    }
}

}  // namespace

TEST_CASE("kill -9 of the window at random moments: all that it called saved is there at the next start") {
    Desk desk;
    Keeper hand(desk);
    std::mt19937 random(20261121);
    const int kills = all() ? 100 : 6;
    for (int i = 0; i < kills; ++i) {
        CAPTURE(i);
        hand.start();
        const auto killer = desk.kill_after(std::chrono::milliseconds(random() % (all() ? 10000 : 6000)));
        CHECK_FALSE(survives([&] {
            for (;;) {
                const auto what = random() % 12;
                if (what < 7) hand.flip(static_cast<int>(what));
                if (what == 7 || what == 8) hand.change_theme();
                if (what == 9) hand.pass_exercise();
                if (what == 10) hand.save_scene();
                if (what == 11) hand.export_figures();
            }
        }));
    }
    hand.start();
    MESSAGE("killed ", kills, " times; called saved: ", hand.saves());
}

TEST_CASE("kill -9 of the window before each write, fsync and rename of what it keeps, or within the write") {
    if (!kPreloads) {
        MESSAGE("skipped: a sanitizer is built in");
        return;
    }
    int at = all() ? 1 : 4;
    for (bool killed = true; killed; at += all() ? 1 : 17) {
        for (const std::string how : {"kill", "torn"}) {
            if (!all() && (at % 2 == 0) != (how == "torn")) continue;
            CAPTURE(at);
            CAPTURE(how);
            Desk desk;
            Keeper hand(desk);
            killed = !survives([&] {
                hand.start(fault(desk, how, at));
                keep_everything(hand);
            });
            desk.kill_now();
            hand.start();
            CHECK(survives([&] { hand.flip(1); }));  // and it goes on from there
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
    for (int at = 1; at < 66; at += all() ? 4 : 30) {
        CAPTURE(at);
        Desk desk;
        Keeper hand(desk);
        hand.start(fault(desk, std::to_string(ENOSPC), at), true);
        CHECK(survives([&] { keep_everything(hand); }));
        troubled += hand.in_trouble() ? 1 : 0;
        desk.kill_now();
        hand.start();
        CHECK(survives([&] { hand.flip(1); }));
        desk.close();
    }
    CHECK(troubled > 0);
}

TEST_CASE("a real disk that fills up, a tmpfs of 1 MiB: what was refused is saved when there is room again") {
    Desk desk;
    const Disk disk(desk);
    if (!disk.there) {
        MESSAGE("skipped: no tmpfs can be mounted here: ", std::strerror(errno));
        return;
    }
    Keeper hand(desk);
    hand.start();
    CHECK(survives([&] { keep_everything(hand); }));
    CHECK_FALSE(hand.in_trouble());
    disk.fill();
    CHECK(survives([&] { keep_everything(hand); }));
    CHECK(hand.in_trouble());
    desk.kill_now();
    hand.start({}, true);  // on the full disk
    hand.flip(2);
    CHECK(hand.in_trouble());
    disk.make_room();
    hand.wait_until_saved();
    desk.kill_now();
    hand.start();
    CHECK(survives([&] { keep_everything(hand); }));
    CHECK_FALSE(hand.in_trouble());
    desk.close();
}
