// Runs the real binary: what a script that uses the command line sees.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/scratch.h"

struct Finished {
    int code;
    std::string out, err;
};

inline std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void spit(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

// `arguments` go through the shell; stdin is `input`. No display, and a profile folder of its own.
inline Finished fp8lab(const std::string& arguments, const std::string& input = "") {
    const Scratch scratch;
    spit(scratch / "in", input);
    const std::string command = "env -u DISPLAY -u WAYLAND_DISPLAY FP8LAB_HOME=" + (scratch / "home") +
                                " " FP8LAB_BINARY " " + arguments + " <" + (scratch / "in") + " >" +
                                (scratch / "out") + " 2>" + (scratch / "err");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(scratch / "out"), slurp(scratch / "err")};
}
