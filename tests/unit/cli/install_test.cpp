// cmake --install: the installed tree is whole, and works wherever it is moved to. One test and one install:
// each install writes the man page to the same file of the build folder first.
#include <doctest/doctest.h>

#include <sstream>

#include "process.h"

namespace fs = std::filesystem;

namespace {

const std::string kBuild = fs::path(FP8LAB_BINARY).parent_path().string();

// The build as `cmake --install` puts it at `prefix`.
void install_at(const Scratch& scratch, const std::string& prefix) {
    const std::string command =
        "cmake --install '" + kBuild + "' --prefix '" + prefix + "' >" + (scratch / "log") + " 2>&1";
    REQUIRE_MESSAGE(std::system(command.c_str()) == 0, slurp(scratch / "log"));
}

void check_program(const fs::path& root) {
    const std::string program = (root / "bin/fp8lab").string();

    CHECK(fp8lab("manual how-to/memory", "", program).out == fp8lab("manual how-to/memory").out);
    // A lesson's series, found in the tree and not in the sources.
    CHECK(fs::exists(root / "share/fp8lab/series/notebook_ramp.txt"));
    const Finished run = fp8lab("run L5 --set scenario=ramp", "", program);
    CHECK(run.code == 0);
    CHECK(run.out.find("\"a.saturated_steps\": 11.0") != std::string::npos);
    fs::remove_all(root / "share/fp8lab/series");
    CHECK(fp8lab("run L5 --set scenario=ramp", "", program).code == 4);

    CHECK(fp8lab("list exercises", "", program).out == fp8lab("list exercises").out);
    fs::remove(root / "share/fp8lab/exercises/delayed.json");
    const Finished none = fp8lab("list exercises", "", program);
    CHECK(none.code == 4);
    CHECK(none.err.find("exercises/delayed.json") != std::string::npos);

    const Finished doctor = fp8lab("doctor", "", program);
    CHECK(doctor.code == 0);
    CHECK(doctor.out.find("assets    ") != std::string::npos);
    const bool has_window = doctor.out.find("FP8LAB_GUI=OFF") == std::string::npos;
    CHECK(fs::exists(root / "share/applications/fp8lab.desktop") == has_window);
    CHECK(fs::exists(root / "share/icons/hicolor/scalable/apps/fp8lab.svg") == has_window);
    CHECK(fs::exists(root / "lib/fp8lab/libfp8lab-cuda.so") == fs::exists(kBuild + "/libfp8lab-cuda.so"));
}

// It has every verb and every option of the program's help.
void check_man_page(const Scratch& scratch, const fs::path& root) {
    const std::string page = scratch / "fp8lab.1", zipped = (root / "share/man/man1/fp8lab.1.gz").string();
    REQUIRE(std::system(("gzip -dc '" + zipped + "' >" + page).c_str()) == 0);
    std::string text = slurp(page);
    std::erase(text, '\\');  // a hyphen is \- there
    const Finished help = fp8lab("--help");
    std::istringstream lines(help.out);
    int verbs = 0;
    bool listed = false;
    for (std::string line; std::getline(lines, line);) {
        listed = listed || line.starts_with("Subcommands") || line.starts_with("SUBCOMMANDS");
        if (line.empty()) listed = false;
        const std::string word = line.substr(0, line.find(' ', 2));
        if (line.starts_with("  --"))
            CHECK_MESSAGE(text.find("fB" + word.substr(2)) != std::string::npos, word);
        if (!listed || !line.starts_with("  ") || line[2] == ' ') continue;
        CHECK_MESSAGE(text.find(".SS " + word.substr(2) + "\n") != std::string::npos, word);
        ++verbs;
    }
    CHECK(verbs >= 15);
    CHECK(help.out.find("\nExit codes:\n") != std::string::npos);
    CHECK(text.find("\n.SH EXIT CODES\n") != std::string::npos);
    CHECK(text.find("\n.SH EXIT CODES\n") == text.rfind("EXIT CODES") - 5);  // once, not under each verb
    CHECK(text.find("fB--recipe") != std::string::npos);                     // of a verb
}

// With a driver and without cuBLASLt doctor names the library and where it comes from.
void check_doctor_without_cublas(const Scratch& scratch, const fs::path& root) {
    fs::create_directories(scratch.path / "driver");
    fs::create_directories(root / "lib/fp8lab");
    // Stand-ins: a library by the driver's name, and a backend that links a cuBLASLt that no machine has.
    fs::copy_file(FP8LAB_STAND_IN_DRIVER, scratch / "driver/libcuda.so.1");
    fs::copy_file(FP8LAB_STAND_IN_BACKEND, root / "lib/fp8lab/libfp8lab-cuda.so",
                  fs::copy_options::overwrite_existing);
    const std::string program = "env LD_LIBRARY_PATH='" + (scratch / "driver") +
                                "'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} '" + (root / "bin/fp8lab").string() +
                                "'";
    const Finished doctor = fp8lab("doctor", "", program);
    CHECK(doctor.code == 0);
    CHECK_MESSAGE(doctor.out.find("libcublasLt.so.99: cannot open shared object file") != std::string::npos,
                  doctor.out);
    CHECK(doctor.out.find("install NVIDIA's package libcublas") != std::string::npos);
    CHECK(fp8lab("train --backend cuda --steps 1", "", program).code == 3);
}

}  // namespace

TEST_CASE("what is installed runs from its own tree, moved as a whole, and has its man page") {
    const Scratch scratch;
    install_at(scratch, scratch / "first");
    fs::rename(scratch / "first", scratch / "moved");
    const fs::path root = scratch.path / "moved";
    check_program(root);
    check_man_page(scratch, root);
    check_doctor_without_cublas(scratch, root);  // last: it replaces the backend
}
