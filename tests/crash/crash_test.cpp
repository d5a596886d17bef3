// kill -9 at any moment, and a disk that fills up: what was called saved is still there.
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "core/base/error.h"
#include "tests/crash/preload.h"
#include "tests/crash/saves.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::test;
namespace fs = std::filesystem;

namespace {

// What is killed needs no disk, and a disk would be the most of the time.
fs::path memory() { return fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path(); }

struct Run {
    Scratch scratch{memory()};
    fs::path folder = scratch.path / "home";

    Words command(int first, int last) const {
        return {FP8LAB_SAVER, folder.string(), std::to_string(first), std::to_string(last)};
    }
    // The environment in which the Nth call goes wrong.
    Words fault(const std::string& what, long at) const {
        return {preloaded(scratch / "shim.so"), "FAULT_FOLDER=" + folder.string(), "FAULT=" + what,
                "FAULT_AT=" + std::to_string(at), "FAULT_COUNT=" + (scratch / "count")};
    }
    std::string out() const { return contents(scratch.path / "out"); }
    std::string err() const { return contents(scratch.path / "err"); }
    long calls() const { return std::atol(contents(scratch.path / "count").c_str()); }
    int run(const Words& environment, int first = 1, int last = 4) const {
        return Process(command(first, last), environment, scratch / "out", scratch / "err").wait();
    }
};

// Of one round of saves over what an earlier session kept.
long calls_of_a_round() {
    const Run run;
    REQUIRE(run.run({}, 1, 3) == 0);
    REQUIRE(run.run(run.fault("", 0), 4, 6) == 0);
    return run.calls();
}

}  // namespace

TEST_CASE("kill -9 at a hundred random moments: all that was called saved is there") {
    const Run run;
    std::mt19937 random(20261121);
    std::map<std::string, int> so_far;
    int next = 1;
    for (int i = 0; i < 100; ++i) {
        CAPTURE(i);
        Process saver(run.command(next, next + 1'000'000), {}, run.scratch / "out", run.scratch / "err");
        // From its first save on, however slowly it starts (under a sanitizer: longer than it would live).
        for (int ms = 0; said(run.out())["pass"] < next; ++ms) {
            REQUIRE(ms < 60'000);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000));
        CHECK(saver.end(SIGKILL) == 128 + SIGKILL);
        for (const auto& [what, number] : said(run.out())) so_far[what] = std::max(so_far[what], number);
        check_saved(run.folder, so_far);
        next = 1 + std::max(so_far["pass"], so_far["journal"]);
    }
    MESSAGE("saves that were said: ", so_far["pass"]);
    CHECK(so_far["pass"] >= 100);
}

TEST_CASE("kill -9 once before every write, fsync and rename, and within every write") {
    if (!kPreloads) {
        MESSAGE("skipped: a sanitizer is built in");
        return;
    }
    const long calls = calls_of_a_round();
    CHECK(calls >= 40);
    for (const char* how : {"kill", "torn"}) {
        for (long at = 1; at <= calls; ++at) {
            CAPTURE(how);
            CAPTURE(at);
            const Run run;
            REQUIRE(run.run({}, 1, 3) == 0);
            auto so_far = said(run.out());
            CHECK(run.run(run.fault(how, at), 4, 6) == 128 + SIGKILL);
            for (const auto& [what, number] : said(run.out())) so_far[what] = number;
            check_saved(run.folder, so_far);
            CHECK(run.run({}, 7, 7) == 0);  // and it goes on from there
            check_saved(run.folder, said(run.out()));
        }
    }
}

TEST_CASE("a disk that is full from any call on: each refusal is said, nothing that was saved is lost") {
    if (!kPreloads) {
        MESSAGE("skipped: a sanitizer is built in");
        return;
    }
    const long calls = calls_of_a_round();
    for (const std::string& how : {std::to_string(ENOSPC), "once:" + std::to_string(ENOSPC),
                                   "once:" + std::to_string(EIO), std::to_string(EROFS)}) {
        for (long at = 1; at <= calls; ++at) {
            CAPTURE(how);
            CAPTURE(at);
            const Run run;
            REQUIRE(run.run({}, 1, 3) == 0);
            auto so_far = said(run.out());
            CHECK(run.run(run.fault(how, at), 4, 6) == 0);
            const auto now = said(run.out());
            for (const auto& [what, number] : now) so_far[what] = number;
            check_saved(run.folder, so_far);
            if (how.starts_with("once:")) CHECK_FALSE(now.contains("unsaved"));  // the retry wrote it
            // A folder's fsync is the one call whose refusal changes nothing: the file is there.
            if (how == std::to_string(ENOSPC) && at < calls - 2)
                CHECK(run.err().find("No space") != std::string::npos);
            CHECK(run.run({}, 7, 7) == 0);
            CHECK(said(run.out()).contains("pass"));
            check_saved(run.folder, said(run.out()));
        }
    }
}

TEST_CASE("a real disk that fills up, a tmpfs of 256 KiB") {
    const Run run;
    fs::create_directories(run.folder);
    if (::mount("tmpfs", run.folder.c_str(), "tmpfs", 0, "size=256k") != 0) {
        MESSAGE("skipped: no tmpfs can be mounted here: ", std::strerror(errno));
        return;
    }
    CHECK(run.run({}, 1, 3) == 0);
    auto so_far = said(run.out());
    CHECK_FALSE(so_far.contains("unsaved"));
    {
        std::ofstream filler(run.folder / "filler");
        const std::string page(4096, 'f');
        while (filler.write(page.data(), 4096).flush()) continue;
    }
    CHECK(run.run({}, 4, 6) == 0);
    CHECK(run.err().find("No space left on device") != std::string::npos);
    CHECK(said(run.out()).contains("unsaved"));
    for (const auto& [what, number] : said(run.out())) so_far[what] = number;
    check_saved(run.folder, so_far);
    fs::remove(run.folder / "filler");
    CHECK(run.run({}, 7, 9) == 0);
    CHECK(said(run.out())["pass"] == 9);
    check_saved(run.folder, said(run.out()));
    CHECK(::umount2(run.folder.c_str(), MNT_DETACH) == 0);
}

TEST_CASE("the profile belongs to one at a time, and a crash leaves no lock behind") {
    const Run run;
    const auto access = [&] {
        ProfileFolders folders{run.folder};
        const ProfileLock lock{folders};
        return folders.access;
    };
    Process first(run.command(1, 1'000'000), {}, run.scratch / "out", run.scratch / "err");
    while (said(run.out())["pass"] < 2) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(access() == Access::read_only);
    const int before = said(run.out())["pass"];
    CHECK(run.run({}, 1, 1) == 0);  // a second one keeps nothing
    first.end(SIGKILL);
    check_saved(run.folder, {{"pass", before}});
    CHECK(access() == Access::read_write);
}

TEST_CASE("a home that cannot be written is said, and nothing is tried") {
    if (::getuid() != 0) {
        MESSAGE("skipped: only root can become nobody");
        return;
    }
    const Scratch scratch;
    fs::permissions(scratch.path, fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setuid(65534) != 0) ::_exit(3);
        ProfileFolders folders{scratch.path / "home"};
        const ProfileLock lock{folders};
        const bool said_so = folders.access == Access::read_only &&
                             folders.why_read_only.find("Permission denied") != std::string::npos;
        try {
            Progress(folders).keep("L1.1", {.skipped = true, .values = {}, .at = {}});
        } catch (const Error&) {
            ::_exit(said_so ? 0 : 1);
        }
        ::_exit(2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("what the command line writes is there whole or not at all, whenever it is killed") {
    if (!kPreloads) {
        MESSAGE("skipped: a sanitizer is built in");
        return;
    }
    const Run kept;  // a profile to report on
    REQUIRE(kept.run({}, 1, 3) == 0);
    const std::map<std::string, std::string> verbs = {
        // OUT: the folder that it writes to
        {"run", "run bits --export OUT"},
        {"report", "--profile " + kept.folder.string() + " report -o OUT/report.html --bundle OUT/one.f8lab"},
        {"train",
         "train --recipe bf16 --steps 2 --layers 4,8,1 --batch 4 --csv OUT/loss.csv --save OUT/weights"},
    };
    for (const auto& [verb, words] : verbs) {
        CAPTURE(verb);
        const auto write = [&words = words](const Run& run, const Words& environment) {
            fs::create_directories(run.folder);
            Words command = {FP8LAB_BINARY};
            std::istringstream line(words);
            for (std::string word; line >> word; command.push_back(word))
                if (word.starts_with("OUT")) word.replace(0, 3, run.folder.string());
            return Process(command, environment, run.scratch / "out", run.scratch / "err").wait();
        };
        const Run whole;
        REQUIRE_MESSAGE(write(whole, whole.fault("", 0)) == 0, whole.err());
        const long calls = whole.calls();
        CHECK(calls >= 4);
        for (long at = 1; at <= calls; ++at) {
            CAPTURE(at);
            const Run run;
            CHECK(write(run, run.fault("torn", at)) == 128 + SIGKILL);
            for (const auto& entry : fs::recursive_directory_iterator(run.folder)) {
                const fs::path name = fs::relative(entry.path(), run.folder);
                const bool hidden = std::ranges::any_of(
                    name, [](const fs::path& part) { return part.string().starts_with('.'); });
                if (!entry.is_regular_file() || hidden) continue;  // of the one that was killed
                const std::string text = contents(entry.path()),
                                  other = contents(whole.folder / fs::relative(entry.path(), run.folder));
                if (verb == "run") CHECK(text == other);
                // The others hold the time of day, or of a step.
                CHECK(std::ranges::count(text, '\n') == std::ranges::count(other, '\n'));
                CHECK(text.substr(text.size() - 1) == other.substr(other.size() - 1));
            }
            const Run full;
            const int code = write(full, full.fault(std::to_string(ENOSPC), at));
            const bool said_so = full.err().find("No space left on device") != std::string::npos;
            CHECK((code == 1 && said_so) != (code == 0));  // 0: only a folder's fsync was refused
        }
    }
}

TEST_CASE(
    "a set of checkpoints is the old one or the new one, whenever its save is killed or the disk is full") {
    if (!kPreloads) {
        MESSAGE("skipped: a sanitizer is built in");
        return;
    }
    const auto train = [](const Run& run, const std::string& more, const Words& environment) {
        Words command = {FP8LAB_BINARY};
        std::istringstream line(
            "train --recipe bf16,delayed,current --layers 4,4,1 --batch 4 --csv /dev/null " + more);
        for (std::string word; line >> word; command.push_back(word)) continue;
        return Process(command, environment, run.scratch / "out", run.scratch / "err").wait();
    };
    const auto saves = [&](const Run& run, int steps, const Words& environment) {
        return train(run, "--steps " + std::to_string(steps) + " --save " + (run.folder / "m").string(),
                     environment);
    };
    const Run whole;
    fs::create_directories(whole.folder);
    REQUIRE_MESSAGE(saves(whole, 1, {}) == 0, whole.err());
    REQUIRE_MESSAGE(saves(whole, 2, whole.fault("", 0)) == 0, whole.err());
    const long calls = whole.calls();
    CHECK(calls >= 10);  // three writes, fsyncs and renames, and that of the set
    int old_sets = 0, new_sets = 0;
    for (const std::string& how : {std::string("torn"), std::to_string(ENOSPC)})
        for (long at = 1; at <= calls; ++at) {
            CAPTURE(how);
            CAPTURE(at);
            const Run run;
            fs::create_directories(run.folder);
            REQUIRE(saves(run, 1, {}) == 0);
            const int code = saves(run, 2, run.fault(how, at));
            CHECK((how == "torn" ? code == 128 + SIGKILL : code == 0 || code == 1));
            if (code == 1) CHECK(run.err().find("No space left on device") != std::string::npos);
            // Whichever set is there goes on: a run to its own last step has nothing to do, which names that step.
            const std::string folder = (run.folder / "m").string();
            CHECK(train(run, "--steps 1 --resume " + folder, {}) == 2);
            const bool is_old = run.err().find("has done 1 steps") != std::string::npos,
                       is_new = run.err().find("has done 2 steps") != std::string::npos;
            CHECK_MESSAGE(is_old != is_new, run.err());
            if (code == 0) CHECK(is_new);
            old_sets += is_old ? 1 : 0, new_sets += is_new ? 1 : 0;
            CHECK_MESSAGE(train(run, "--steps 3 --resume " + folder, {}) == 0, run.err());
            // The next save ends what the killed one left.
            CHECK_MESSAGE(saves(run, 4, {}) == 0, run.err());
            std::size_t files = 0;
            for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++files;
            CHECK(files == 3);
        }
    CHECK(old_sets > 0);
    CHECK(new_sets > 0);
}
