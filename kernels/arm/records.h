// Converts the results of a step on the GPU to the records of core/nn/trainer.h.
#pragma once

#include <span>
#include <string>

#include "kernels/arm/arm.h"

namespace fp8lab::cuda {

struct RecordContext {
    bool classes = false;  // the loss is a cross entropy
    double scored = 1;     // rows, or tokens, that the accuracy is about
    // Statistics are NaN where the step did not compute them. Where only some steps compute them, those of w
    // belong to the cast of another step and are left out.
    bool with_stats = false, in_every_step = false;
};
StepRecord to_record(const ArmRecord& record, const CudaArm& arm, const RecordContext& context);

// One record of the records of all ranks: the mean of losses, sums of counts and statistics, the largest amaxes with their scales.
ArmRecord merged(std::span<const ArmRecord> ranks);

// The first tensor of the step, in the order of the computation, that was not finite: "x1", "loss", "dy2",
// "w1".
// `in_parameters`: looks at the parameters too, if none was found; else empty.
std::string first_nonfinite(const ArmRecord& record, const CudaArm& arm, bool in_parameters = true);

}  // namespace fp8lab::cuda
