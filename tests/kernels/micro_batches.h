// What the tests of micro-batches on the GPU share with those of the simulator.
#pragma once

#include "tests/kernels/training.h"

namespace fp8lab::test {

inline TrainSpec cut(TrainSpec spec, int parts, const std::string& format = "fp32",
                     AmaxOf amax = AmaxOf::max) {
    spec.accumulate = {.micro_batches = parts, .format = format, .amax = amax};
    return spec;
}

inline TrainSpec classes(const std::string& recipes, int steps) {
    TrainOptions options;
    options.task = "spiral";
    options.steps = steps;
    options.recipes = recipes;
    return make_train_spec(options);
}

}  // namespace fp8lab::test
