// What a lowered network is tested on: rows that it was not trained on, and rows of its training for amaxes.
#pragma once

#include <string>

#include "core/inference/network.h"
#include "core/nn/tasks.h"

namespace fp8lab {

struct InferenceData {
    DenseBatch test;             // y one-hot, or the values of a regression
    Matrix<float> train_x = {};  // may be empty: not known
    std::string name = {};       // "449 test digits"
};

// The data of the task `digits` (the pictures kept for tests) or `teacher` (449 fresh rows, and 1,348 for amaxes), as
// the command line of the network says. Throws usage_error for other tasks: they need files.
InferenceData data_of_task(const TrainedMlp& network);

// "npy:X,Y" as --task has it; `train` the same or empty. Throws usage_error or input_error: not two files, unreadable,
// rows or columns that do not fit the network, values that are not finite.
InferenceData data_of_files(const TrainedMlp& network, const std::string& test, const std::string& train);

}  // namespace fp8lab
