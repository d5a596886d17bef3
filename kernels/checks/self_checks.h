// The checks of `validate --backend cuda`: the GPU's conversions and our kernels against core and the golden
// data.
#pragma once

#include <cstdint>
#include <vector>

#include "core/formats/golden.h"
#include "core/formats/self_test.h"
#include "kernels/device/device.h"

namespace fp8lab::cuda {

// `full` adds the hardware's FP8 conversions over all 2^32 float32 inputs.
std::vector<SelfCheck> cuda_self_checks(bool full);

// Checksum (golden_hash) and counts by code of the hardware's conversion of all 2^32 inputs; E4M3 and E5M2
// only.
struct AllInputs {
    std::uint64_t checksum = 0;
    std::vector<unsigned long long> counts;  // 256
};
AllInputs convert_all_inputs(const GoldenConversion& to);

}  // namespace fp8lab::cuda
