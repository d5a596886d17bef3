// The options that say what to train, as flags: for the verb train, and for the command line in a checkpoint.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>

#include "core/nn/train_spec.h"

namespace fp8lab::cli {

struct TrainFlags {
    TrainOptions train;
    std::string algo = "max", layers;
    std::map<std::string, std::optional<int>> sizes;  // the options of all models

    TrainSpec spec() const;  // throws as make_train_spec()
};

void add_train_options(CLI::App& verb, TrainFlags& flags);  // `flags` must outlive `verb`

// What command_line() of core/nn/train_spec.h says. Throws input_error(where, ...) where it is not such a line.
TrainSpec parse_command_line(const std::string& command_line, const std::string& where);

}  // namespace fp8lab::cli
