// The command line: one file per verb, listed in verbs.cpp. A verb adds its options and a callback to the CLI11
// app; the callback does the work through the same models that the window uses and throws Error, which main()
// turns into one line on stderr and the exit code of cli.md.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "core/backend/backend.h"
#include "core/files/folders.h"

namespace fp8lab::cli {

struct Globals {
    int threads = 0;  // 0: the machine's cores
    int device = 0;
    bool trace_startup = false;
    std::string profile;  // --profile DIR
};

using AddVerb = void (*)(CLI::App& app, Globals& globals);
std::span<const AddVerb> verbs();

// For ->check() of a seed: CLI11 takes -1 and 2^64 for 2^64 - 1. Empty: it is one.
std::string check_seed(const std::string& text);

// The members that every JSON carries: "provenance", "device", "version", "seed" (cli.md; 0 where nothing is
// random).
nlohmann::json json_header(const DeviceInfo& device, std::uint64_t seed = 0);

// A verb's JSON, as it stands in a file and on stdout. A text in it that is no UTF-8 (the name of a file) has
// U+FFFD there. print_json() throws as write_stdout() does.
std::string json_text(const nlohmann::json& json);
void print_json(const nlohmann::json& json);

// "backend: cpu-emulated, AMD EPYC" on stderr, with the reason where the choice was ours.
void tell_backend(const ChosenBackend& chosen);

// Throws usage_error where --profile names a file. A folder that is not there yet is made by the window.
void check_profile(const Globals& globals);
// As --profile says, with its notice told on stderr.
ProfileFolders profile_of(const Globals& globals);

}  // namespace fp8lab::cli
