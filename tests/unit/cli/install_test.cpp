// cmake --install: the installed tree is whole, and works wherever it is moved to.
#include <doctest/doctest.h>

#include "process.h"

namespace fs = std::filesystem;

TEST_CASE("the installed program runs from its own tree, moved as a whole") {
    const Scratch scratch;
    const std::string build = fs::path(FP8LAB_BINARY).parent_path().string();
    const std::string command =
        "cmake --install " + build + " --prefix " + (scratch / "first") + " >" + (scratch / "log") + " 2>&1";
    REQUIRE_MESSAGE(std::system(command.c_str()) == 0, slurp(scratch / "log"));
    fs::rename(scratch / "first", scratch / "moved");
    const fs::path root = scratch.path / "moved";
    const std::string program = (root / "bin/fp8lab").string();

    // A lesson's series, found in the tree and not in the sources.
    CHECK(fs::exists(root / "share/fp8lab/series/notebook_ramp.txt"));
    const Finished run = fp8lab("run L5 --set scenario=ramp", "", program);
    CHECK(run.code == 0);
    CHECK(run.out.find("\"a.saturated_steps\": 11.0") != std::string::npos);
    fs::remove_all(root / "share/fp8lab/series");
    CHECK(fp8lab("run L5 --set scenario=ramp", "", program).code == 4);

    const Finished doctor = fp8lab("doctor", "", program);
    CHECK(doctor.code == 0);
    const bool has_window = doctor.out.find("FP8LAB_GUI=OFF") == std::string::npos;
    CHECK(fs::exists(root / "share/applications/fp8lab.desktop") == has_window);
    CHECK(fs::exists(root / "share/icons/hicolor/scalable/apps/fp8lab.svg") == has_window);
    CHECK(fs::exists(root / "lib/fp8lab/libfp8lab-cuda.so") == fs::exists(build + "/libfp8lab-cuda.so"));
}
