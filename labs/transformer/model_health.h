// How the tensors of an arm are: their newest step, the mean of the last steps, and in how many steps something was
// saturated.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/nn/trainer.h"

namespace fp8lab::transformer {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct TensorHealth {  // NaN: not known
    double amax = kNan, scale = kNan, sqnr_db = kNan, kurtosis = kNan;
    double lost_pct = kNan, saturated_pct = kNan;  // of the elements, in the newest step
    double tail_lost_pct = kNan;                   // mean of the last 100 steps
    int saturated_steps = 0;
    double saturated_casts = kNan;  // of a step's casts, mean of all steps; only with micro-batches
};

class Health {
  public:
    void append(const ModelPlan& plan, std::span<const StepRecord> records);
    // The tensors in the order of ModelPlan::tensors; empty before the first step.
    const std::vector<TensorHealth>& tensors() const { return tensors_; }
    // Steps in which a tensor of the GEMM was saturated; in the order of ModelPlan::gemms.
    const std::vector<int>& gemms() const { return gemms_; }
    void restore(std::vector<TensorHealth> tensors, std::vector<int> gemms);

  private:
    std::vector<TensorHealth> tensors_;
    std::vector<int> gemms_;
    std::vector<std::vector<double>> lost_;  // of every step, per tensor
    struct Casts {
        double saturated = 0;
        int steps = 0;
    };
    std::vector<Casts> casts_;  // per tensor
};

// The tensor that lost most in the last 100 steps, of those that the recipe casts to 8 bits or fewer: of the gradients,
// or of what enters. None: no tensor is cast so, or no step is done.
struct Worst {
    std::string name = {};
    double lost_pct = kNan;
};
Worst worst_of(const Health& health, const ModelPlan& plan, const Recipe& recipe, bool gradients);

// Whether the recipe casts the tensor to 8 bits or fewer.
bool is_narrow(const Recipe& recipe, const ModelPlan& plan, TensorId id);

}  // namespace fp8lab::transformer
