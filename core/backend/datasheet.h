// Peaks of a GPU as the vendor prints them, dense, without sparsity.
//   NVIDIA H200 Tensor Core GPU, datasheet (2024); NVIDIA H100 Tensor Core GPU, datasheet (2023)
#pragma once

#include <string_view>

namespace fp8lab {

struct Datasheet {
    std::string_view name;     // the device's name starts like this
    double bf16, fp8, memory;  // TFLOP/s, TFLOP/s, TB/s
};
const Datasheet* datasheet(std::string_view gpu);  // null: not in the table

}  // namespace fp8lab
