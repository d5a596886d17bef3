// Trainings on several ranks for the tests of the GPU's trainer.
#pragma once

#include "tests/kernels/training.h"

namespace fp8lab::test {

inline TrainSpec on_ranks(TrainSpec spec, int count, Shard shard = Shard::zero1, Gather gather = Gather::bf16,
                          const std::string& sum = "bf16") {
    spec.ranks.count = count;
    spec.ranks.shard = shard;
    spec.ranks.gather = gather;
    spec.ranks.sum = sum;
    return spec;
}

// A transformer. Blocks of 2 and 4 ranks differ: the head has 257 rows, or the text's.
inline TrainSpec tokens(const std::string& recipes, double clip = 1, const std::string& task = "text",
                        int tie = 0, int context = 17) {
    TrainOptions options;
    options.model = "transformer";
    options.task = task;
    options.batch = 4;
    options.steps = 9;  // without the evaluation that comes after the last one
    options.recipes = recipes;
    options.sizes = {{"context", context}, {"d", 32},       {"heads", 2}, {"ffn", 48},
                     {"blocks", 2},        {"kv-heads", 1}, {"tie", tie}};
    options.clip = clip;
    return make_train_spec(options);
}

}  // namespace fp8lab::test
