// Runs the real binary: what a script that uses the command line sees.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

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

// float32 as files hold them, and an .npy of version 1 around such a payload.
inline std::string bytes_of(const std::vector<float>& values) {
    std::string bytes(values.size() * sizeof(float), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

inline std::string npy(const std::string& dtype, const std::string& shape, const std::string& payload) {
    std::string header = "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize(117, ' ');
    header += '\n';
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + payload;
}

// `arguments` go through the shell; stdin is `input`. No display, and a profile folder of its own. `starter`: shell
// words that start the program, which is $FP8LAB there.
inline Finished fp8lab(const std::string& arguments, const std::string& input = "",
                       const std::string& starter = quoted(FP8LAB_BINARY)) {
    const Scratch scratch;
    spit(scratch / "in", input);
    const std::string command = "env -u DISPLAY -u WAYLAND_DISPLAY FP8LAB_HOME=" + (scratch / "home") +
                                " FP8LAB=" + quoted(FP8LAB_BINARY) + " " + starter + " " + arguments + " <" +
                                (scratch / "in") + " >" + (scratch / "out") + " 2>" + (scratch / "err");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(scratch / "out"), slurp(scratch / "err")};
}
