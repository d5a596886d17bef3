// The main memory of a training, and of forward passes, on the CPU: what core/train and core/nn/models hold, summed from
// the sizes, before anything is allocated. tests/unit/trainer/cpu_memory_test.cpp compares it with what they allocate.
#pragma once

#include <cstddef>

#include "core/nn/train_spec.h"

namespace fp8lab {

// Bytes of all arms and the batch: parameters, gradients, moments, activations, casts, teachers. The data of files and the
// series that grow with the steps are not counted.
double cpu_training_bytes(const TrainSpec& spec);

// Bytes that are allocated in addition while all arms are saved as checkpoints.
double checkpoint_bytes(const TrainSpec& spec);

// Bytes that are allocated in addition in every kInstrumentSteps-th step: of model mlp a copy of the weights of each arm.
double instrument_bytes(const TrainSpec& spec);

// Bytes of a model with its gradients, and of its forward passes over so many rows (of the batch, or tokens) with every
// operand of its GEMMs in a copy.
double cpu_inference_bytes(const TrainSpec& spec, std::size_t rows);

}  // namespace fp8lab
