// The command line: one file a verb, listed in verbs.cpp. A verb adds its options and a callback to the CLI11
// app; the callback does the work through the same models that the window uses and throws Error, which main()
// turns into one line on stderr and the exit code of cli.md.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "core/backend/backend.h"

namespace fp8lab::cli {

struct Globals {
    int threads = 0;  // 0: the machine's cores
    int device = 0;
    bool trace_startup = false;
    std::string profile;  // --profile DIR
};

using AddVerb = void (*)(CLI::App& app, Globals& globals);
std::span<const AddVerb> verbs();

// Ctrl-C: a verb with a long loop asks between units of work and ends cleanly with what it has.
bool interrupted();

// For ->check() of a seed: CLI11 takes -1 for 2^64 - 1. Empty: it is one.
std::string check_seed(const std::string& text);

// The members that every JSON carries: "provenance", "device", "version", "seed" (cli.md; 0 where nothing is
// random).
nlohmann::json json_header(const DeviceInfo& device, std::uint64_t seed = 0);

}  // namespace fp8lab::cli
