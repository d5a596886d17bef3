// bench step on a GPU: times that the trainer itself took with its own events (ArmCost), all arms alternately on one
// stream. The ceiling of this card is the product of two large matrices.
#pragma once

#include <functional>
#include <string>

#include "app/cli/bench/bench.h"
#include "core/backend/backend.h"

namespace fp8lab::cli {

// Task noise with the shape and state that the options name; throws usage_error as make_train_spec().
TrainSpec step_spec(const BenchOptions& options, const std::string& recipes, int steps);

nlohmann::json bench_step_gpu(Backend& backend, const BenchOptions& options, bool json);

// A step of several micro-batches against as many steps of one, with one update.
nlohmann::json bench_step_parts(Backend& backend, const BenchOptions& options, bool json);

// What --devices, --shard, --gather and --sum say of a training; without --devices the others are refused, with usage_error.
void set_devices(TrainOptions& train, const BenchOptions& options);
// The step of one GPU beside that of several, whose training `spec_of` makes from the options: without --devices and with all of
// them named. JSON with what all such benches have: "gpus", "shard", "sum", "state", "rows", "arms".
using SpecOf = std::function<TrainSpec(const BenchOptions&)>;
nlohmann::json time_devices(Backend& backend, const BenchOptions& options, const SpecOf& spec_of, bool json);
// The backend of the first of these GPUs.
ChosenBackend first_backend(const BenchOptions& options);

nlohmann::json bench_step_devices(Backend& backend, const BenchOptions& options, bool json);
// The whole step of a transformer: what ranks exchange is not of its blocks alone.
nlohmann::json bench_blocks_devices(Backend& backend, const BenchOptions& options, bool json);

// D-4D-D over D and batch: FP8 (delayed) against BF16, and for every batch the smallest D at which FP8 is
// faster.
nlohmann::json sweep_step(Backend& backend, const BenchOptions& options, bool json);

}  // namespace fp8lab::cli
