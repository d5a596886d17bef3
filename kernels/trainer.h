// The trainer on the GPU: every step of an arm is one CUDA graph, several steps a launch where steps are
// short, which then overlap; the arms of a comparison take turns on one stream.
#pragma once

#include <memory>

#include "core/nn/preparation.h"
#include "core/nn/trainer.h"
#include "kernels/engine.h"
#include "kernels/gemm.h"

namespace fp8lab::cuda {

// Everything of a device that trainers share.
struct Device {
    int index = 0;
    Stream stream;
    Lt lt;
};

// Throws usage_error and input_error as make_cpu_trainer(), Error{backend} when the card has not the memory
// (how much is needed, and the largest batch that would fit) or cuBLASLt refuses a product, Abandoned when
// `preparation` asks to stop; a later change of recipe tells it, too.
enum class Launching { graphs, one_by_one };  // the second for tests and checkers: every launch by itself
std::unique_ptr<Trainer> make_cuda_trainer(const TrainSpec& spec, std::shared_ptr<Device> device,
                                           Launching launching = Launching::graphs,
                                           const Preparation& preparation = {});

double step_flop(const TrainSpec& spec, int batch);      // of the products, padded
int steps_per_launch(const TrainSpec& spec, int batch);  // several where steps are short
// Device memory that one arm takes, in bytes; the trainer's batches come on top.
double arm_bytes(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch);

}  // namespace fp8lab::cuda
