// What python3 has on this machine. A test that needs more says that it is skipped.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace fp8lab::test {

inline int status_of(const std::string& command) {
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Whether python3 lacks one of the modules, "torch, torchao"; then it is told.
inline bool lacks(const std::string& modules) {
    static std::map<std::string, bool> known;
    const auto found = known.find(modules);
    if (found != known.end()) return found->second;
    const bool none = status_of("python3 -c 'import " + modules + "' 2>/dev/null") != 0;
    if (none) MESSAGE("skipped: python3 lacks one of these here: " << modules);
    return known[modules] = none;
}

inline std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace fp8lab::test
