// The options that say what to train, as flags: for the verb train, and for the command line in a checkpoint.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/train/process.h"
#include "core/backend/backend.h"
#include "core/nn/train_spec.h"

namespace fp8lab::cli {

struct TrainFlags {
    TrainOptions train;
    std::string algo = "max", layers, devices, fake;
    std::optional<ProcessOfMany> process = {};  // this process is one of them
    int gpus = 0;                               // of this machine, for --devices all
    std::map<std::string, std::optional<std::string>, std::less<>> sizes;  // the options of all models

    TrainSpec spec() const;  // throws as make_train_spec()
};

// "0,1", or "all" of `gpus`. Throws usage_error("--devices", ...).
std::vector<int> parse_devices(const std::string& text, int gpus);
// Chooses the backend for such GPUs: the first where there are several. Throws as choose_backend(), and Error{backend} where
// several are asked for and the CPU would be taken.
ChosenBackend choose_for(const std::string& backend, const std::vector<int>& devices);

void add_train_options(CLI::App& verb, TrainFlags& flags);  // `flags` must outlive `verb`

// What command_line() of core/nn/train_spec.h says. Throws input_error(where, ...) where it is not such a line.
TrainSpec parse_command_line(const std::string& command_line, const std::string& where);

}  // namespace fp8lab::cli
