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

}  // namespace fp8lab::test
