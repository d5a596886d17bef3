// What a training is given on purpose, so that its instruments can be read: a batch that is much too large, and a layer
// that starts at 0. Part of what a run is repeated with (TrainSpec, command_line()).
#pragma once

#include <string>

#include "core/nn/model.h"

namespace fp8lab {

// "656:1e6:1" as step, factor and rows; without the last part all rows. Throws usage_error("--poison", ...): another form, a
// step below 0, a factor that is not finite and above 0, no rows.
Poison parse_poison(const std::string& text);
// --init: "zero-last", or empty for the usual weights. Throws usage_error.
bool parse_init(const std::string& text);
// Throws usage_error: a step beyond the run, more rows than the batch, rows of a model of tokens, zero-last of another model
// than mlp or with --init-from.
void check_faults(const TrainSpec& spec);
// " --poison 656:1e6:1 --init zero-last"; empty without faults.
std::string faults_text(const TrainSpec& spec);

// What the first `rows` rows of x of this step are multiplied with, all with rows = 0: 1 in every other step.
float poison_factor(const TrainSpec& spec, int step);

// The weights that every arm of `spec` starts from, on each backend, where no file has them.
void initialise(Model<float>& model, const TrainSpec& spec);

}  // namespace fp8lab
