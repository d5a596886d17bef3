// bench step on a GPU: times that the trainer itself took with its own events (ArmCost), all arms alternately on one
// stream. The ceiling of this card is the product of two large matrices.
#pragma once

#include <string>

#include "app/cli/bench/bench.h"
#include "core/backend/backend.h"

namespace fp8lab::cli {

// Task noise with the shape and state that the options name; throws usage_error as make_train_spec().
TrainSpec step_spec(const BenchOptions& options, const std::string& recipes, int steps);

nlohmann::json bench_step_gpu(Backend& backend, const BenchOptions& options, bool json);

// A step of several micro-batches against as many steps of one, with one update.
nlohmann::json bench_step_parts(Backend& backend, const BenchOptions& options, bool json);

// The step of one GPU beside that of several.
nlohmann::json bench_step_devices(const BenchOptions& options, bool json);

// D-4D-D over D and batch: FP8 (delayed) against BF16, and for every batch the smallest D at which FP8 is
// faster.
nlohmann::json sweep_step(Backend& backend, const BenchOptions& options, bool json);

}  // namespace fp8lab::cli
