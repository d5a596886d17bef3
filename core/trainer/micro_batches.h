// Cuts a batch for gradient accumulation (Accumulation in train_spec.h).
#pragma once

#include <vector>

#include "core/nn/tasks.h"

namespace fp8lab {

std::size_t scored_in(const TokenBatch& batch);  // how many targets count

struct MicroBatch {
    Batch batch;
    // What its gradient counts for in the mean of all: 1, or more where it has more scored targets than the others. So the mean of
    // the micro-batches' losses and gradients, each times this, is that of the whole batch.
    float weight = 1;
};

// `count` parts of equal size, in the order of the rows. It must divide the rows, or sequences. Reuses the memory of
// `parts`. Where no target of the batch is scored, each weight is 1.
void cut_batch(const Batch& batch, int count, std::vector<MicroBatch>& parts);
// One of these parts, in the order of the rows.
void cut_part(const Batch& batch, int count, int index, MicroBatch& part);

}  // namespace fp8lab
